"""Split "Anna, Ben and Chloe" into items, also where a reader took one of them."""

import re
from collections.abc import Iterable

from mnemic.store.retrieve.query_words import STOP_WORDS
from mnemic.text.sentences import Span, trim_span

SEPARATOR = re.compile(
    r"\s*[,;]\s*(?:(?:and|or|as well as|plus|also)\s+)?|\s+(?:and|or|as well as|plus|&)\s+|\s*[、，]\s*|(?:和|以及|及)"
)
MAX_ITEM_WORDS = 8  # of an item beside the span; longer ones are clauses
_WORD = re.compile(r"[^\s,;:()]+")
_ARTICLES = frozenset(("a", "an", "the", "two", "three", "four", "five", "some", "his", "her", "their", "our", "my"))
_INSIDE = frozenset(("of", "de", "van", "von", "der", "la", "le", "du", "da", "&"))
_BREAKERS = STOP_WORDS - _ARTICLES - _INSIDE | {"include", "includes", "including", "namely", "such", "like"}
_EDGE = " \t\n\"'“”‘’*_()[]."


def split_coordination(text: str, span: Span, sentence: Span) -> list[Span]:
    """Split the coordination around a span into items; one if there is none."""
    coordination = grow_right(text, grow_left(text, span, sentence), sentence)
    items, position = list[Span](), coordination.start
    for match in SEPARATOR.finditer(text, coordination.start, coordination.end):
        items.append(Span(position, match.start()))
        position = match.end()
    items.append(Span(position, coordination.end))
    return [item for item in (trim_item(text, item) for item in items) if item.end > item.start]


def trim_item(text: str, item: Span) -> Span:
    """Cut white space, quotation marks and a leading "both" from an item."""
    start, end = item
    while start < end and text[start] in _EDGE:
        start += 1
    while end > start and text[end - 1] in _EDGE:
        end -= 1
    lead = re.compile(r"(?:both|and|or|either)\s+", re.IGNORECASE).match(text, start, end)
    return trim_span(text, Span(lead.end() if lead else start, end))


def grow_left(text: str, span: Span, sentence: Span) -> Span:
    """Take in the items that stand before a span."""
    start = span.start
    while before := find_separator_before(text, Span(sentence.start, start)):
        chunk_start = max(
            (match.end() for match in SEPARATOR.finditer(text, sentence.start, before.start)), default=sentence.start
        )
        words = [Span(*match.span()) for match in _WORD.finditer(text, chunk_start, before.start)]
        item_start = join_item_words(text, list(reversed(words)), text[span.start].isupper())
        if item_start is None or text[item_start.end : before.start].strip():
            break
        start = item_start.start
        if item_start.start > chunk_start and text[chunk_start : item_start.start].strip():
            break  # the sentence begins before this item
    return Span(start, span.end)


def find_separator_before(text: str, area: Span) -> Span | None:
    """Return the separator that ends an area of a text."""
    matches = [match for match in SEPARATOR.finditer(text, area.start, area.end) if match.end() == area.end]
    return Span(*matches[-1].span()) if matches else None


def grow_right(text: str, span: Span, sentence: Span) -> Span:
    """Take in the items that stand behind a span."""
    end = span.end
    while separator := SEPARATOR.match(text, end, sentence.end):
        following = SEPARATOR.search(text, separator.end(), sentence.end)
        words = [
            Span(*m.span())
            for m in _WORD.finditer(text, separator.end(), following.start() if following else sentence.end)
        ]
        item = join_item_words(text, words, text[span.start].isupper())
        if item is None or text[separator.end() : item.start].strip():
            break
        end = item.end
    while end > span.end and text[end - 1] in ".!?;:":
        end -= 1
    return Span(span.start, end)


def join_item_words(text: str, words: Iterable[Span], is_name: bool) -> Span | None:
    """Join the words of an item, up to one that ends it."""
    item: Span | None = None
    for count, word in enumerate(words):
        content = text[word.start : word.end].strip(_EDGE + "!?").lower()
        is_small = text[word.start].islower() and content not in _INSIDE | _ARTICLES
        if content in _BREAKERS or count >= MAX_ITEM_WORDS or (is_name and is_small):
            break
        item = Span(min(word.start, item.start), max(word.end, item.end)) if item else word
        if content in _ARTICLES and item.end != word.end:
            break  # leftwards, an item begins with its article
    return item
