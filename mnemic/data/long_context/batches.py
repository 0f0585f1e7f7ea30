"""Batches of long documents, assembled on the fly: only the stories are stored.

Shapes: b documents, s segments, n tokens of a segment, q tokens of a question, w words of an
answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from random import Random
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mnemic.data.batches import AssembledDataset, move_batch, ordinary_ids_of
from mnemic.data.long_context.background import Background
from mnemic.data.long_context.hide import (
    Segment,
    SentenceTokens,
    StoryPosition,
    cut_segments,
    draw_excerpt,
    hide_story,
    insert_distractors,
)
from mnemic.models.inputs import IGNORE, NOT_A_FACT, OUTSIDE_STORY, BatchSizes, SegmentBatch
from mnemic.text import SubwordTokenizer

FILL_RATE = 0.93  # average fill of a segment, since sentences are not cut
NO_TOKENS = np.zeros(0, dtype=np.int32)
TOKEN_TARGETS = ("masked", "next")  # targets that are tokens of the document itself
TargetKind = Literal["question", "sentence", "masked", "next"]


class LongBatch(NamedTuple):
    """A batch of long documents: model inputs, answers, and labels for the memory's losses."""

    inputs: SegmentBatch
    answers: Tensor  # b w, ids; IGNORE = padding
    facts: Tensor  # b s n, which sentence of the proof a token is in; OTHER, OUTSIDE = none
    has_facts: Tensor  # b, whether supporting sentences are annotated
    all_have_facts: bool  # whether they are for all documents
    max_facts: int  # the largest number of supporting sentences
    next_sentence_labels: Tensor  # b, 1 = the question continues the document; IGNORE = none
    word_starts: Tensor  # b s n, True = first token of a word
    mask_seeds: Tensor  # b, seeds of the random masking
    mask_id: Tensor  # the id of the mask token
    ordinary_ids: Tensor  # ids of ordinary tokens, for random replacement

    @property
    def fact_mask(self) -> Tensor:
        """Mask the tokens of sentences that prove the answer, b s n."""
        return self.facts >= 0


class LongExample(NamedTuple):
    """A tokenized story with its question and answer."""

    story: tuple[np.ndarray, ...]
    question: np.ndarray
    answer: np.ndarray
    facts: tuple[int, ...]  # sentences of the story that prove the answer, in the proof's order
    task: int
    all_facts: frozenset[int] = frozenset()  # facts of all questions about the same article
    paragraph_tokens: tuple[int, ...] = ()  # per sentence: size of the paragraph it begins, or 0


class LongDocument(NamedTuple):
    """A sample: a stream of segments, and the example with the question at its end."""

    segments: Iterator[Segment]
    example: LongExample
    follows: int = IGNORE
    mask_seed: int = 0


@dataclass(frozen=True, kw_only=True)
class LongDataset(AssembledDataset):
    """Documents of about ``segments`` segments each; in training, of up to that many.

    With ``uniforms`` a batch has other background text each time an example is drawn.
    """

    metrics: ClassVar[str] = "recall"
    num_uniforms: ClassVar[int] = 1  # which seeds the background of an example
    examples: Sequence[LongExample]
    background: Background
    tokenizer: SubwordTokenizer
    length: int  # tokens of a segment, with special tokens
    segments: int
    target: TargetKind = "question"
    where: StoryPosition = "anywhere"  # in the document
    distractor_rate: float = 0.0  # distractors per sentence of background
    seed: int = 0

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def task(self) -> Tensor:
        """Return the task of each example."""
        return torch.tensor([example.task for example in self.examples])

    @property
    def lengths(self) -> Tensor:
        """Count the tokens of each story, without background."""
        return torch.tensor([sum(map(len, example.story)) for example in self.examples])

    @property
    def max_text_tokens(self) -> int:
        """Return the number of text tokens per segment, without special tokens."""
        return self.length - 2

    def with_segments(self, segments: int) -> "LongDataset":
        """Return the same examples in documents of another length."""
        return replace(self, segments=segments)

    def draw_document(self, row: int, uniform: float | None = None) -> LongDocument:
        """Draw the document of an example.

        With ``uniform`` its background and its number of segments are random; if ``target`` is
        "question", the document may then consist of the story alone.
        """
        seed = f"{self.seed}/{row}/{uniform}"
        document = self.draw_segments_and_question(self.examples[row], Random(seed), is_random=uniform is not None)
        return document._replace(mask_seed=Random(seed).getrandbits(62))

    def draw_segments_and_question(self, example: LongExample, generator: Random, *, is_random: bool) -> LongDocument:
        """Draw the segments of a document, of random length if ``is_random``, and its question."""
        min_segments = int(self.target != "question")
        num_segments = generator.randint(min_segments, self.segments) if is_random else self.segments
        if self.target in TOKEN_TARGETS:
            return self.draw_span(num_segments, generator)
        num_tokens = int(num_segments * self.max_text_tokens * FILL_RATE)
        if self.target == "sentence":
            excerpt = draw_excerpt(example.story, example.facts, num_tokens, generator)
            marked = (mark_article_sentence(sentence, example) for sentence in excerpt)
            return LongDocument(cut_segments(marked, self.max_text_tokens), example)
        background = self.background.stream_sentences(generator)
        if self.distractor_rate:
            background = insert_distractors(example.story, background, self.distractor_rate, generator)
        sentences = hide_story(example.story, background, num_tokens, generator, position=self.where)
        return LongDocument(cut_segments(sentences, self.max_text_tokens), example)

    def draw_span(self, num_segments: int, generator: Random) -> LongDocument:
        """Draw a span of a text, and as question its continuation or a random segment.

        This is next-sentence prediction: in half of the documents the question follows the span.
        """
        segments = {True: self.draw_segments(num_segments + 1, generator), False: self.draw_segments(1, generator)}
        *document_segments, next_segment = segments[True] if len(segments[True]) > 1 else [*segments[True], []]
        is_next = generator.random() < 0.5
        ids = [sentence.ids for sentence in (next_segment if is_next else segments[False][0])]
        question = np.concatenate([NO_TOKENS, *ids])[: self.max_text_tokens]
        example = LongExample((), question, NO_TOKENS, (), 0)
        return LongDocument(iter(document_segments), example, int(is_next) if ids else IGNORE)

    def draw_segments(self, max_segments: int, generator: Random) -> list[Segment]:
        """Draw up to ``max_segments`` consecutive segments of a random text.

        The start leaves enough text for all of them, if the text is long enough.
        """
        novel = generator.randrange(len(self.background))
        first_sentence, end_sentence = self.background.novel_starts[novel : novel + 2]
        num_tokens = self.background.sentence_starts[end_sentence] - self.background.sentence_starts[first_sentence]
        spare_share = max(1 - max_segments * self.max_text_tokens / max(int(num_tokens), 1), 0)
        start = int(generator.random() * spare_share * self.background.count_sentences(novel))
        sentences = (SentenceTokens(ids) for ids in self.background.iterate_novel(novel, start))
        return list(islice(cut_segments(sentences, self.max_text_tokens), max_segments))

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> LongBatch:
        """Build the batch of the documents ``rows`` (b), with all their segments."""
        row_numbers = rows.tolist()
        row_uniforms = [None] * len(row_numbers) if uniforms is None else uniforms.flatten().tolist()
        documents = [self.draw_document(*draw) for draw in zip(row_numbers, row_uniforms)]
        return self.assemble_batch(documents, [list(document.segments) for document in documents])

    def stream(self, rows: Sequence[int], segments_per_batch: int) -> Iterator[LongBatch]:
        """Yield the documents ``rows`` in batches of ``segments_per_batch`` segments.

        A document that has ended is padding from then on.
        """
        documents = [self.draw_document(row) for row in rows]
        while True:
            segments = [list(islice(document.segments, segments_per_batch)) for document in documents]
            if not any(segments):
                return
            yield self.assemble_batch(documents, segments)

    def assemble_batch(self, documents: Sequence[LongDocument], segments: Sequence[list[Segment]]) -> LongBatch:
        """Assemble segments and the examples of their documents into one batch."""
        arrays = fill_arrays(documents, segments, self.tokenizer, self.length)
        examples = [document.example for document in documents]
        answer_array = pad_rows([np.append(example.answer, self.tokenizer.sep) for example in examples])
        question_array = pad_rows([add_special_tokens(example.question, self.tokenizer) for example in examples])
        tokens, sentences, facts, answer, question = map(torch.from_numpy, (*arrays, answer_array, question_array))
        real_segments = (arrays[0][..., 0] == self.tokenizer.cls).reshape(-1).nonzero()[0]
        num_tokens = 2 * len(real_segments) + int((arrays[1] >= 0).sum())
        text_mask = sentences >= 0
        special_mask = (tokens == self.tokenizer.cls) | (tokens == self.tokenizer.sep)
        inputs = SegmentBatch(
            tokens, text_mask | special_mask, text_mask,
            question.clamp(min=0), question >= 0, answer.clamp(min=0),
            sentence_ids=sentences,
            sizes=BatchSizes(torch.from_numpy(real_segments), int(arrays[1].max()) + 1, num_tokens),
        )  # fmt: skip
        has_answer = torch.tensor([len(example.answer) > 0 for example in examples])
        batch = LongBatch(
            inputs=inputs,
            answers=torch.where((answer >= 0) & has_answer.unsqueeze(1), answer, IGNORE),
            facts=facts,
            has_facts=torch.tensor([bool(example.facts) for example in examples]),
            all_have_facts=all(example.facts for example in examples),
            max_facts=max(len(example.facts) for example in examples),
            next_sentence_labels=torch.tensor([document.follows for document in documents]),
            word_starts=word_start_mask(self.tokenizer)[tokens],
            mask_seeds=torch.tensor([document.mask_seed for document in documents]),
            mask_id=torch.tensor(self.tokenizer.mask),
            ordinary_ids=ordinary_ids_of(self.tokenizer),
        )
        return move_batch(batch, self.batch_device)


def mark_article_sentence(sentence: SentenceTokens, example: LongExample) -> SentenceTokens:
    """Mark a sentence as background if no question is about it; add its paragraph's size."""
    fact = sentence.fact if sentence.fact in example.all_facts else -1
    paragraph_tokens = example.paragraph_tokens[sentence.fact] if example.paragraph_tokens else 0
    return SentenceTokens(sentence.ids, fact, paragraph_tokens)


def fill_arrays(
    documents: Sequence[LongDocument], segments: Sequence[list[Segment]], tokenizer: SubwordTokenizer, length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fill arrays of tokens, sentence numbers (-1: none) and fact numbers, b s n each."""
    shape = (len(segments), max(max(len(sentence_facts) for sentence_facts in segments), 1), length)
    tokens = np.full(shape, tokenizer.pad, dtype=np.int64)
    sentences = np.full(shape, -1, dtype=np.int64)
    facts = np.full(shape, OUTSIDE_STORY, dtype=np.int64)
    cls, sep = [tokenizer.cls], [tokenizer.sep]
    for row, (document, document_segments) in enumerate(zip(documents, segments)):
        position_of_fact = {fact: position for position, fact in enumerate(document.example.facts)}
        for column, pieces in enumerate(document_segments):
            sizes = [len(piece.ids) for piece in pieces]
            inside = (row, column, slice(0, 2 + sum(sizes)))
            tokens[inside] = np.concatenate([cls, *(piece.ids for piece in pieces), sep])
            inside = (row, column, slice(1, 1 + sum(sizes)))
            sentences[inside] = np.repeat(np.arange(len(pieces)), sizes)
            if any(piece.fact >= 0 for piece in pieces):
                sentence_facts = [
                    position_of_fact.get(sentence.fact, NOT_A_FACT if sentence.fact >= 0 else OUTSIDE_STORY)
                    for sentence in pieces
                ]
                facts[inside] = np.repeat(sentence_facts, sizes)
    return tokens, sentences, facts


def pad_rows(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Pad rows of ids with -1 to one array."""
    table = np.full((len(rows), max(map(len, rows))), -1, dtype=np.int64)
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return table


def add_special_tokens(ids: np.ndarray, tokenizer: SubwordTokenizer) -> np.ndarray:
    """Put the special tokens before and after a text."""
    return np.concatenate([[tokenizer.cls], ids, [tokenizer.sep]])


@lru_cache(maxsize=4)
def word_start_mask(tokenizer: SubwordTokenizer) -> Tensor:
    """Mask the ids that begin a word: all but continuation pieces (##)."""
    return torch.tensor([not piece.startswith("##") for piece in tokenizer.pieces])
