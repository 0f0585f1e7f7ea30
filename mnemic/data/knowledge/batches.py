"""Encode a knowledge base and its questions as tensors and batch them.

Shapes: u texts, w words, f slots of the base, q questions of the dataset, b batch, n slots selected
for a question, m questions per example (1), a answers of the question with the most answers, v
vocabulary, c candidates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from mnemic.data.babi.batches import answer_id_of, encode_text, pad_rows
from mnemic.data.batches import TensorDataset
from mnemic.data.knowledge.format import KnowledgeQuestion
from mnemic.data.knowledge.slots import KeyValuePair, bracket_entity
from mnemic.memory.parts.key_hash import SlotSelector
from mnemic.models import IGNORE, StoryInputs
from mnemic.text import WordTokenizer


class KnowledgeBase(NamedTuple):
    """All slots of a knowledge base; each distinct text is stored once."""

    texts: Tensor  # u w, word ids, 0 = padding
    key_rows: Tensor  # f, rows of texts
    value_rows: Tensor  # f, rows of texts; a value is one entity, or a sentence with entities

    @property
    def keys(self) -> Tensor:
        """Return the key of every slot, f w."""
        return self.texts[self.key_rows]

    @property
    def values(self) -> Tensor:
        """Return the value of every slot, f w."""
        return self.texts[self.value_rows]


class KnowledgeBatch(NamedTuple):
    """A batch of questions about a knowledge base: model inputs and targets."""

    inputs: StoryInputs
    answers: Tensor  # b m a, word ids of all right answers; IGNORE = padding
    candidates: Tensor  # c, word ids of the entities in these questions' slots and answers
    entities: Tensor  # word ids of all possible answers


@dataclass(frozen=True)
class KnowledgeDataset(TensorDataset):
    """Questions about a knowledge base, each with its selected slots."""

    metrics: ClassVar[str] = "questions"
    texts: Tensor  # of the base, as the next two
    key_rows: Tensor
    value_rows: Tensor
    question: Tensor  # q w, word ids
    slots: Tensor  # q n, slots of the base, -1 = padding
    answers: Tensor  # q a, word ids; IGNORE = padding, or not in the vocabulary
    entities: Tensor  # v, True for an entity in the value of some slot: a possible answer
    task: Tensor  # q

    def __len__(self) -> int:
        return self.question.shape[0]

    @property
    def num_unknown(self) -> int:
        """Count questions without an answer in the vocabulary."""
        return int((self.answers == IGNORE).all(1).sum())

    @property
    def num_unreachable(self) -> int:
        """Count questions whose selected slots contain no right answer."""
        reachable = [
            bool(torch.isin(answers, self.texts[self.value_rows[slots[slots >= 0]]]).any())
            for slots, answers in zip(self.slots, self.answers)
        ]
        return len(reachable) - sum(reachable)

    @property
    def lengths(self) -> Tensor:
        """Count the selected slots of each question."""
        return (self.slots >= 0).sum(1)

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> KnowledgeBatch:
        """Build the batch of the questions ``rows`` (b).

        It is always compact, since questions differ in the number of slots.
        """
        if rows.dim() != 1:
            raise ValueError("questions about a base are drawn for one run at a time")
        slots, question_ids = self.slots[rows], self.question[rows]
        max_slots = int((slots >= 0).sum(1).max()) if slots.numel() else 0
        slots = slots[:, :max_slots]  # b n
        key_value_rows = torch.stack([self.key_rows[slots], self.value_rows[slots]])  # 2 b n
        # The rows in use, and for the 2 texts of each real slot their positions among those.
        used_texts, positions = key_value_rows[:, slots >= 0].unique(return_inverse=True)
        story, values = torch.full_like(key_value_rows, -1).unbind()
        story[slots >= 0], values[slots >= 0] = positions.unbind()
        slot_texts = self.texts[used_texts]
        width = max(slot_texts.shape[1], question_ids.shape[1])
        texts = torch.cat([pad(table, (0, width - table.shape[1])) for table in (slot_texts, question_ids)])
        question = len(used_texts) + torch.arange(len(rows), device=rows.device).unsqueeze(1)  # b 1
        inputs = StoryInputs(texts, texts > 0, story, question, uniforms, values)
        answers = self.answers[rows]
        value_ids = self.texts[self.value_rows[slots[slots >= 0]]]
        candidate_ids = [value_ids[self.entities[value_ids]], answers[answers != IGNORE]]
        entities = self.entities.nonzero().squeeze(1)
        return KnowledgeBatch(inputs, answers.unsqueeze(1), torch.cat(candidate_ids).unique(), entities)

    def is_wrong(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Report for each question whether its most probable entity is wrong, b."""
        best = logits.masked_fill(~self.entities, -torch.inf).argmax(-1, keepdim=True)  # b 1
        return ~(best == self.answers[rows]).any(-1)


def encode_base(pairs: Iterable[KeyValuePair], tokenizer: WordTokenizer) -> KnowledgeBase:
    """Encode all key-value pairs as tensors; equal pairs share one slot."""
    rows: dict[str, int] = {}
    slots = [
        (rows.setdefault(pair.key, len(rows)), rows.setdefault(pair.value, len(rows))) for pair in dict.fromkeys(pairs)
    ]
    keys, values = torch.tensor(slots, dtype=torch.long).view(-1, 2).unbind(1)
    return KnowledgeBase(pad_rows([encode_known_words(text, tokenizer) for text in rows]), keys, values)


def encode_questions(
    questions: Sequence[KnowledgeQuestion], base: KnowledgeBase, tokenizer: WordTokenizer, select: SlotSelector
) -> KnowledgeDataset:
    """Encode questions as tensors and select the slots of each."""
    question_ids = pad_rows([encode_known_words(question.text, tokenizer) for question in questions])
    max_answers = max((len(question.answers) for question in questions), default=0)
    answers = torch.full((len(questions), max_answers), IGNORE)
    for row, question in enumerate(questions):
        ids = [answer_id_of(tokenizer, bracket_entity(answer)) for answer in question.answers]
        answers[row, : len(ids)] = torch.tensor(ids)
    entities = torch.zeros(len(tokenizer), dtype=torch.bool)
    entities[base.values.unique()] = True
    entities &= torch.tensor([word.startswith("[") for word in tokenizer.vocabulary])
    task = torch.ones(len(questions), dtype=torch.long)
    return KnowledgeDataset(*base, question_ids, select(question_ids), answers, entities, task)


def encode_known_words(text: str, tokenizer: WordTokenizer) -> list[int]:
    """Encode a text as word ids, without words outside the vocabulary."""
    if text in tokenizer:  # also entities without a letter, such as the film [$]
        return [tokenizer.id_of(text)]
    return encode_text(text, tokenizer)
