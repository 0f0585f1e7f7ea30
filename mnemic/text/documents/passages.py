"""From pieces of a file to passages: the slots of a lasting memory, made of whole sentences."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from mnemic.text.documents.piece import Piece
from mnemic.text.sentences import Span, sentences, trim

TOKENS = 200  # of a passage, at most
_WORD = re.compile(r"\S+\s*")

Measure = Callable[[Sequence[str]], list[int]]  # texts → how many tokens each has


class Sentence(NamedTuple):
    """A sentence of a passage, and its place in the original."""

    start: int  # in the passage's text
    end: int
    line: int  # of the original, from 1; 0: it has no lines
    first: int  # in the original
    last: int


class Passage(NamedTuple):
    """Some sentences that follow each other, with what stands between them."""

    text: str
    page: int | None
    sentences: tuple[Sentence, ...]


class Unit(NamedTuple):
    """A sentence that has not found its passage yet."""

    span: Span
    tokens: int


def passages(pieces: Iterable[Piece], measure: Measure, tokens: int = TOKENS) -> Iterator[Passage]:
    """Passages of at most ``tokens``; none crosses the border of a piece.

    A passage that is half full ends with its paragraph. Only a sentence longer than a passage is
    cut, between words where it has any.
    """
    for piece in pieces:
        held: list[Unit] = []
        for unit in units(piece, measure, tokens):
            if held and ends(piece, held, unit, tokens):
                yield passage(piece, held)
                held = []
            held.append(unit)
        if held:
            yield passage(piece, held)


def ends(piece: Piece, held: Sequence[Unit], unit: Unit, tokens: int) -> bool:
    """Whether a passage ends before ``unit``."""
    size = sum(one.tokens for one in held)
    between = piece.text[held[-1].span.end : unit.span.start]
    paragraph = between.count("\n") > 1
    return size + unit.tokens > tokens or (paragraph and size >= tokens / 2)


def units(piece: Piece, measure: Measure, tokens: int) -> Iterator[Unit]:
    """The sentences, or rows, of a piece, those that are too long cut up."""
    if piece.cuts is None:
        spans = sentences(piece.text)
    else:
        spans = [Span(*both) for both in zip((0, *piece.cuts), piece.cuts)]
    trimmed = [span for span in (trim(piece.text, span) for span in spans) if span.end > span.start]
    sizes = measure([piece.text[span.start : span.end] for span in trimmed])
    for span, size in zip(trimmed, sizes):
        if size <= tokens:
            yield Unit(span, size)
        elif piece.cuts is not None:  # a long row may have sentences
            row = Piece(piece.text[span.start : span.end], piece.anchors)
            for unit in units(row, measure, tokens):
                yield unit._replace(span=moved(unit.span, span.start))
        else:
            yield from parts(piece.text, span, measure, tokens)


def parts(text: str, span: Span, measure: Measure, tokens: int) -> Iterator[Unit]:
    """A sentence in stretches of words that are short enough, one word cut if it must be."""
    words = [Span(*found.span()) for found in _WORD.finditer(text, span.start, span.end)]
    short = [
        Span(start, min(start + tokens, word.end))  # a token has one character at least
        for word in words
        for start in range(word.start, word.end, tokens)
    ]
    sizes = measure([text[word.start : word.end] for word in short])
    start, total = short[0].start, 0
    for word, size in zip(short, sizes):
        if total and total + size > tokens:
            yield Unit(trim(text, Span(start, word.start)), total)
            start, total = word.start, 0
        total += size
    yield Unit(trim(text, Span(start, short[-1].end)), total)


def moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


def passage(piece: Piece, held: Sequence[Unit]) -> Passage:
    start, end = held[0].span.start, held[-1].span.end
    found = tuple(
        Sentence(
            one.start - start,
            one.end - start,
            piece.line(one.start),
            piece.origin(one.start),
            piece.origin(one.end - 1) + 1,
        )
        for one, _ in held
    )
    return Passage(piece.text[start:end], piece.page, found)
