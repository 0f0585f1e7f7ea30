"""A text as sentences that tile it: nothing is lost, moved or copied.

The rules are those of ``sentencex``, to which a quotation or a bracket is part of one sentence. It
is shown a stand-in of the text, of the same length, without what is known to mislead it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mnemic.text.chinese import share_of_han

CHINESE_FROM = 0.3  # the share of Chinese characters from which a text is split as Chinese
LONGEST = 600  # characters; a longer quotation is one whose closing mark never came

_SURROGATE = re.compile("[\ud800-\udfff]")
_AFTER_STOP = re.compile("(?<=[。！？])[0-9A-Za-z]")
_QUOTES = str.maketrans(dict.fromkeys("\"'“”„‟‘’‚«»‹›「」()[]{}（）【】", " "))
_OPENING = re.compile(r"(?<=\s)[\"'“„‘‚«‹「(\[{（【]+\Z")
_CLOSING = re.compile(r"(?<=\S)[\"'”’»›」)\]}）】]+(?=\s|\Z)")


class Span(NamedTuple):
    """A stretch of a text, half open, in characters: ``text[start:end]``."""

    start: int
    end: int


def sentences(text: str, language: str | None = None) -> list[Span]:
    """Split ``text`` into sentences, in order; joined together they are the text again, exactly.

    White space belongs to the sentence before it (at the very start: to the first one), so a span
    is blank only where the whole text is; ``trim`` leaves it out. ``language`` is a code such as
    "en" or "zh"; None takes a text for Chinese by its characters, and for English otherwise.
    """
    if language is None:
        language = "zh" if share_of_han(text) >= CHINESE_FROM else "en"
    spans: list[Span] = []
    start = 0
    for end in _ends(text, language):
        while text[end : end + 1].isspace():
            end += 1
        if text[start:end].strip():
            spans.append(Span(start, end))
            start = end
    return spans if spans or not text else [Span(0, len(text))]


def trim(text: str, span: Span) -> Span:
    """The span without the white space at its edges; empty, at its start, if it is blank."""
    stretch = text[span.start : span.end]
    blank = len(stretch) - len(stretch.lstrip()) if stretch.strip() else 0
    return Span(span.start + blank, span.start + blank + len(stretch.strip()))


def _ends(text: str, language: str) -> Iterator[int]:
    """Where sentences end; an unclosed quotation goes no further than its line."""
    shown = _stand_in(text)
    for start, end in _segments(shown, language):
        stretch = shown[start:end]
        if len(stretch) > LONGEST or "\n" in stretch.strip():
            for inner in _ends_without_quotes(stretch, language):
                yield _beside_quotes(shown, start + inner)
        yield _beside_quotes(shown, end)


def _ends_without_quotes(stretch: str, language: str) -> Iterator[int]:
    bare = stretch.translate(_QUOTES)
    for start, end in _segments(bare, language):
        gap = stretch[start + len(bare[start:end].rstrip()) : end]  # white space and quotes
        if len(stretch) > LONGEST or "\n" in gap:
            yield end


def _beside_quotes(text: str, end: int) -> int:
    """The end, moved out of quotes that sentencex took for a pair: before those that open the next
    sentence, behind those that close this one."""
    if opening := _OPENING.search(text, end - 3, end):
        return opening.start() if text[end : end + 1].strip() else end
    closing = _CLOSING.match(text, end)
    return closing.end() if closing else end


def _segments(text: str, language: str) -> Iterator[Span]:
    from sentencex import get_sentence_boundaries  # here: machines that only train lack it

    for segment in get_sentence_boundaries(language, text):
        yield Span(segment["start_index"], segment["end_index"])


def _stand_in(text: str) -> str:
    """The text as sentencex may see it: a surrogate has no utf-8; a digit or a Latin letter after
    a Chinese full stop hides it; 『』 are not known as quotes."""
    shown = _AFTER_STOP.sub("一", _SURROGATE.sub("\ufffd", text))
    return shown.replace("『", "「").replace("』", "」")
