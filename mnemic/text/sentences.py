"""Split a text into sentences that cover it: nothing is lost, moved or copied.

The rules are those of ``sentencex``, which keeps a quotation or a bracket within one sentence. It
gets a sanitized copy of the text, of the same length, without the characters known to mislead it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mnemic.text.chinese import han_fraction

MIN_HAN_FRACTION = 0.3  # from this fraction of Chinese characters on, a text is Chinese
MAX_QUOTE_LENGTH = 600  # characters; a longer quotation was never closed

_SURROGATE = re.compile("[\ud800-\udfff]")
_AFTER_STOP = re.compile("(?<=[。！？])[0-9A-Za-z]")
_QUOTES = str.maketrans(dict.fromkeys("\"'“”„‟‘’‚«»‹›「」()[]{}（）【】", " "))
_OPENING = re.compile(r"(?<=\s)[\"'“„‘‚«‹「(\[{（【]+\Z")
_CLOSING = re.compile(r"(?<=\S)[\"'”’»›」)\]}）】]+(?=\s|\Z)")


class Span(NamedTuple):
    """A span of characters, half open: ``text[start:end]``."""

    start: int
    end: int


def split_sentences(text: str, language: str | None = None) -> list[Span]:
    """Split a text into sentence spans that cover it, in order.

    White space belongs to the sentence before it (at the very start: to the first one), so a span
    is blank only where the whole text is; ``trim_span`` removes it. ``language`` is a code such as
    "en" or "zh"; None detects Chinese by its characters and takes any other text for English.
    """
    if language is None:
        language = "zh" if han_fraction(text) >= MIN_HAN_FRACTION else "en"
    spans: list[Span] = []
    start = 0
    for end in _find_sentence_ends(text, language):
        while text[end : end + 1].isspace():
            end += 1
        if text[start:end].strip():
            spans.append(Span(start, end))
            start = end
    return spans if spans or not text else [Span(0, len(text))]


def trim_span(text: str, span: Span) -> Span:
    """Return the span without the white space at both ends.

    The span of a blank text becomes empty, at its start.
    """
    content = text[span.start : span.end]
    leading = len(content) - len(content.lstrip()) if content.strip() else 0
    return Span(span.start + leading, span.start + leading + len(content.strip()))


def _find_sentence_ends(text: str, language: str) -> Iterator[int]:
    """Yield the positions at which sentences end.

    An unclosed quotation ends at the end of its line.
    """
    clean_text = _sanitize(text)
    for start, end in _run_sentencex(clean_text, language):
        segment = clean_text[start:end]
        if len(segment) > MAX_QUOTE_LENGTH or "\n" in segment.strip():
            for inner in _find_ends_ignoring_quotes(segment, language):
                yield _move_outside_quotes(clean_text, start + inner)
        yield _move_outside_quotes(clean_text, end)


def _find_ends_ignoring_quotes(segment: str, language: str) -> Iterator[int]:
    """Yield sentence ends inside a segment as if it had no quotes or brackets."""
    unquoted = segment.translate(_QUOTES)
    for start, end in _run_sentencex(unquoted, language):
        gap = segment[start + len(unquoted[start:end].rstrip()) : end]  # white space and quotes
        if len(segment) > MAX_QUOTE_LENGTH or "\n" in gap:
            yield end


def _move_outside_quotes(text: str, end: int) -> int:
    """Move a sentence end out of quotes that sentencex took for a pair.

    It moves before quotes that open the next sentence, and after quotes that close this one.
    """
    if opening := _OPENING.search(text, end - 3, end):
        return opening.start() if text[end : end + 1].strip() else end
    closing = _CLOSING.match(text, end)
    return closing.end() if closing else end


def _run_sentencex(text: str, language: str) -> Iterator[Span]:
    """Yield the sentence spans that sentencex finds."""
    from sentencex import get_sentence_boundaries  # imported here: machines that only train lack it

    for segment in get_sentence_boundaries(language, text):
        yield Span(segment["start_index"], segment["end_index"])


def _sanitize(text: str) -> str:
    """Replace characters that mislead sentencex, keeping the length.

    A surrogate has no UTF-8; a digit or a Latin letter after a Chinese full stop hides the stop;
    『』 are not known as quotes.
    """
    clean_text = _AFTER_STOP.sub("一", _SURROGATE.sub("\ufffd", text))
    return clean_text.replace("『", "「").replace("』", "」")
