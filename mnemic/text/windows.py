"""Split texts longer than an encoder's input into overlapping windows; nothing is lost silently.

A *window* holds a range of a text's tokens with the special tokens around it and, where the text
comes with a question or a partner, that other text in full before or after it.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from mnemic.text.tokenizers.contract import Encoding, Tokenizer

Text = str | Encoding  # a string, or its encoding without special tokens
Truncation = Literal["windows", "first", "error"]
TRUNCATIONS: tuple[Truncation, ...] = ("windows", "first", "error")


class WindowError(ValueError):
    """A text does not fit into its windows; the message states the lengths."""


class TokenRange(NamedTuple):
    """A range of a text's tokens, half open."""

    start: int
    end: int


class Window(NamedTuple):
    """One window of a text: token ids ready for an encoder."""

    ids: list[int]
    segments: list[int]
    text_start: int  # index in ids of the first token of the text
    token_range: TokenRange  # the tokens of the text in this window


class WindowedText(NamedTuple):
    """A text split into windows; ``offsets`` are the character offsets of all its tokens.

    A text that was encoded without offsets has none here.
    """

    windows: list[Window]
    offsets: list[tuple[int, int]]
    covered_tokens: int  # tokens in any window, the partner's included
    total_tokens: int  # all tokens, the partner's included


class WindowOptions(NamedTuple):
    """Options for windows: maximum length, overlap, and treatment of longer texts.

    A window has at most ``max_tokens`` tokens, special ones included; neighbors share ``overlap``
    tokens. With ``truncation`` "windows" a longer text is read in several windows, with "first"
    only its first window is read (and every result says so), with "error" it is an error.
    """

    max_tokens: int
    overlap: int
    truncation: Truncation = "windows"

    def check(self) -> "WindowOptions":
        """Raise ``WindowError`` if an option is invalid; return the options."""
        are_integers = isinstance(self.max_tokens, int) and isinstance(self.overlap, int)
        if not are_integers or self.max_tokens < 1 or self.overlap < 0:
            values = f"{self.max_tokens} and {self.overlap}"
            raise WindowError(f"length is at least 1 token and overlap at least 0, whole numbers, not {values}")
        if self.truncation not in TRUNCATIONS:
            raise WindowError(f"truncation is one of {', '.join(TRUNCATIONS)}, not {self.truncation!r}")
        return self


def split_token_ranges(num_tokens: int, max_tokens: int, overlap: int) -> list[TokenRange]:
    """Split ``num_tokens`` tokens into ranges of ``max_tokens``; neighbors share ``overlap``.

    The last one may be shorter, but always holds a token that no other does. A text without tokens
    has one empty range.
    """
    assert 0 <= overlap < max_tokens
    starts = range(0, max(num_tokens - overlap, 1), max_tokens - overlap)
    return [TokenRange(start, min(start + max_tokens, num_tokens)) for start in starts]


def assign_tokens(windows: Sequence[TokenRange]) -> list[int]:
    """Assign each token to the window in which it has the most context.

    That is the window in which the token is farthest from a cut. The text's two ends are not cuts;
    of equally good windows the first is taken.
    """
    total = max((end for _, end in windows), default=0)
    best_window, best_context = [0] * total, [-1] * total
    for number, (start, end) in enumerate(windows):
        for token in range(start, end):
            left_context = token - start if start else total
            right_context = end - 1 - token if end < total else total
            if min(left_context, right_context) > best_context[token]:
                best_window[token], best_context[token] = number, min(left_context, right_context)
    return best_window


def make_windows(
    tokenizer: Tokenizer,
    text: Text,
    options: WindowOptions,
    *,
    partner: Text | None = None,
    partner_first: bool = False,
) -> WindowedText:
    """Split a text into windows, each with the special tokens and the whole partner text.

    The partner, such as a question, comes after the text, or before it if ``partner_first``.
    """
    encoding = encode_if_string(tokenizer, text)
    partner_ids = None if partner is None else encode_if_string(tokenizer, partner).ids
    specials = tokenizer.special_tokens(pair=partner is not None)
    partner_tokens = len(partner_ids or [])
    num_tokens = len(encoding.ids)
    capacity = options.check().max_tokens - sum(map(len, specials)) - partner_tokens
    if capacity < num_tokens or capacity < 0:
        check_splittable(options, capacity, num_tokens, partner_tokens)
    ranges = split_token_ranges(num_tokens, max(capacity, 1), options.overlap if capacity < num_tokens else 0)
    if options.truncation == "first":
        ranges = ranges[:1]
    windows = []
    for token_range in ranges:
        ids = encoding.ids[token_range.start : token_range.end]
        first, second = (partner_ids or [], ids) if partner_first else (ids, partner_ids or [])
        head, tail = [*specials.before, *first, *specials.between], [*second, *specials.after]
        segments = [0] * len(head) + [int(partner is not None)] * len(tail)  # 1: the second text
        text_start = len(head) if partner_first else len(specials.before)
        windows.append(Window(head + tail, segments, text_start, token_range))
    return WindowedText(windows, encoding.offsets, ranges[-1].end + partner_tokens, num_tokens + partner_tokens)


def check_splittable(options: WindowOptions, capacity: int, num_tokens: int, partner_tokens: int) -> None:
    """Raise ``WindowError`` unless a long text may and can be split into windows.

    ``capacity`` is the number of the text's tokens that one window can hold.
    """
    problem = f"a text has {num_tokens} tokens" + (f" beside another of {partner_tokens}" if partner_tokens else "")
    limit = f"a window of {options.max_tokens} has room for {max(capacity, 0)} of them"
    if options.truncation == "error":
        raise WindowError(f'{problem}; {limit}: give a larger length, or truncation="windows" to read it in several')
    if capacity <= options.overlap:
        raise WindowError(
            f"{problem}; {limit}, which must be more than the overlap of {options.overlap}: give a "
            "larger length, a smaller overlap or shorter texts"
        )


def encode_if_string(tokenizer: Tokenizer, text: Text) -> Encoding:
    """Encode a string without special tokens; return an encoding as it is."""
    return tokenizer.encode(text, special=False) if isinstance(text, str) else text


def make_text_windows(tokenizer: Tokenizer, text: Text, options: WindowOptions) -> WindowedText:
    """Split a single text into windows."""
    return make_windows(tokenizer, text, options)


def make_question_windows(tokenizer: Tokenizer, question: Text, text: Text, options: WindowOptions) -> WindowedText:
    """Split a text into windows, each with the question before it."""
    return make_windows(tokenizer, text, options, partner=question, partner_first=True)


def make_pair_windows(tokenizer: Tokenizer, first: Text, second: Text, options: WindowOptions) -> WindowedText:
    """Split the longer of two texts into windows, each with the whole shorter one."""
    encodings = encode_if_string(tokenizer, first), encode_if_string(tokenizer, second)
    if len(encodings[1].ids) >= len(encodings[0].ids):
        return make_windows(tokenizer, encodings[1], options, partner=encodings[0], partner_first=True)
    return make_windows(tokenizer, encodings[0], options, partner=encodings[1])
