"""Answer with a text, word by word: the decoder of the encoder–decoder Transformer.

Shapes: b batch, n tokens of the source, m tokens said, d width, v vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.embeddings import Embeddings
from mnemic.encode.stack import DECODERS, Cache
from mnemic.recipe import build
from mnemic.respond.next_token import check_tied

PLACED: Mapping[str, Any] = {
    "kind": "sum", "positions": {"kind": "sinusoidal"}, "scaled": True, "norm": False,
}  # fmt: skip
DECODER: Mapping[str, Any] = {"kind": "transformer"}


class SpokenSequence(nn.Module):
    """What was said, read by a decoder that looks at the source (Vaswani et al. 2017, figure 1).

    In training it is handed the right answer, one word behind (teacher forcing). To speak,
    ``begin`` with a source and take one ``step`` a word, as ``generate.greedy`` and ``beam`` do:
    nothing is read twice, and the scores are those of ``forward``. With ``tied`` the encoder's word
    vectors are also those of what is said, and of the scores (section 3.4).
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        longest: int,
        words: nn.Parameter | None = None,
        *,
        tied: bool = True,
        embeddings: Mapping[str, Any] = PLACED,
        decoder: Mapping[str, Any] = DECODER,
    ) -> None:
        super().__init__()
        self.longest = longest  # words of an answer
        check_tied(words, width, tied)
        self.embeddings: Any = build({"sum": Embeddings}, embeddings, width=width, vocab=vocab)
        if tied and words is not None:
            self.embeddings.tokens = words
        self.decoder: Any = build(DECODERS, decoder, width=width, cross=True)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(
        self, query: None, reading: None, states: Tensor, mask: Tensor, said: Tensor
    ) -> Tensor:
        """``states`` b n d, ``mask`` b n, ``said`` b m → scores b m v of the words behind ``said``.

        What is said needs no mask: no word sees those behind it, where padding would be.
        """
        return self.score(said, self.begin(states, mask))[0]

    def begin(self, states: Tensor, mask: Tensor) -> Cache:
        """A source (b n d, b n) about which nothing has been said yet."""
        return self.decoder.empty(states, states, mask)

    def step(self, words: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """The words said last (b) → scores of the next ones (b v), and the cache to go on with."""
        scores, cache = self.score(words.unsqueeze(1), cache)
        return scores.squeeze(1), cache

    def score(self, said: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        real = torch.ones_like(said, dtype=torch.bool)
        x = self.embeddings(said, real, start=cache.mask.shape[1])
        states, cache = self.decoder(x, real, cache)
        return nn.functional.linear(states, self.embeddings.tokens, self.bias), cache
