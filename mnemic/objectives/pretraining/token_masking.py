"""Choose tokens, words or longer units for masking, each unit independently.

Shapes: b batch, n tokens, r uniform numbers per token.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError


@dataclass(frozen=True, kw_only=True)
class TokenMasking:
    """Choose each token independently with probability ``rate`` (Devlin et al. 2019, 3.1).

    Where we differ from BERT, as RoBERTa does: the number of chosen tokens per sequence varies.
    Arguments of a call: b n, tokens that may not be chosen; b n, tokens that start a word; r b n,
    ``num_uniforms`` uniform numbers per token. The result is b n, the tokens to predict. It depends
    on nothing but the row. With ``replaces_runs`` one draw decides how all tokens of a run of
    chosen tokens are replaced; else each token has its own.
    """

    num_uniforms: ClassVar[int] = 1
    replaces_runs: ClassVar[bool] = False
    rate: float = 0.15  # the expected share of chosen tokens

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ConfigError(f"the rate of masking is a share above 0 and up to 1, not {self.rate}")

    def __call__(self, unmaskable: Tensor, word_starts: Tensor, uniforms: Tensor) -> Tensor:
        return (uniforms[0] < self.rate) & ~unmaskable


@dataclass(frozen=True, kw_only=True)
class WordMasking(TokenMasking):
    """Choose whole words with probability ``rate``, by the number of their first token.

    Whole-word masking of BERT's authors (2019), and of Cui et al. 2019 for Chinese. A word is a
    token that starts one and the tokens after it that do not; how each of its tokens is replaced
    is decided separately, as in the authors' code.
    """

    def __call__(self, unmaskable: Tensor, word_starts: Tensor, uniforms: Tensor) -> Tensor:
        first_uniforms = uniforms[0].gather(-1, find_unit_starts(word_starts))
        return (first_uniforms < self.rate) & ~unmaskable


@dataclass(frozen=True, kw_only=True)
class TokensAndNgramsMasking(TokenMasking):
    """Choose single tokens, and a share of pairs or triples (Dong et al. 2019).

    UniLM, section 2.4: 80 % single tokens, and a share ``ngrams`` of pairs or triples, both alike.
    Where two of them overlap, their tokens are chosen once; ``rate`` is the expected share of
    chosen tokens all the same.
    """

    ngrams: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.ngrams <= 1:
            raise ConfigError(f"the share of n-grams is from 0 to 1, not {self.ngrams}")

    @cached_property
    def start_rate(self) -> float:
        """How likely a token is to be the first of its n-gram."""
        low, high = 0.0, self.rate
        for _ in range(60):  # a token is not chosen if neither it nor one of two before it starts one
            middle = (low + high) / 2
            share = 1 - (1 - middle) * (1 - middle * self.ngrams) * (1 - middle * self.ngrams / 2)
            low, high = (middle, high) if share < self.rate else (low, middle)
        return low

    def __call__(self, unmaskable: Tensor, word_starts: Tensor, uniforms: Tensor) -> Tensor:
        mask = torch.zeros_like(unmaskable)
        for offset, share in enumerate((1.0, self.ngrams, self.ngrams / 2)):
            starts = uniforms[0] < self.start_rate * share  # of n-grams that are longer than ``offset``
            mask = mask | nn.functional.pad(starts, (offset, 0))[:, : starts.shape[1]]
        return mask & ~unmaskable


@dataclass(frozen=True, kw_only=True)
class EntityMasking(WordMasking):
    """Choose phrases and entities in a ``share`` of the sequences, else single tokens.

    Knowledge masking of ERNIE 1 (Sun et al. 2019, arXiv:1904.09223, section 3.2), whose code draws
    per sequence, too. A unit is what the data marks as one: with ``data.words = "entities"`` a run
    of capitalized words, with "chinese" a Chinese word; any other word is a unit by itself. Where
    we differ: ERNIE 1 has phrases from a chunker and entities from a knowledge base.
    """

    num_uniforms: ClassVar[int] = 2
    share: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share <= 1:
            raise ConfigError(f"entities.share is a share from 0 to 1, not {self.share}")

    def __call__(self, unmaskable: Tensor, word_starts: Tensor, uniforms: Tensor) -> Tensor:
        is_whole = uniforms[1, :, :1] < self.share  # b 1
        return super().__call__(unmaskable, word_starts | ~is_whole, uniforms)


def find_unit_starts(starts: Tensor) -> Tensor:
    """Find the position of the first token of each token's unit: b n."""
    positions = torch.arange(starts.shape[-1], device=starts.device)  # n
    return torch.where(starts, positions, 0).cummax(-1).values
