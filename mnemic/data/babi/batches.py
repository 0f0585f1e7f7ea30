"""Stories as tensors: every different text once, stories as rows of it.

Shapes: u texts, w words, q questions of the set, b batch, n sentences, m questions asked (1),
f facts of the question that has most.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

import torch
from torch import Tensor

from mnemic.data.babi.format import Example
from mnemic.models import IGNORE, Inputs
from mnemic.text import Words


class Batch(NamedTuple):
    """What a network reads, and what it should have answered."""

    inputs: Inputs
    answers: Tensor  # b m, word ids
    chain: Tensor  # b f, the sentences that prove the answer, in order; IGNORE = no such fact


class Stories(NamedTuple):
    """A set of questions, each with its story; on one device, ready to be indexed."""

    texts: Tensor  # u w, word ids, 0 = padding
    story: Tensor  # q n, rows of texts, oldest first, -1 = nothing there
    question: Tensor  # q, rows of texts
    answer: Tensor  # q, word ids
    task: Tensor  # q
    facts: Tensor  # q n, True where the sentence proves the answer
    chain: Tensor  # q f, the same sentences in the order of the proof; IGNORE = none, or cut off

    def __len__(self) -> int:
        return self.answer.shape[0]

    @property
    def device(self) -> torch.device:
        return self.texts.device

    @property
    def unknown(self) -> int:
        return int((self.answer == IGNORE).sum())

    def to(self, device: torch.device | str) -> "Stories":
        return Stories(*(part.to(device) for part in self))

    def only(self, rows: Tensor) -> "Stories":
        """Some of the questions; the texts stay shared."""
        return Stories(self.texts, *(part[rows] for part in self[1:]))

    @property
    def rolls(self) -> int:
        """Nothing is drawn but what the network draws."""
        return 0

    @property
    def lengths(self) -> Tensor:
        return (self.story >= 0).sum(1)

    def batch(
        self,
        rows: Tensor,
        rolls: Tensor | None = None,
        *,
        compact: bool = True,
        most: int | None = None,
    ) -> Batch:
        """The questions in ``rows`` (b, or runs b: then everything has a runs axis in front).

        ``compact`` keeps only the texts and columns that are needed, each once. Without it all
        batches have the same shapes, as a CUDA graph wants, and nothing waits for the device:
        they hold every text of the set once, or, if those are more, each place's text.
        """
        if rows.dim() == 2 and compact:
            own = [self.batch(r, None if rolls is None else rolls[i]) for i, r in enumerate(rows)]
            return stack(own)
        story = self.story[:, :most][rows]  # b n
        question = self.question[rows].unsqueeze(-1)  # b 1
        if compact:
            texts, story, question = self.needed(story, question)
        elif len(self.texts) <= story.shape[-2] * (story.shape[-1] + 1):
            texts = self.texts.expand(*rows.shape[:-1], -1, -1)
        else:
            flat = torch.cat([story.clamp(min=0).flatten(-2), question.flatten(-2)], -1)
            texts = self.texts[flat]
            place = torch.arange(flat.shape[-1], device=flat.device)
            inside, asked = place.split([flat.shape[-1] - story.shape[-2], story.shape[-2]])
            story = torch.where(story >= 0, inside.view(story.shape[-2:]), -1)
            question = asked.unsqueeze(-1).expand_as(question)
        inputs = Inputs(texts, texts > 0, story, question, rolls)
        return Batch(inputs, self.answer[rows].unsqueeze(-1), self.chain[rows])

    def wrong(self, scores: Tensor, rows: Tensor) -> Tensor:
        return scores.argmax(-1) != self.answer[rows]

    def needed(self, story: Tensor, question: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The texts in use, each once, and ``story`` and ``question`` as rows of those."""
        longest = int((story >= 0).sum(1).max()) if story.numel() else 0
        story = story[:, :longest]
        used, rows = torch.cat([story.flatten(), question.flatten()]).unique(return_inverse=True)
        if used[0] < 0:  # -1 sorts first and stays -1
            used, rows = used[1:], rows - 1
        texts = self.texts[used]
        width = int((texts > 0).sum(1).max()) if texts.numel() else 0
        inside, asked = rows.split([story.numel(), question.numel()])
        return texts[:, : max(width, 1)], inside.view_as(story), asked.view_as(question)


def stack(batches: Sequence[Batch]) -> Batch:
    """Batches of several runs as one, padded to the same shapes."""
    inputs = [batch.inputs for batch in batches]
    rolls = [own.rolls for own in inputs if own.rolls is not None]
    joined = Inputs(
        stack_padded([own.texts for own in inputs], 0),
        stack_padded([own.mask for own in inputs], False),
        stack_padded([own.story for own in inputs], -1),
        torch.stack([own.question for own in inputs]),
        torch.stack(rolls) if rolls else None,
    )
    answers = torch.stack([batch.answers for batch in batches])
    return Batch(joined, answers, torch.stack([batch.chain for batch in batches]))


def stack_padded(tables: Sequence[Tensor], filler: int) -> Tensor:
    """Tables of any heights and widths as one tensor, filled up behind and below."""
    height, width = (max(table.shape[axis] for table in tables) for axis in (0, 1))
    whole = tables[0].new_full((len(tables), height, width), filler)
    for number, table in enumerate(tables):
        whole[number, : table.shape[0], : table.shape[1]] = table
    return whole


def vocabulary(examples: Iterable[Example]) -> Words:
    """The words of all sentences, questions and answers; an answer is one entry, never split."""
    texts: set[str] = set()
    answers: set[str] = set()
    for example in examples:
        texts.update(example.sentences, [example.question])
        answers.add(example.answer)
    return Words.of(sorted(texts), extra=sorted(answers))


def spelled(words: Words) -> list[list[int]]:
    """Each entry that is several words, such as ``milk,football``, and its words.

    Words that are no entries themselves are numbered from the vocabulary's size on.
    """
    numbers = {word: number for number, word in enumerate(words.words)}
    several = [entry for entry in words.words if len(parts_of(entry)) > 1]
    for entry in several:
        for part in parts_of(entry):
            numbers.setdefault(part, len(numbers))
    return [[numbers[word] for word in (entry, *parts_of(entry))] for entry in several]


def parts_of(entry: str) -> list[str]:
    return [part.strip() for part in entry.split(",") if part.strip()]


def tensors(
    examples: Sequence[Example], words: Words, *, sentences: int | None = None, unseen: int = 0
) -> Stories:
    """Number everything. ``sentences`` keeps only that many before each question.

    Words the vocabulary does not know are left out, as if they had not been said; or, with
    ``unseen`` ids behind the vocabulary, each has one of those, always the same.
    """
    rows: dict[str, int] = {}
    kept = [example.sentences[-(sentences or 0) :] for example in examples]
    for own, example in zip(kept, examples):
        for text in (*own, example.question):
            rows.setdefault(text, len(rows))
    ids = [numbered(text, words, unseen) for text in rows]
    longest = max((len(own) for own in kept), default=0)
    story = torch.full((len(kept), longest), -1)
    facts = torch.zeros(len(kept), longest, dtype=torch.bool)
    most = max((len(example.facts) for example in examples), default=0)
    chain = torch.full((len(kept), most), IGNORE)
    for number, (own, example) in enumerate(zip(kept, examples)):
        story[number, : len(own)] = torch.tensor([rows[text] for text in own])
        gone = len(example.sentences) - len(own)
        for place, fact in enumerate(example.facts):
            if fact >= gone:
                facts[number, fact - gone] = True
                chain[number, place] = fact - gone
    return Stories(
        padded(ids),
        story,
        torch.tensor([rows[example.question] for example in examples], dtype=torch.long),
        torch.tensor([known(words, example.answer) for example in examples], dtype=torch.long),
        torch.tensor([example.task for example in examples], dtype=torch.long),
        facts,
        chain,
    )


def numbered(text: str, words: Words, unseen: int) -> list[int]:
    """The ids of a text's words; unknown ones share ``unseen`` ids by their spelling."""
    found = words.encode(text)
    pairs = list(zip(found.ids, found.offsets))
    if not unseen:
        return [number for number, _ in pairs if number != words.unknown]
    strange = {
        place: len(words) + crc32(text[slice(*place)].lower().encode()) % unseen
        for _, place in pairs
    }
    return [strange[place] if number == words.unknown else number for number, place in pairs]


def known(words: Words, answer: str) -> int:
    """The answer's id; one that the vocabulary lacks can never be right."""
    return words.id_of(answer) if answer in words else IGNORE


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of ids as one tensor, 0 behind the short ones; at least one column."""
    table = torch.zeros(len(rows), max(1, *(len(row) for row in rows), 1), dtype=torch.long)
    for number, row in enumerate(rows):
        table[number, : len(row)] = torch.tensor(row, dtype=torch.long)
    return table
