"""Choose spans of several words for masking, until a share of the tokens is chosen.

Every word is the possible start of one span: it has a priority and a length. Spans are placed in
order of priority, and the last one is cut off where the share is reached. All rows are computed at
once: a token belongs to the first span that covers it.

Shapes: b batch, n tokens.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import torch
from torch import Tensor

from mnemic.objectives.pretraining.token_masking import TokenMasking, find_unit_starts
from mnemic.recipe import ConfigError

NEVER = 2.0  # a priority after all others, which are below 1


@dataclass(frozen=True, kw_only=True)
class NgramMasking(TokenMasking):
    """Choose n-grams of 1 to ``max_words`` words, with p(n) ∝ 1/n (ALBERT).

    Lan et al. 2020 (arXiv:1909.11942), equation 4; a word is chosen whole, and no n-gram crosses a
    special token. How each token is replaced is decided separately, as in the authors' code. Where
    we differ: an n-gram may begin within one before, and both are one then; the number of tokens is
    rounded at random, so that its mean is exactly ``rate``.
    """

    num_uniforms: ClassVar[int] = 3  # priority, length, and a number that rounds
    max_words: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_words < 1:
            raise ConfigError(f"max_words is at least 1, not {self.max_words}")

    @property
    def probabilities(self) -> list[float]:
        """The probability of each length, from one word on."""
        weights = self.length_weights
        return [weight / sum(weights) for weight in weights]

    @property
    def length_weights(self) -> list[float]:
        return [1 / length for length in range(1, self.max_words + 1)]

    def draw_lengths(self, uniforms: Tensor) -> Tensor:
        """Draw lengths in words by the inverse of their distribution, one per number."""
        *bounds, _ = accumulate(self.probabilities)
        lengths = torch.ones_like(uniforms, dtype=torch.long)
        for bound in bounds:
            lengths = lengths + (uniforms >= bound)
        return lengths

    def __call__(self, unmaskable: Tensor, word_starts: Tensor, uniforms: Tensor) -> Tensor:
        priorities, length_uniforms, rounding = uniforms
        num_words = self.draw_lengths(length_uniforms)
        order = rank_tokens(unmaskable, word_starts, priorities, num_words, self.max_words)
        num_maskable = (~unmaskable).sum(-1, keepdim=True)
        num_chosen = (self.rate * num_maskable.double() + rounding[:, :1]).floor()
        return (order < num_chosen) & ~unmaskable


@dataclass(frozen=True, kw_only=True)
class SpanMasking(NgramMasking):
    """Choose spans whose lengths are geometric, cut to ``max_words`` words (SpanBERT).

    Joshi et al. 2020 (arXiv:1907.10529), section 3.1: p(l) ∝ (1 - p)^(l-1) · p with p = 0.2, whose
    mean is 3.8 words. Spans begin at the start of a word, those that touch are one, and a draw per
    span says whether all of it becomes [MASK], random tokens, or stays. Where we differ: as
    ``ngrams``; the authors weight a word by its number of tokens when they draw a start.
    """

    replaces_runs: ClassVar[bool] = True
    max_words: int = 10
    probability: float = 0.2  # that a span ends after each word

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.probability < 1:
            raise ConfigError(f"spans.probability is between 0 and 1, not {self.probability}")

    @property
    def length_weights(self) -> list[float]:
        return [(1 - self.probability) ** length for length in range(self.max_words)]


def rank_tokens(
    unmaskable: Tensor, word_starts: Tensor, priorities: Tensor, num_words: Tensor, max_words: int
) -> Tensor:
    """Rank tokens by the first span that covers them, then by position: b n.

    A span begins at each word, with the priority and the number of words of its first token. It
    ends before the next token that is unmaskable; these come last.
    """
    borders = unmaskable | shift_right(unmaskable)
    starts = find_unit_starts(word_starts | borders)  # b n, where each token's word begins
    text_id = unmaskable.cumsum(-1)  # equal for two tokens with nothing unmaskable between them
    priorities = priorities.masked_fill(unmaskable, NEVER)
    first = torch.full_like(priorities, NEVER)
    start, reaches = starts, torch.ones_like(unmaskable)
    for distance in range(max_words):  # in words, from the start of a span
        covers = reaches & (num_words.gather(-1, start) > distance) & (text_id.gather(-1, start) == text_id)
        first = torch.where(covers, first.minimum(priorities.gather(-1, start)), first)
        reaches = reaches & (start > 0)
        start = starts.gather(-1, (start - 1).clamp(min=0))  # of the word before
    first = first.masked_fill(unmaskable, NEVER)
    return first.argsort(dim=-1, stable=True).argsort(-1)


def shift_right(flags: Tensor) -> Tensor:
    """Shift flags b n by one token; the first is not set."""
    return torch.cat([torch.zeros_like(flags[:, :1]), flags[:, :-1]], -1)
