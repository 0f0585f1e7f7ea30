"""A knowledge base and questions about it as tensors.

Shapes: u texts, w words, f slots of the base, q questions of the set, b batch, n slots chosen for
a question, m questions asked (1), a answers of the question that has most, v vocabulary, c
candidates.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from mnemic.data.babi.batches import known, padded
from mnemic.data.knowledge.format import Question
from mnemic.data.knowledge.key_value import Pair, entity
from mnemic.memory.parts.key_hash import Select
from mnemic.models import IGNORE, Inputs
from mnemic.text import Words


class Base(NamedTuple):
    """All slots of a knowledge base; each different text stands here once."""

    texts: Tensor  # u w, word ids, 0 = padding
    key: Tensor  # f, rows of texts
    value: Tensor  # f, rows of texts; a value is one entity, or a sentence with some

    @property
    def keys(self) -> Tensor:
        """Every slot's key, f w."""
        return self.texts[self.key]

    @property
    def values(self) -> Tensor:
        """Every slot's value, f w."""
        return self.texts[self.value]


class Batch(NamedTuple):
    """What a network reads, and what it should have answered."""

    inputs: Inputs
    answers: Tensor  # b m a, word ids of all right answers; IGNORE = no more
    candidates: Tensor  # c, word ids of what these questions' slots hold and of their answers
    entities: Tensor  # word ids of all that may be an answer


class BaseQuestions(NamedTuple):
    """Questions about a base, each with the slots that were selected for it."""

    texts: Tensor  # of the base
    key: Tensor
    value: Tensor
    question: Tensor  # q w, word ids
    slots: Tensor  # q n, slots of the base, -1 = nothing there
    answers: Tensor  # q a, word ids; IGNORE = no more, or not in the vocabulary
    entities: Tensor  # v, True for an entity that some slot gives: what an answer is sought among
    task: Tensor  # q

    def __len__(self) -> int:
        return self.question.shape[0]

    @property
    def device(self) -> torch.device:
        return self.texts.device

    @property
    def unknown(self) -> int:
        return int((self.answers == IGNORE).all(1).sum())

    @property
    def unreachable(self) -> int:
        """Questions none of whose right answers is in a slot that was selected for them."""
        reached = [
            bool(torch.isin(answers, self.texts[self.value[slots[slots >= 0]]]).any())
            for slots, answers in zip(self.slots, self.answers)
        ]
        return len(reached) - sum(reached)

    def to(self, device: torch.device | str) -> "BaseQuestions":
        return BaseQuestions(*(part.to(device) for part in self))

    @property
    def rolls(self) -> int:
        """Nothing is drawn but what the network draws."""
        return 0

    @property
    def lengths(self) -> Tensor:
        return (self.slots >= 0).sum(1)

    def batch(
        self,
        rows: Tensor,
        rolls: Tensor | None = None,
        *,
        compact: bool = True,
        most: int | None = None,
    ) -> Batch:
        """The questions in ``rows`` (b). Always compact: no two questions have as many slots."""
        if rows.dim() != 1:
            raise ValueError("questions about a base are drawn for one run at a time")
        slots, asked = self.slots[rows], self.question[rows]
        longest = int((slots >= 0).sum(1).max()) if slots.numel() else 0
        slots = slots[:, :longest]  # b n
        both = torch.stack([self.key[slots], self.value[slots]])  # 2 b n
        used, places = both[:, slots >= 0].unique(return_inverse=True)  # the texts, 2 real
        story, values = torch.full_like(both, -1).unbind()
        story[slots >= 0], values[slots >= 0] = places.unbind()
        inside = self.texts[used]
        wide = max(inside.shape[1], asked.shape[1])
        texts = torch.cat([pad(part, (0, wide - part.shape[1])) for part in (inside, asked)])
        question = len(used) + torch.arange(len(rows), device=rows.device).unsqueeze(1)  # b 1
        inputs = Inputs(texts, texts > 0, story, question, rolls, values)
        answers = self.answers[rows]
        held = self.texts[self.value[slots[slots >= 0]]]
        given = [held[self.entities[held]], answers[answers != IGNORE]]
        entities = self.entities.nonzero().squeeze(1)
        return Batch(inputs, answers.unsqueeze(1), torch.cat(given).unique(), entities)

    def wrong(self, scores: Tensor, rows: Tensor) -> Tensor:
        best = scores.masked_fill(~self.entities, -torch.inf).argmax(-1, keepdim=True)  # b 1
        return ~(best == self.answers[rows]).any(-1)


def base_of(pairs: Iterable[Pair], words: Words) -> Base:
    """Number all keys and values; what gives the same value for the same key is one slot."""
    rows: dict[str, int] = {}
    slots = [
        (rows.setdefault(pair.key, len(rows)), rows.setdefault(pair.value, len(rows)))
        for pair in dict.fromkeys(pairs)
    ]
    keys, values = torch.tensor(slots, dtype=torch.long).view(-1, 2).unbind(1)
    return Base(padded([ids_of(text, words) for text in rows]), keys, values)


def base_questions(
    asked: Sequence[Question], base: Base, words: Words, select: Select
) -> BaseQuestions:
    """Number the questions and select each one's slots."""
    question = padded([ids_of(own.text, words) for own in asked])
    most = max((len(own.answers) for own in asked), default=0)
    answers = torch.full((len(asked), most), IGNORE)
    for number, own in enumerate(asked):
        ids = [known(words, entity(answer)) for answer in own.answers]
        answers[number, : len(ids)] = torch.tensor(ids)
    entities = torch.zeros(len(words), dtype=torch.bool)
    entities[base.values.unique()] = True
    entities &= torch.tensor([word.startswith("[") for word in words.words])
    task = torch.ones(len(asked), dtype=torch.long)
    return BaseQuestions(*base, question, select(question), answers, entities, task)


def ids_of(text: str, words: Words) -> list[int]:
    """The words of a text; those that the vocabulary does not know are left out."""
    if text in words:  # also what has no letter in it, such as the film [$]
        return [words.id_of(text)]
    return [number for number in words.encode(text).ids if number != words.unknown]
