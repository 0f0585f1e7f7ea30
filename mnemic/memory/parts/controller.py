"""The controller of BERT-MASS: what is worth storing, judged by all that was read so far.

Shapes: b batch, s segments, n inputs, d width, l layers (1), c channels.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.recurrent import GRU, Hidden

CONTROLLER: Mapping[str, Any] = {"kind": "gru"}


class Judged(NamedTuple):
    """How much each input is worth storing, and what to judge the next ones by."""

    odds: Tensor  # b n, log-odds of u; u = σ(odds)
    hidden: Tensor  # b l c


class Controller(nn.Module):
    """Embedding → GRU → one weight u in (0, 1) an input; its hidden state is a value.

    ``inner`` is the GRU's width, 0 for the states' own. ``open`` is where the log-odds begin: with
    u near 1 all is stored at first, and what is of no use is learnt; from u near 0, nothing would
    be there to learn from. ``fused=False``: in operations that `torch.func.vmap` knows.
    """

    def __init__(
        self, width: int, *, inner: int = 0, open: float = 3.0, fused: bool = True
    ) -> None:
        super().__init__()
        self.inner = inner or width
        self.embed = nn.Linear(width, self.inner)
        self.recurrent = GRU(self.inner, fused=fused)
        self.weigh = nn.Linear(self.inner, 1)
        nn.init.constant_(self.weigh.bias, open)

    def empty(self, batch: int, like: Tensor) -> Tensor:
        """The hidden state before anything was read."""
        return like.new_zeros(batch, 1, self.inner)

    def forward(self, states: Tensor, mask: Tensor, hidden: Tensor) -> Judged:
        """``states`` b n d, ``mask`` b n, ``hidden`` b l c; padding leaves the state as it was."""
        every = self.each(states.unsqueeze(1), mask.unsqueeze(1), hidden)
        return Judged(every.odds[:, 0], every.hidden[:, 0])

    def each(self, states: Tensor, mask: Tensor, hidden: Tensor) -> Judged:
        """Segments in turn, b s n of each: their odds, b s n, and the state after each, b s l c."""
        if not mask.numel():
            after = hidden.unsqueeze(1).expand(-1, mask.shape[1], -1, -1)
            return Judged(states.new_zeros(mask.shape), after)
        real = mask.flatten(1)
        read = self.recurrent(self.embed(states.flatten(1, 2)), real, Hidden(hidden))
        odds = self.weigh(read.states).view(mask.shape)
        steps = torch.arange(1, real.shape[1] + 1, device=real.device)
        last = torch.where(real, steps, 0).view(mask.shape).amax(2).cummax(1).values  # b s
        path = torch.cat([hidden, read.states.to(hidden.dtype)], 1)  # b 1+sn c
        after = path.gather(1, last.unsqueeze(-1).expand(-1, -1, path.shape[-1]))
        return Judged(odds.float().to(states.dtype), after.unsqueeze(2))


def entropy(odds: Tensor) -> Tensor:
    """H(u) of each weight by itself, in nats: largest where a decision is not made."""
    u = torch.sigmoid(odds)
    return nn.functional.softplus(odds) - u * odds


CONTROLLERS: dict[str, Callable[..., Any]] = {"gru": Controller}
