"""Log-bilinear language models, without and with a picture (Kiros et al. 2014, ICML).

Shapes: b pictures, n regions, m words, k words of context, d width, f factors, v vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError
from mnemic.respond.contract import Response

NO_WORD = 0  # the id before the first word: padding, whose vector is 0


class BilinearState(NamedTuple):
    """The last words of each text, and the vector of its picture."""

    words: Tensor  # b k, oldest first
    features: Tensor  # b d


class LogBilinear(Response):
    """Predict the next word's vector linearly: ``r̂ = Σ C⁽ⁱ⁾ r_{w_i}`` (LBL; Mnih and Hinton 2007).

    Logits are ``r̂ᵀ r_i + b_i`` for the word vectors r; ``context`` is the number of words before
    the next one. It does not look at the picture.
    """

    source = "picture"
    has_word_vectors = True
    methods = ("caption",)
    selects_by = "perplexity"  # the metric that selects the best weights

    def __init__(self, width: int, vocab: int, max_length: int, *, context: int = 5) -> None:
        super().__init__()
        if context < 1:
            raise ConfigError(f"model.respond.context is the number of words before one, from 1 on, not {context}")
        self.max_length, self.context = max_length, context
        self.table = nn.Parameter(torch.randn(vocab, width) * 0.1)  # R
        self.maps = nn.Parameter(torch.randn(context, width, width) * (width * context) ** -0.5)  # C
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, query: None, reading: None, states: Tensor, mask: Tensor, words: Tensor) -> Tensor:
        """Score the word after each of ``words`` (b m): b m v."""
        return self.score_texts(words, self.read_features(states))

    def score_texts(self, words: Tensor, features: Tensor) -> Tensor:
        """Score the word after each of ``words`` (b m) about pictures (b d)."""
        padded = nn.functional.pad(words, (self.context - 1, 0), value=NO_WORD)
        return self.score(padded.unfold(1, self.context, 1), features)

    def read_features(self, states: Tensor) -> Tensor:
        """Compute the vector of a picture from its regions: here an empty one."""
        return states[:, 0, :0]

    def score(self, contexts: Tensor, features: Tensor) -> Tensor:
        """Score the words after contexts (b m k): b m v."""
        return self.predict_vector(contexts, features) @ self.embeddings + self.bias

    def predict_vector(self, contexts: Tensor, features: Tensor) -> Tensor:
        """Predict the vector of the next word: b m k → b m d."""
        vectors = nn.functional.embedding(contexts, self.embeddings.mT) * (contexts != NO_WORD).unsqueeze(-1)
        return torch.einsum("bmkd,kde->bme", vectors, self.maps)

    @property
    def embeddings(self) -> Tensor:
        """The vectors of words: d v."""
        return self.table.mT

    @torch.no_grad()
    def load_embeddings(self, embeddings: Tensor) -> None:
        """Replace the vectors of words (d v)."""
        self.table.copy_(embeddings.mT)

    def start(self, states: Tensor, mask: Tensor, slots: None) -> BilinearState:
        """Make the state before the first word."""
        words = torch.full((len(states), self.context), NO_WORD, device=states.device)
        return BilinearState(words, self.read_features(states))

    def step(self, memory: None, last_words: Tensor, state: BilinearState) -> tuple[Tensor, BilinearState, None]:
        """Score the next word (b v) after ``last_words`` (b); return the state, and no gaze."""
        words = torch.cat([state.words[:, 1:], last_words.unsqueeze(1)], 1)
        return self.score(words.unsqueeze(1), state.features).squeeze(1), BilinearState(words, state.features), None


class BiasedLogBilinear(LogBilinear):
    """Add the picture to the predicted vector (MLBL-B, section 3.1).

    ``r̂ = Σ C⁽ⁱ⁾ r_{w_i} + C⁽ᵐ⁾ x``, where x is a ReLU of a linear map of all regions, in their
    order.
    """

    def __init__(self, width: int, vocab: int, max_length: int, regions: int, *, context: int = 5) -> None:
        super().__init__(width, vocab, max_length, context=context)
        self.features = nn.Linear(regions * width, width)
        self.from_picture = nn.Linear(width, width, bias=False)  # C⁽ᵐ⁾

    def read_features(self, states: Tensor) -> Tensor:
        """Compute the vector of a picture from its regions: b n d → b d."""
        features: Tensor = self.features(states.flatten(1)).relu()
        return features

    def predict_vector(self, contexts: Tensor, features: Tensor) -> Tensor:
        """Predict the vector of the next word, moved by the picture."""
        return super().predict_vector(contexts, features) + self.from_picture(features).unsqueeze(1)


class FactoredLogBilinear(BiasedLogBilinear):
    """Gate the word vectors by the picture, too, through three factors (MLBL-F, section 3.2).

    ``E = (W^{fr̂})ᵀ W^{fh}`` are the word vectors, ``f = (W^{fr̂} r̂) ⊙ (W^{fx} x)`` and the logits
    ``(W^{fh})ᵀ f + b``. The factors start from a singular value decomposition of word vectors (see
    ``load_embeddings``). Where we differ: W^{fx} has a bias that starts at 1, so that the model
    starts near MLBL-B.
    """

    def __init__(
        self, width: int, vocab: int, max_length: int, regions: int, *, context: int = 5, factors: int = 0
    ) -> None:
        super().__init__(width, vocab, max_length, regions, context=context)
        factors = factors or width
        if factors < 1:
            raise ConfigError(f"model.respond.factors is at least 1, or 0 for model.width, not {factors}")
        embeddings = self.table.detach().mT
        del self.table
        self.factor_r = nn.Parameter(torch.zeros(factors, width))  # W^{fr̂}
        self.factor_h = nn.Parameter(torch.zeros(factors, vocab))  # W^{fh}
        self.factor_x = nn.Linear(width, factors)  # W^{fx}
        nn.init.ones_(self.factor_x.bias)
        self.load_embeddings(embeddings)

    @torch.no_grad()
    def load_embeddings(self, embeddings: Tensor) -> None:
        """Factor word vectors (d v): E equals them if there are d factors."""
        columns, values, rows = torch.linalg.svd(embeddings, full_matrices=False)
        rank, roots = min(len(values), len(self.factor_r)), values.sqrt().unsqueeze(1)
        self.factor_r.zero_()[:rank] = (columns.mT * roots)[:rank]
        self.factor_h.zero_()[:rank] = (rows * roots)[:rank]

    @property
    def embeddings(self) -> Tensor:
        """The vectors of words: E, d v."""
        return self.factor_r.mT @ self.factor_h

    def score(self, contexts: Tensor, features: Tensor) -> Tensor:
        """Score the words after contexts (b m k) by gated factors: b m v."""
        factors = self.predict_vector(contexts, features) @ self.factor_r.mT  # b m f
        return (factors * self.factor_x(features).unsqueeze(1)) @ self.factor_h + self.bias
