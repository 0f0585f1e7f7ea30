"""Choose and replace tokens for masked language modeling.

How tokens are chosen is a kind (``MASKINGS``); how they are replaced is the same for all kinds.
Whether masks are static or dynamic depends on the random numbers: equal keys give equal masks.

Shapes: b batch, n tokens, v random ids.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.recipe import ConfigError

NUM_UNIFORMS = 3  # per token: is it chosen, how is it replaced, by which random token
MASK_SHARE, KEEP_SHARE = 0.8, 0.1  # of chosen tokens; the rest become random tokens


@dataclass(frozen=True, kw_only=True)
class TokenMasking:
    """Choose each token independently with probability ``rate`` (Devlin et al. 2019, 3.1).

    Where we differ from BERT, as RoBERTa does: the number of chosen tokens per sequence varies.
    Each argument of a call is b n: tokens that may not be chosen, tokens that start a word, uniform
    numbers. The result is b n, the tokens to predict.
    """

    rate: float = 0.15  # the expected share of chosen tokens

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ConfigError(f"the rate of masking is a share above 0 and up to 1, not {self.rate}")

    def __call__(self, unmaskable: Tensor, word_starts: Tensor, uniforms: Tensor) -> Tensor:
        return (uniforms < self.rate) & ~unmaskable


@dataclass(frozen=True, kw_only=True)
class WordMasking(TokenMasking):
    """Choose whole words with probability ``rate``, by the number of their first token.

    Whole-word masking of BERT's authors (2019), and of Cui et al. 2019 for Chinese. A word is a
    token that starts one and the tokens after it that do not; how each of its tokens is replaced
    is decided separately, as in the authors' code.
    """

    def __call__(self, unmaskable: Tensor, word_starts: Tensor, uniforms: Tensor) -> Tensor:
        positions = torch.arange(word_starts.shape[-1], device=word_starts.device)  # n
        word_start = torch.where(word_starts, positions, 0).cummax(-1).values  # b n
        return (uniforms.gather(-1, word_start) < self.rate) & ~unmaskable


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
            starts = uniforms < self.start_rate * share  # of n-grams that are longer than ``offset``
            mask = mask | nn.functional.pad(starts, (offset, 0))[:, : starts.shape[1]]
        return mask & ~unmaskable


MASKINGS: dict[str, Callable[..., TokenMasking]] = {
    "tokens": TokenMasking,
    "tokens-and-ngrams": TokensAndNgramsMasking,
    "words": WordMasking,
}


def mask_tokens(
    ids: Tensor, mask: Tensor, uniforms: Tensor, *, mask_id: Tensor | int, random_ids: Tensor
) -> tuple[Tensor, Tensor]:
    """Replace the tokens in ``mask``: 80 % by ``mask_id``, 10 % by random ids, 10 % stay.

    Return the new ids and the targets: the original id of tokens in ``mask``, else IGNORE.
    ``ids``, ``mask``: b n; ``uniforms`` 2 b n; ``random_ids`` v: the ids to draw from.
    """
    action, choice = uniforms
    index = (choice * len(random_ids)).long().clamp(max=len(random_ids) - 1)
    inputs = torch.where(mask & (action < MASK_SHARE), mask_id, ids)
    inputs = torch.where(mask & (action >= MASK_SHARE + KEEP_SHARE), random_ids[index], inputs)
    return inputs, torch.where(mask, ids, IGNORE)
