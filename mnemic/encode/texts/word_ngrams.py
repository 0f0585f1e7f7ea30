"""Encode each token as its word and the n-grams that end with it.

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.texts.ngrams import HASH_MULTIPLIERS, scramble_bits
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.recipe import ConfigError

DEFAULT_EMBEDDINGS: Mapping[str, Any] = {"kind": "sum", "positions": {"kind": "none"}, "norm": False}


class WordNgrams(TokenEncoder):
    """Sum a word and the n-grams that end with it (Joulin et al. 2017).

    arXiv:1607.01759, section 2.1. Each word has a vector of its own; n-grams of 2 to ``max_n``
    words share one of ``buckets``, and start at 0: one never met in training adds nothing. States
    are scaled so that their mean over a text is the mean of all its words and n-grams.

    As ``ngrams``, but with one state per token, for responses that read texts.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS,
        max_n: int = 2,
        buckets: int = 100_000,
    ) -> None:
        super().__init__(width, vocab, embeddings)
        if not 1 <= max_n <= len(HASH_MULTIPLIERS) or buckets < 1:
            raise ConfigError(f"word-ngrams takes max_n from 1 to 3 and buckets ≥ 1, not {max_n} and {buckets}")
        self.max_n, self.buckets = max_n, buckets
        self.ngrams = nn.Parameter(torch.zeros(buckets if max_n > 1 else 0, width))

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode tokens: ``tokens``, ``mask``: b n → b n d, zeros at padding."""
        states, num_words = self.embeddings(tokens, mask), mask.sum(1)  # b n d, b
        num_ngrams = num_words
        for length in range(2, min(self.max_n, tokens.shape[1]) + 1):
            ids, is_real = self.hash_ngrams(tokens, mask, length)  # b n-length+1
            vectors = nn.functional.embedding(ids, self.ngrams) * is_real.unsqueeze(-1)
            states = states + nn.functional.pad(vectors, (0, 0, length - 1, 0))
            num_ngrams = num_ngrams + is_real.sum(1)
        scale = num_words / num_ngrams.clamp(min=1)
        return states * (mask * scale.unsqueeze(1)).unsqueeze(-1).to(states.dtype)

    def hash_ngrams(self, tokens: Tensor, mask: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Return the bucket of each n-gram, and whether all its words are real."""
        count = tokens.shape[1] - length + 1
        columns = [tokens[:, start : start + count] * HASH_MULTIPLIERS[start] for start in range(length)]
        is_real = torch.stack([mask[:, start : start + count] for start in range(length)]).all(0)
        return scramble_bits(torch.stack(columns).sum(0) + length) % self.buckets, is_real
