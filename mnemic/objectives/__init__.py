"""What a network is trained for: pure corruptions and losses, apart from the networks."""

from collections.abc import Callable
from typing import Any

from mnemic.objectives.answer import AnswerLoss
from mnemic.objectives.answers import AnswersLoss
from mnemic.objectives.bert_mass import BertMassLoss, NextWordLoss
from mnemic.objectives.classes import ClassLoss, NumberLoss
from mnemic.objectives.contract import Carried as Carried
from mnemic.objectives.contract import Loss as Loss
from mnemic.objectives.facts import AnswerAndFacts, AnswerAndGates
from mnemic.objectives.next_token import NextLoss
from mnemic.objectives.pretraining import PretrainingLoss
from mnemic.objectives.ranking import RankingLoss
from mnemic.objectives.retrieve_and_read import ReadingLoss
from mnemic.objectives.spans import SpanLoss
from mnemic.objectives.tags import TagLoss

OBJECTIVES: dict[str, Callable[..., Any]] = {
    "answer": AnswerLoss,
    "answers": AnswersLoss,
    "answer+facts": AnswerAndFacts,
    "answer+gates": AnswerAndGates,
    "bert-mass": BertMassLoss,
    "classes": ClassLoss,
    "masked": PretrainingLoss,
    "next": NextLoss,
    "next-word": NextWordLoss,
    "numbers": NumberLoss,
    "ranking": RankingLoss,
    "reading": ReadingLoss,
    "spans": SpanLoss,
    "tags": TagLoss,
}
