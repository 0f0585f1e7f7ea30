"""Encode stories as tensors and batch them.

Each distinct text is stored once; stories and questions are row numbers in that table.

Shapes: u texts, w words, q questions of the dataset, b batch, n sentences, m questions per example
(1), f facts of the question with the most facts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple
from zlib import crc32

import torch
from torch import Tensor

from mnemic.data.babi.format import StoryExample
from mnemic.data.batches import TensorDataset
from mnemic.models import IGNORE, StoryInputs
from mnemic.text import WordTokenizer


class StoryBatch(NamedTuple):
    """A batch of stories with questions: model inputs and targets."""

    inputs: StoryInputs
    answers: Tensor  # b m, word ids
    chain: Tensor  # b f, the supporting sentences in the order of the proof; IGNORE = padding


@dataclass(frozen=True)
class StoryDataset(TensorDataset):
    """Questions with their stories, encoded as tensors on one device."""

    metrics: ClassVar[str] = "questions"
    texts: Tensor  # u w, word ids, 0 = padding
    story: Tensor  # q n, rows of texts, oldest first, -1 = padding
    question: Tensor  # q, rows of texts
    answer: Tensor  # q, word ids
    task: Tensor  # q
    facts: Tensor  # q n, True where the sentence proves the answer
    chain: Tensor  # q f, the same sentences in the order of the proof; IGNORE = none, or truncated

    def __len__(self) -> int:
        return self.answer.shape[0]

    @property
    def num_unknown(self) -> int:
        """Count questions whose answer is not in the vocabulary."""
        return int((self.answer == IGNORE).sum())

    def select(self, rows: Tensor) -> "StoryDataset":
        """Select some of the questions; the table of texts stays shared."""
        columns = {name: value for name, value in vars(self).items() if name != "texts" and value is not None}
        return replace(self, **{name: column[rows] for name, column in columns.items()})

    @property
    def lengths(self) -> Tensor:
        """Count the sentences of each story."""
        return (self.story >= 0).sum(1)

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> StoryBatch:
        """Build the batch of the questions ``rows``, of shape b or (runs, b).

        With (runs, b) every tensor of the batch has a leading runs axis. ``compact`` keeps only the
        texts and columns that are in use, each once. Without it all batches have the same shapes,
        as a CUDA graph needs, and nothing waits for the device: a batch then holds every text of
        the dataset once or, if that is larger, one text per position.
        """
        if rows.dim() == 2 and compact:
            run_uniforms = [None] * len(rows) if uniforms is None else uniforms
            return stack_batches([self.batch(*run) for run in zip(rows, run_uniforms)])
        story = self.story[:, :max_length][rows]  # b n
        question = self.question[rows].unsqueeze(-1)  # b 1
        if compact:
            texts, story, question = self.drop_unused_texts(story, question)
        elif len(self.texts) <= story.shape[-2] * (story.shape[-1] + 1):
            texts = self.texts.expand(*rows.shape[:-1], -1, -1)
        else:
            text_rows = torch.cat([story.clamp(min=0).flatten(-2), question.flatten(-2)], -1)
            texts = self.texts[text_rows]
            positions = torch.arange(text_rows.shape[-1], device=text_rows.device)
            story_positions, question_positions = positions.tensor_split([-story.shape[-2]])
            story = torch.where(story >= 0, story_positions.view(story.shape[-2:]), -1)
            question = question_positions.unsqueeze(-1).expand_as(question)
        inputs = StoryInputs(texts, texts > 0, story, question, uniforms)
        return StoryBatch(inputs, self.answer[rows].unsqueeze(-1), self.chain[rows])

    def is_wrong(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Report for each question whether its most probable answer is wrong, b."""
        return logits.argmax(-1) != self.answer[rows]

    def drop_unused_texts(self, story: Tensor, question: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Keep only the texts in use; renumber ``story`` and ``question`` accordingly."""
        longest = int((story >= 0).sum(1).max()) if story.numel() else 0
        story = story[:, :longest]
        used_texts, rows = torch.cat([story.flatten(), question.flatten()]).unique(return_inverse=True)
        if used_texts[0] < 0:  # -1 sorts first and stays -1
            used_texts, rows = used_texts[1:], rows - 1
        texts = self.texts[used_texts]
        width = int((texts > 0).sum(1).max()) if texts.numel() else 0
        story_rows, question_rows = rows.split([story.numel(), question.numel()])
        return texts[:, : max(width, 1)], story_rows.view_as(story), question_rows.view_as(question)


def stack_batches(batches: Sequence[StoryBatch]) -> StoryBatch:
    """Stack the batches of several runs into one, padded to the same shapes."""
    inputs, answers, chains = zip(*batches)
    texts, masks, stories, questions, uniforms, *_ = zip(*inputs)
    joined = StoryInputs(
        pad_and_stack(texts, 0),
        pad_and_stack(masks, False),
        pad_and_stack(stories, -1),
        torch.stack(questions),
        None if uniforms[0] is None else torch.stack(uniforms),
    )
    return StoryBatch(joined, torch.stack(answers), torch.stack(chains))


def pad_and_stack(tables: Sequence[Tensor], filler: int) -> Tensor:
    """Stack 2-D tensors of different sizes, padded with ``filler`` at right and bottom."""
    height, width = (max(table.shape[axis] for table in tables) for axis in (0, 1))
    stacked = tables[0].new_full((len(tables), height, width), filler)
    for index, table in enumerate(tables):
        stacked[index, : table.shape[0], : table.shape[1]] = table
    return stacked


def build_tokenizer(examples: Iterable[StoryExample]) -> WordTokenizer:
    """Build a tokenizer from all stories and questions; an answer is one entry, never split."""
    texts: set[str] = set()
    answers: set[str] = set()
    for example in examples:
        texts.update(example.sentences, [example.question])
        answers.add(example.answer)
    return WordTokenizer.from_texts(sorted(texts), extra=sorted(answers))


def split_multiword_answers(tokenizer: WordTokenizer) -> list[list[int]]:
    """List the ids of each multi-word answer, such as ``milk,football``, and of its words.

    Words that are not vocabulary entries get ids from the vocabulary's size upwards.
    """
    word_ids = {word: number for number, word in enumerate(tokenizer.vocabulary)}
    multiword_answers = [answer for answer in tokenizer.vocabulary if len(split_answer(answer)) > 1]
    for answer in multiword_answers:
        for word in split_answer(answer):
            word_ids.setdefault(word, len(word_ids))
    return [[word_ids[word] for word in (answer, *split_answer(answer))] for answer in multiword_answers]


def split_answer(answer: str) -> list[str]:
    """Split an answer such as ``milk,football`` at its commas."""
    return [word.strip() for word in answer.split(",") if word.strip()]


def encode_examples(
    examples: Sequence[StoryExample], tokenizer: WordTokenizer, *, max_sentences: int | None = None, num_unseen: int = 0
) -> StoryDataset:
    """Encode examples as a dataset, with the last ``max_sentences`` sentences of each story.

    Words outside the vocabulary are dropped; or, with ``num_unseen`` extra ids after the
    vocabulary, each such word is hashed to one of those ids.
    """
    text_rows: dict[str, int] = {}
    stories = [example.sentences[-(max_sentences or 0) :] for example in examples]
    for story_sentences, example in zip(stories, examples):
        for text in (*story_sentences, example.question):
            text_rows.setdefault(text, len(text_rows))
    ids = [encode_text(text, tokenizer, num_unseen) for text in text_rows]
    max_story_length = max((len(story_sentences) for story_sentences in stories), default=0)
    story = torch.full((len(stories), max_story_length), -1)
    facts = torch.zeros(len(stories), max_story_length, dtype=torch.bool)
    max_facts = max((len(example.facts) for example in examples), default=0)
    chain = torch.full((len(stories), max_facts), IGNORE)
    for row, (story_sentences, example) in enumerate(zip(stories, examples)):
        story[row, : len(story_sentences)] = torch.tensor([text_rows[text] for text in story_sentences])
        num_dropped = len(example.sentences) - len(story_sentences)
        for position, fact in enumerate(example.facts):
            if fact >= num_dropped:
                facts[row, fact - num_dropped] = True
                chain[row, position] = fact - num_dropped
    return StoryDataset(
        pad_rows(ids),
        story,
        torch.tensor([text_rows[example.question] for example in examples], dtype=torch.long),
        torch.tensor([answer_id_of(tokenizer, example.answer) for example in examples], dtype=torch.long),
        torch.tensor([example.task for example in examples], dtype=torch.long),
        facts,
        chain,
    )


def encode_text(text: str, tokenizer: WordTokenizer, num_unseen: int = 0) -> list[int]:
    """Encode a text as word ids; hash unknown words to extra ids.

    With ``num_unseen`` 0 they are dropped.
    """
    encoding, ids = tokenizer.encode(text), []
    for word_id, (start, end) in zip(encoding.ids, encoding.offsets):
        if word_id != tokenizer.unknown:
            ids.append(word_id)
        elif num_unseen:
            ids.append(len(tokenizer) + crc32(text[start:end].lower().encode()) % num_unseen)
    return ids


def answer_id_of(tokenizer: WordTokenizer, answer: str) -> int:
    """Look up an answer's id; IGNORE if the vocabulary lacks it."""
    return tokenizer.id_of(answer) if answer in tokenizer else IGNORE


def pad_rows(rows: Sequence[Sequence[int]]) -> Tensor:
    """Pad rows of ids with zeros to one tensor of at least one column."""
    table = torch.zeros(len(rows), max(1, *(len(row) for row in rows), 1), dtype=torch.long)
    for index, row in enumerate(rows):
        table[index, : len(row)] = torch.tensor(row, dtype=torch.long)
    return table
