"""Split the pieces of a file into passages of whole sentences.

Passages are the slots of a document memory.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, pairwise
from typing import NamedTuple

from mnemic.text.documents.boxes import Box
from mnemic.text.documents.piece import DocumentPiece
from mnemic.text.documents.units import find_unit_ends
from mnemic.text.sentences import Span, split_sentences, trim_span

MAX_PASSAGE_TOKENS = 200
MAX_HEADING_LENGTH = 100  # characters
_WORD = re.compile(r"\S+\s*")
_STOPS = ".!?:;,。！？：；，…"
_BLANKS = re.compile(r"\s+")

TokenCounter = Callable[[Sequence[str]], list[int]]  # texts → number of tokens of each


class Sentence(NamedTuple):
    """A sentence of a passage, with its position in the original file."""

    start: int  # in the text of the passage
    end: int
    line: int  # of the original, from 1; 0 if it has no lines
    first: int  # in the original
    last: int


class Passage(NamedTuple):
    """Consecutive sentences of a piece, with the text between them.

    Within a sentence, the text has the line breaks of the original.
    """

    text: str
    page: int | None
    sentences: tuple[Sentence, ...]
    boxes: tuple[Box, ...] = ()  # of its lines, from that of the first sentence on; empty: unknown

    def count_lines(self) -> int:
        """Count the lines of the original from the first sentence to the last."""
        first, last = self.sentences[0], self.sentences[-1]
        return last.line - first.line + self.text.count("\n", last.start, last.end) + 1

    def boxes_of(self, sentence: Sentence) -> tuple[Box, ...]:
        """Return the boxes of the lines of a sentence; empty if they are unknown."""
        first = max(sentence.line - self.sentences[0].line, 0)
        return self.boxes[first : first + self.text.count("\n", sentence.start, sentence.end) + 1]

    def mark_units(self) -> str:
        """Return the text with a stop, for a line break, after units without one.

        A network sees no line breaks: to it, the lines of a list would be one sentence.
        """
        parts, position = [], 0
        for sentence, after in pairwise(self.sentences):
            if "\n" in self.text[sentence.end : after.start] and self.text[sentence.end - 1] not in _STOPS:
                parts += [self.text[position : sentence.end], "."]
                position = sentence.end + 1
        return "".join([*parts, self.text[position:]])


class SizedSpan(NamedTuple):
    """A sentence, or part of a long one, with its number of tokens."""

    span: Span
    num_tokens: int


def split_passages(
    pieces: Iterable[DocumentPiece], count_tokens: TokenCounter, max_tokens: int = MAX_PASSAGE_TOKENS
) -> Iterator[Passage]:
    """Group the sentences of pieces into passages of at most ``max_tokens`` tokens.

    A passage never crosses the border of a piece, and ends with its paragraph if it is at least
    half full. A heading stays with what follows it. Only a unit longer than a passage is cut,
    between sentences, or between words where it has any.
    """
    for piece in pieces:
        units: list[SizedSpan] = []
        for unit in split_piece(piece, count_tokens, max_tokens):
            if units and is_passage_end(piece, units, unit, max_tokens):
                num_headings = count_last_headings(piece.text, units, max_tokens - unit.num_tokens)
                yield build_passage(piece, units[: len(units) - num_headings])
                units = units[len(units) - num_headings :]
            units.append(unit)
        if units:
            yield build_passage(piece, units)


def is_passage_end(piece: DocumentPiece, units: Sequence[SizedSpan], next_unit: SizedSpan, max_tokens: int) -> bool:
    """Check whether the passage of ``units`` ends before ``next_unit``."""
    size = sum(unit.num_tokens for unit in units)
    between = piece.text[units[-1].span.end : next_unit.span.start]
    ends_paragraph = between.count("\n") > 1
    return size + next_unit.num_tokens > max_tokens or (ends_paragraph and size >= max_tokens / 2)


def count_last_headings(text: str, units: Sequence[SizedSpan], max_tokens: int) -> int:
    """Count the last headings of a passage that can move on; never all units."""
    number, num_tokens = 0, 0
    while number + 1 < len(units) and is_heading(text, units[-number - 1].span):
        num_tokens += units[-number - 1].num_tokens
        number += 1
    return number if num_tokens <= max_tokens else 0


def is_heading(text: str, span: Span) -> bool:
    """Check whether a unit is a short line after a blank one, without a stop."""
    content = text[span.start : span.end]
    before = text[max(span.start - MAX_HEADING_LENGTH, 0) : span.start]
    follows_blank = before.count("\n", len(before.rstrip())) > 1 or not before.strip()
    is_line = len(content) <= MAX_HEADING_LENGTH and "\n" not in content
    return follows_blank and is_line and content[-1] not in ".!?;,。！？；，、"


def split_piece(piece: DocumentPiece, count_tokens: TokenCounter, max_tokens: int) -> Iterator[SizedSpan]:
    """Split a piece into sentences or rows, cut to at most ``max_tokens`` tokens each."""
    cuts = find_unit_ends(piece.text) if piece.cuts is None else piece.cuts
    spans = [Span(*bounds) for bounds in zip((0, *cuts), cuts)]
    sentence_spans = [span for span in (trim_span(piece.text, span) for span in spans) if span.end > span.start]
    sizes = count_tokens([piece.text[span.start : span.end] for span in sentence_spans])
    for span, size in zip(sentence_spans, sizes):
        if size <= max_tokens:
            yield SizedSpan(span, size)
        else:
            yield from split_long_unit(piece.text, span, count_tokens, max_tokens)


def split_long_unit(text: str, span: Span, count_tokens: TokenCounter, max_tokens: int) -> Iterator[SizedSpan]:
    """Split a long unit into its sentences, and a long sentence into its words."""
    sentences = [
        Span(span.start + start, span.start + end) for start, end in split_sentences(text[span.start : span.end])
    ]
    sentences = [trim_span(text, sentence) for sentence in sentences]
    sizes = count_tokens([text[sentence.start : sentence.end] for sentence in sentences])
    for sentence, size in zip(sentences, sizes):
        if size <= max_tokens:
            yield SizedSpan(sentence, size)
        else:
            yield from split_long_sentence(text, sentence, count_tokens, max_tokens)


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
    bounds = [start, *(bound for span, _ in units for bound in span), end]
    texts = [
        match_line_breaks(piece, Span(*bounds)) if is_unit else piece.text[slice(*bounds)]
        for bounds, is_unit in zip(pairwise(bounds), cycle((False, True)))
    ]
    passage = Passage("".join(texts), piece.page, sentences)
    boxes = piece.boxes_from(start)[: max(passage.count_lines(), 0)]
    return passage._replace(boxes=boxes if len(boxes) == passage.count_lines() else ())


def match_line_breaks(piece: DocumentPiece, span: Span) -> str:
    """Return a unit whose white space has the line breaks of the original.

    The line of a word then is that of the unit plus the line breaks before the word. A break inside
    a word of the original comes with the next white space. The length stays.
    """
    text = piece.text[span.start : span.end]
    if piece.anchor_of(span.start) == piece.anchor_of(span.end - 1) or not piece.anchors[0].line:
        return text
    line, parts, position = piece.line_of(span.start), list[str](), 0
    for match in _BLANKS.finditer(text):
        blanks = match.group()
        needed = piece.line_of(span.start + match.end()) - line
        if blanks.count("\n") != needed:
            num_breaks = max(min(needed, len(blanks)), 0)
            blanks = "\n" * num_breaks + " " * (len(blanks) - num_breaks)
        line += blanks.count("\n")
        parts += [text[position : match.start()], blanks]
        position = match.end()
    return "".join([*parts, text[position:]])
