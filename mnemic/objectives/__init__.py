"""What a network is trained for: pure corruptions and losses, apart from the networks."""

from collections.abc import Callable
from typing import Any

from mnemic.objectives.answer import AnswerLoss
from mnemic.objectives.contract import Carried as Carried
from mnemic.objectives.contract import Loss as Loss

OBJECTIVES: dict[str, Callable[..., Any]] = {
    "answer": AnswerLoss,
}
