"""Answer with words: the first from what was read, the others one after another.

Shapes: b batch, m queries, n tokens, w words of an answer, d width, e width of the word vectors,
v vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import Cell
from mnemic.memory import Reading
from mnemic.respond.classes import mean_of
from mnemic.respond.generate import Step
from mnemic.respond.pretraining import FollowsHead
from mnemic.respond.vocabulary import VocabularyHead

TINY = 1e-9  # a chance is at least this
SELDOM = -2.0  # log-odds of copying, at first


class Saying(NamedTuple):
    """Where an answer stands between two words: a state for ``mnemic.respond.generate``."""

    hidden: Tensor  # b d
    first: Tensor  # b v, scores of the first word
    begun: Tensor  # b, True = the first word was said


class Predictor(nn.Module):
    """The predictor and the prediction module of BERT-MASS.

    The first word is scored from ``h = tanh(W [query; found; z])``, z the mean of the question's
    states; the 2nd to the last by a GRU that begins with h and reads the word said before. All
    words share BERT's vocabulary head, and with it the encoder's word vectors (``words``). What was
    found in memory reaches a token's own scores through ``known``: of masked words, of next words.
    With ``copies`` these may also be words that memory holds, each as likely as its slot was read:
    a gate says how much of that (pointers; Merity et al. 2017, arXiv:1609.07843).
    """

    tied = False
    says = True

    def __init__(
        self,
        width: int,
        vocab: int,
        words: nn.Parameter | None = None,
        *,
        dropout: float = 0.0,
        copies: bool = False,
    ) -> None:
        super().__init__()
        self.vocabulary = VocabularyHead(width, vocab, words=words)
        self.join = nn.Linear(3 * width, width)
        self.cell = Cell(self.vocabulary.words.shape[1], width)
        self.found = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.follows = FollowsHead(width)
        self.dropout = nn.Dropout(dropout)
        self.copies = nn.Linear(width, 1) if copies else None
        if self.copies is not None:
            nn.init.constant_(self.copies.bias, SELDOM)

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """Scores of the first word, b m v: ``query`` b m d, the question's ``states`` b n d."""
        return self.vocabulary(self.begin(query, reading, states, mask))

    def begin(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """What the first word is said from, b m d."""
        mean = mean_of(states, mask).unsqueeze(1).expand_as(query)
        joined = self.join(torch.cat([query, reading.found.to(query.dtype), mean], -1))
        return self.dropout(joined.tanh())

    def rest(self, begin: Tensor, words: Tensor) -> Tensor:
        """Scores of the 2nd to the last word, b w-1 v, each after those before it (``words`` b w).

        ``begin`` is b d.
        """
        hidden, states = begin, []
        for word in words[:, :-1].unbind(1):
            hidden = self.cell(nn.functional.embedding(word, self.vocabulary.words), hidden)
            states.append(hidden)
        if not states:
            return begin.new_zeros(len(begin), 0, self.vocabulary.words.shape[0])
        return self.vocabulary(torch.stack(states, 1))

    def saying(self, begin: Tensor) -> Saying:
        """The state before the first word, for a ``begin`` of b d."""
        first = self.vocabulary(begin.unsqueeze(1)).squeeze(1)
        return Saying(begin, first, torch.zeros_like(begin[:, 0], dtype=torch.bool))

    @property
    def step(self) -> Step:
        """For ``generate.greedy``, ``beam``, ``sample``; the word they start with is not read."""

        def step(words: Tensor, state: Saying) -> tuple[Tensor, Saying]:
            read = nn.functional.embedding(words, self.vocabulary.words)
            begun = state.begun.unsqueeze(1)
            hidden = torch.where(begun, self.cell(read, state.hidden), state.hidden)
            later = self.vocabulary(hidden.unsqueeze(1)).squeeze(1)
            scores = torch.where(begun, later, state.first)
            return scores, Saying(hidden, state.first, torch.ones_like(state.begun))

        return step

    def known(self, states: Tensor, found: Tensor) -> Tensor:
        """States … d that know what was found for them."""
        return self.norm(states + self.found(found.to(states.dtype)))

    def copied(self, scores: Tensor, states: Tensor, shares: Tensor, words: Tensor) -> Tensor:
        """Log-chances p v of words, from their ``scores`` and from what was read, p a.

        ``shares`` say how much of each source was, ``words`` which word it is. Where nothing was
        read, all comes from the scores.
        """
        if self.copies is None:
            return scores
        gate = torch.sigmoid(self.copies(states).float())  # p 1
        own = scores.float().softmax(-1) * (1 - gate * shares.sum(-1, keepdim=True))
        return (own.scatter_add(1, words, gate * shares) + TINY).log()
