"""Extractive question answering head: a span of the text, or "no answer".

Shapes: b windows, n tokens, d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import init_glorot
from mnemic.memory import Reading
from mnemic.recipe import ConfigError
from mnemic.respond.contract import Response

NO_ANSWER = 0  # the column of "no answer"; token i has column i + 1


class SpanHead(Response):
    """Score every token as first and last of the answer (Devlin et al. 2019, 4.2).

    "No answer" is one more choice of both, scored from the first token's state. Where we differ:
    it has its own weights; in BERT it shares those of the tokens. ``max_tokens`` is the maximum
    number of tokens of an answer. With ``relevance`` a third head scores how well a window answers,
    from its first token's state (Nogueira and Cho 2019, section 2), to rank passages.
    """

    source = "text"
    reads_segments = True
    methods = ("answer", "rerank")

    def __init__(self, width: int, *, max_tokens: int = 30, dropout: float = 0.1, relevance: bool = False) -> None:
        super().__init__()
        if max_tokens < 1:
            raise ConfigError(f"an answer has at least 1 token: model.respond.max_tokens is {max_tokens}")
        self.max_tokens = max_tokens
        self.dropout = nn.Dropout(dropout)
        self.ends = init_glorot(nn.Linear(width, 2))
        self.none = init_glorot(nn.Linear(width, 2))
        self.relevance = init_glorot(nn.Linear(width, 1)) if relevance else None

    def forward(self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor) -> Tensor:
        """Score the first and the last token of the answer, b 2 1+n.

        Column 0 is "no answer"; masked tokens get the lowest score.
        """
        states = self.dropout(states)
        logits = self.ends(states).mT  # b 2 n
        logits = logits.masked_fill(~mask.unsqueeze(1), torch.finfo(logits.dtype).min)
        return torch.cat([self.none(states[:, 0]).unsqueeze(-1), logits], -1)

    def score_relevance(self, first_states: Tensor) -> Tensor | None:
        """Score how well each window answers, from its first token's state (b d): b.

        None without a head for it.
        """
        return None if self.relevance is None else self.relevance(self.dropout(first_states)).squeeze(-1)
