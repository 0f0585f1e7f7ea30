"""Masked language modelling, the corruption: which tokens are asked for, and what stands there.

Which are chosen is a kind (``MASKINGS``); what becomes of them is the same for all. Static or
dynamic is no kind but a matter of the rolls: from equal keys come equal masks.

Shapes: b batch, n tokens, v ordinary ids.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from mnemic.models import IGNORE
from mnemic.recipe import ConfigError

ROLLS = 3  # uniform numbers a token: is it chosen, what becomes of it, which random token
HIDE, KEEP = 0.8, 0.1  # of the chosen: [MASK], as it was; the rest become random tokens


class Corrupted(NamedTuple):
    """What a network sees, and what it should say."""

    inputs: Tensor  # b n
    targets: Tensor  # b n, the original id where one is asked for, else IGNORE


class Masking(Protocol):
    """Chooses tokens: ``fixed``, ``starts`` and one roll a token, b n → bool b n."""

    @property
    def rate(self) -> float: ...  # the share that is chosen, on average

    def __call__(self, fixed: Tensor, starts: Tensor, roll: Tensor) -> Tensor: ...


@dataclass(frozen=True, kw_only=True)
class TokenMasking:
    """Each token by itself, with probability ``rate`` (Devlin et al. 2019, section 3.1).

    Where we differ from BERT, as RoBERTa does: the number chosen is not fixed for each sequence.
    """

    rate: float = 0.15

    def __post_init__(self) -> None:
        check_rate(self.rate)

    def __call__(self, fixed: Tensor, starts: Tensor, roll: Tensor) -> Tensor:
        return (roll < self.rate) & ~fixed


@dataclass(frozen=True, kw_only=True)
class WordMasking:
    """As ``tokens``, but all tokens of a word together: by the roll of the word's first token.

    Whole-word masking of BERT's authors (2019), and of Cui et al. 2019 for Chinese. A word is a
    token that starts one and those behind it that do not; what becomes of each of its tokens is
    rolled apart, as in the authors' code.
    """

    rate: float = 0.15

    def __post_init__(self) -> None:
        check_rate(self.rate)

    def __call__(self, fixed: Tensor, starts: Tensor, roll: Tensor) -> Tensor:
        place = torch.arange(starts.shape[-1], device=starts.device)  # n
        first = torch.where(starts, place, 0).cummax(-1).values  # b n
        return (roll.gather(-1, first) < self.rate) & ~fixed


MASKINGS: dict[str, Callable[..., Masking]] = {"tokens": TokenMasking, "words": WordMasking}


def corrupt(
    ids: Tensor, chosen: Tensor, rolls: Tensor, *, hidden: Tensor | int, ordinary: Tensor
) -> Corrupted:
    """Of the ``chosen``, 80 % become ``hidden`` ([MASK]), 10 % a random id, 10 % stay.

    ``ids``, ``chosen``: b n; ``rolls`` 2 b n; ``ordinary`` v: the ids that may stand in at random.
    """
    fate, which = rolls
    place = (which * len(ordinary)).long().clamp(max=len(ordinary) - 1)
    inputs = torch.where(chosen & (fate < HIDE), hidden, ids)
    inputs = torch.where(chosen & (fate >= HIDE + KEEP), ordinary[place], inputs)
    return Corrupted(inputs, torch.where(chosen, ids, IGNORE))


def restore(corrupted: Corrupted) -> Tensor:
    """The original ids: b n."""
    inputs, targets = corrupted
    return torch.where(targets == IGNORE, inputs, targets)


def check_rate(rate: float) -> None:
    if not 0 < rate <= 1:
        raise ConfigError(f"the rate of masking is a share above 0 and up to 1, not {rate}")
