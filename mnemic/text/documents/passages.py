"""Split the pieces of a file into passages of whole sentences.

Passages are the slots of a document memory.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from mnemic.text.documents.piece import DocumentPiece
from mnemic.text.sentences import Span, split_sentences, trim_span

MAX_PASSAGE_TOKENS = 200
_WORD = re.compile(r"\S+\s*")

TokenCounter = Callable[[Sequence[str]], list[int]]  # texts → number of tokens of each


class Sentence(NamedTuple):
    """A sentence of a passage, with its position in the original file."""

    start: int  # in the text of the passage
    end: int
    line: int  # of the original, from 1; 0 if it has no lines
    first: int  # in the original
    last: int


class Passage(NamedTuple):
    """Consecutive sentences of a piece, with the text between them."""

    text: str
    page: int | None
    sentences: tuple[Sentence, ...]


class SizedSpan(NamedTuple):
    """A sentence, or part of a long one, with its number of tokens."""

    span: Span
    num_tokens: int


def split_passages(
    pieces: Iterable[DocumentPiece], count_tokens: TokenCounter, max_tokens: int = MAX_PASSAGE_TOKENS
) -> Iterator[Passage]:
    """Group the sentences of pieces into passages of at most ``max_tokens`` tokens.

    A passage never crosses the border of a piece, and ends with its paragraph if it is at least
    half full. Only a sentence longer than a passage is cut, between words where it has any.
    """
    for piece in pieces:
        units: list[SizedSpan] = []
        for unit in split_piece(piece, count_tokens, max_tokens):
            if units and is_passage_end(piece, units, unit, max_tokens):
                yield build_passage(piece, units)
                units = []
            units.append(unit)
        if units:
            yield build_passage(piece, units)


def is_passage_end(piece: DocumentPiece, units: Sequence[SizedSpan], next_unit: SizedSpan, max_tokens: int) -> bool:
    """Check whether the passage of ``units`` ends before ``next_unit``."""
    size = sum(unit.num_tokens for unit in units)
    between = piece.text[units[-1].span.end : next_unit.span.start]
    ends_paragraph = between.count("\n") > 1
    return size + next_unit.num_tokens > max_tokens or (ends_paragraph and size >= max_tokens / 2)


def split_piece(piece: DocumentPiece, count_tokens: TokenCounter, max_tokens: int) -> Iterator[SizedSpan]:
    """Split a piece into sentences or rows, cut to at most ``max_tokens`` tokens each."""
    if piece.cuts is None:
        spans = split_sentences(piece.text)
    else:
        spans = [Span(*bounds) for bounds in zip((0, *piece.cuts), piece.cuts)]
    sentence_spans = [span for span in (trim_span(piece.text, span) for span in spans) if span.end > span.start]
    sizes = count_tokens([piece.text[span.start : span.end] for span in sentence_spans])
    for span, size in zip(sentence_spans, sizes):
        if size <= max_tokens:
            yield SizedSpan(span, size)
        elif piece.cuts is not None:  # a long row may have sentences
            row = DocumentPiece(piece.text[span.start : span.end], piece.anchors)
            for unit in split_piece(row, count_tokens, max_tokens):
                yield unit._replace(span=Span(span.start + unit.span.start, span.start + unit.span.end))
        else:
            yield from split_long_sentence(piece.text, span, count_tokens, max_tokens)


def split_long_sentence(text: str, span: Span, count_tokens: TokenCounter, max_tokens: int) -> Iterator[SizedSpan]:
    """Split a long sentence between words, or within a word that is too long."""
    words = [Span(*match.span()) for match in _WORD.finditer(text, span.start, span.end)]
    chunks = [
        Span(start, min(start + max_tokens, chunk.end))  # a token has at least one character
        for chunk in words
        for start in range(chunk.start, chunk.end, max_tokens)
    ]
    sizes = count_tokens([text[chunk.start : chunk.end] for chunk in chunks])
    start, total = chunks[0].start, 0
    for chunk, size in zip(chunks, sizes):
        if total and total + size > max_tokens:
            yield SizedSpan(trim_span(text, Span(start, chunk.start)), total)
            start, total = chunk.start, 0
        total += size
    yield SizedSpan(trim_span(text, Span(start, chunks[-1].end)), total)


def build_passage(piece: DocumentPiece, units: Sequence[SizedSpan]) -> Passage:
    """Build a passage from units of a piece, with each sentence's position in the original."""
    start, end = units[0].span.start, units[-1].span.end
    sentences = tuple(
        Sentence(
            span.start - start,
            span.end - start,
            piece.line_of(span.start),
            piece.origin_of(span.start),
            piece.origin_of(span.end - 1) + 1,
        )
        for span, _ in units
    )
    return Passage(piece.text[start:end], piece.page, sentences)
