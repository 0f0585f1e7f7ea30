"""Texts longer than an encoder's room, read in overlapping windows: nothing is cut off silently.

A *window* is a stretch of a text's tokens with the special tokens around it and, where the text
comes with a question or a partner, that other text before or behind it, whole in every window.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from mnemic.text.tokenizers.contract import Encoded, Frame, Tokenizer

Text = str | Encoded  # a string, or what ``encode`` made of it without special tokens
Truncation = Literal["windows", "first", "error"]
CHOICES: tuple[Truncation, ...] = ("windows", "first", "error")


class WindowError(ValueError):
    """A text does not fit; the message names the lengths."""


class Stretch(NamedTuple):
    """Which tokens of a text a window holds, half open."""

    start: int
    end: int


class Window(NamedTuple):
    """A window as a network reads it."""

    ids: list[int]
    segments: list[int]
    place: int  # where in ids the first token of the text stands
    held: Stretch  # which tokens of the text stand there


class Windowed(NamedTuple):
    """A text in windows. ``offsets`` are of all its tokens, into the string as it was given.

    They are as many as came in: none for a text that was encoded without them.
    """

    windows: list[Window]
    offsets: list[tuple[int, int]]
    seen: int  # tokens that are in some window, with those of the other text
    total: int  # tokens there are, with those of the other text


class Room(NamedTuple):
    """How texts are read: ``length`` tokens a window, special ones too; ``overlap`` are shared.

    ``truncation`` says what happens to a text with more: it is read in ``windows``, or only its
    ``first`` window is (and every result says so), or it is an ``error``.
    """

    length: int
    overlap: int
    truncation: Truncation = "windows"

    def check(self) -> "Room":
        whole = isinstance(self.length, int) and isinstance(self.overlap, int)
        if not whole or self.length < 1 or self.overlap < 0:
            came = f"{self.length} and {self.overlap}"
            raise WindowError(
                f"length is at least 1 token and overlap at least 0, whole numbers, not {came}"
            )
        if self.truncation not in CHOICES:
            raise WindowError(f"truncation is one of {', '.join(CHOICES)}, not {self.truncation!r}")
        return self


def stretches(total: int, room: int, overlap: int) -> list[Stretch]:
    """Cut ``total`` tokens into stretches of ``room``; neighbours share exactly ``overlap``.

    The last one may be shorter, yet always holds a token that no other does. A text without tokens
    has one empty stretch.
    """
    assert 0 <= overlap < room
    starts = range(0, max(total - overlap, 1), room - overlap)
    return [Stretch(start, min(start + room, total)) for start in starts]


def owners(windows: Sequence[Stretch]) -> list[int]:
    """For each token the window in which it stands farthest from where the text was cut.

    There it has most context on both sides. The text's own two ends are no cuts; of equally good
    windows the first is taken.
    """
    total = max((end for _, end in windows), default=0)
    owner, best = [0] * total, [-1] * total
    for number, (start, end) in enumerate(windows):
        for token in range(start, end):
            left = token - start if start else total
            right = end - 1 - token if end < total else total
            if min(left, right) > best[token]:
                owner[token], best[token] = number, min(left, right)
    return owner


def window(
    tokenizer: Tokenizer,
    text: Text,
    room: Room,
    *,
    beside: Text | None = None,
    before: bool = False,
) -> Windowed:
    """Cut ``text`` into windows, each with the whole of ``beside``: ``before`` it, or behind."""
    found = encoded(tokenizer, text)
    other = None if beside is None else encoded(tokenizer, beside).ids
    frame = tokenizer.frame(pair=beside is not None)
    taken = len(other or [])
    own, total = room.check().length - sum(map(len, frame)) - taken, len(found.ids)
    if own < total or own < 0:
        check_long(room, own, total, taken)
    held = stretches(total, max(own, 1), room.overlap if own < total else 0)
    if room.truncation == "first":
        held = held[:1]
    windows = [framed(found.ids[a:b], other, frame, Stretch(a, b), before=before) for a, b in held]
    return Windowed(windows, found.offsets, held[-1].end + taken, total + taken)


def check_long(room: Room, own: int, total: int, taken: int) -> None:
    """Whether a text that is longer than its room may, and can, be read in several windows."""
    whole = f"a text has {total} tokens" + (f" beside another of {taken}" if taken else "")
    there = f"a window of {room.length} has room for {max(own, 0)} of them"
    if room.truncation == "error":
        raise WindowError(
            f'{whole}; {there}: give a larger length, or truncation="windows" to read it in several'
        )
    if own <= room.overlap:
        raise WindowError(
            f"{whole}; {there}, which must be more than the overlap of {room.overlap}: give a "
            "larger length, a smaller overlap or shorter texts"
        )


def framed(
    ids: list[int], other: list[int] | None, frame: Frame, held: Stretch, *, before: bool
) -> Window:
    """Both texts within their special tokens, in their order; segment 1 is the second one."""
    left, right = (other or [], ids) if before else (ids, other or [])
    head = [*frame.before, *left, *frame.between]
    tail = [*right, *frame.after]
    place = len(head) if before else len(frame.before)
    return Window(head + tail, [0] * len(head) + [int(other is not None)] * len(tail), place, held)


def encoded(tokenizer: Tokenizer, text: Text) -> Encoded:
    return tokenizer.encode(text, special=False) if isinstance(text, str) else text


def window_alone(tokenizer: Tokenizer, text: Text, room: Room) -> Windowed:
    """A text by itself."""
    return window(tokenizer, text, room, before=False)


def window_question(tokenizer: Tokenizer, question: Text, text: Text, room: Room) -> Windowed:
    """A text that is asked about: the question stands before every window of it."""
    return window(tokenizer, text, room, beside=question, before=True)


def window_pair(tokenizer: Tokenizer, first: Text, second: Text, room: Room) -> Windowed:
    """Two texts that are compared: the longer one is cut, the other is whole in every window."""
    both = encoded(tokenizer, first), encoded(tokenizer, second)
    if len(both[1].ids) >= len(both[0].ids):
        return window(tokenizer, both[1], room, beside=both[0], before=True)
    return window(tokenizer, both[0], room, beside=both[1])
