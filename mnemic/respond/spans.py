"""Answer with a stretch of the text, or say that it holds no answer.

Shapes: b windows, n tokens, d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import glorot
from mnemic.memory import Reading
from mnemic.recipe import ConfigError

NONE = 0  # the column of "no answer"; token i has column i + 1


class Spans(nn.Module):
    """Score every token as the first and as the last of the answer (Devlin et al. 2019, 4.2).

    "No answer" is one more choice of both, scored from the first token's state with weights of its
    own; in BERT it shares those of the tokens. ``most`` is how many tokens an answer may have.
    """

    tied = False

    def __init__(self, width: int, *, most: int = 30, dropout: float = 0.1) -> None:
        super().__init__()
        if most < 1:
            raise ConfigError(f"an answer has at least 1 token: model.respond.most is {most}")
        self.longest = most  # not what sizes call so: that is the length of a window
        self.dropout = nn.Dropout(dropout)
        self.ends = glorot(nn.Linear(width, 2))
        self.none = glorot(nn.Linear(width, 2))

    def forward(
        self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor
    ) -> Tensor:
        """b 2 1+n: of the first token and of the last; what may be no answer scores lowest."""
        states = self.dropout(states)
        scores = self.ends(states).mT  # b 2 n
        scores = scores.masked_fill(~mask.unsqueeze(1), torch.finfo(scores.dtype).min)
        return torch.cat([self.none(states[:, 0]).unsqueeze(-1), scores], -1)
