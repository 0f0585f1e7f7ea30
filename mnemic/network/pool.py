"""Tokens to sentences: how the states of a sentence's tokens become one.

Shapes: b segments, n tokens, p sentences, h heads, d width, c channels of one head.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mnemic.network.segments import units_of
from mnemic.recipe import ConfigError

HIDDEN = -1e30  # the score of a token of another sentence


class Mean(nn.Module):
    """The mean of a sentence's states: which words it has, and little of who did what to whom."""

    def __init__(self, width: int) -> None:
        super().__init__()

    def forward(self, states: Tensor, sentences: Tensor, count: int) -> Tensor:
        """``states`` b n d, ``sentences`` b n, -1 for none → b p d, zeros for none."""
        return units_of(states, sentences, count)


class Heads(nn.Module):
    """The mean, and beside it heads that each take some tokens, with channels of their own.

    So a giver and a receiver stay apart, whose names a mean only adds.
    """

    def __init__(self, width: int, *, heads: int = 8) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ConfigError(
                f"carry.pooling takes heads that divide the width {width}, not {heads}"
            )
        self.heads = heads
        self.score = nn.Linear(width, heads)
        self.value = nn.Linear(width, width)
        self.join = nn.Linear(width, width)

    def forward(self, states: Tensor, sentences: Tensor, count: int) -> Tensor:
        """As ``Mean``."""
        number = torch.arange(count, device=sentences.device)[:, None]
        own = (sentences.unsqueeze(1) == number).unsqueeze(1)  # b 1 p n
        score = self.score(states).float().mT.unsqueeze(2)  # b h 1 n
        weight = score.masked_fill(~own, HIDDEN).softmax(-1) * own  # b h p n
        values = self.value(states).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # b h n c
        taken = (weight.to(values.dtype) @ values).transpose(1, 2).flatten(2)  # b p d
        mean = units_of(states, sentences, count)
        return mean + self.join(taken) * own.any(-1).squeeze(1).unsqueeze(-1)


POOLS: dict[str, Callable[..., nn.Module]] = {"mean": Mean, "heads": Heads}
