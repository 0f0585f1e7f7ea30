"""What a network is trained for: pure corruptions and losses, apart from the networks."""

from collections.abc import Callable
from typing import Any

from mnemic.objectives.answer import AnswerLoss
from mnemic.objectives.answers import AnswersLoss
from mnemic.objectives.contract import Carried as Carried
from mnemic.objectives.contract import Loss as Loss
from mnemic.objectives.facts import AnswerAndFacts, AnswerAndGates
from mnemic.objectives.ranking import RankingLoss

OBJECTIVES: dict[str, Callable[..., Any]] = {
    "answer": AnswerLoss,
    "answers": AnswersLoss,
    "answer+facts": AnswerAndFacts,
    "answer+gates": AnswerAndGates,
    "ranking": RankingLoss,
}
