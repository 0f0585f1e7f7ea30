"""The controller of BERT-MASS: a GRU that scores which inputs to store.

Shapes: b batch, s segments, n inputs, d width, l layers (1), c channels.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.recurrent import GRU, HiddenState

DEFAULT_CONTROLLER: Mapping[str, Any] = {"kind": "gru"}


class Salience(NamedTuple):
    """Logits of storing each input, and the controller's hidden state after them."""

    logits: Tensor  # b n; u = σ(logits)
    hidden: Tensor  # b l c


class Controller(nn.Module):
    """Score inputs: embedding → GRU → one weight u in (0, 1) per input.

    The hidden state is passed in and out. ``inner`` is the GRU's width, 0 for the width of the
    states. ``open`` is the initial logit: with u near 1 everything is stored at first, and the
    controller learns what is useless; with u near 0 there would be nothing to learn from.
    ``fused=False``: use operations that `torch.func.vmap` supports.
    """

    def __init__(self, width: int, *, inner: int = 0, open: float = 3.0, fused: bool = True) -> None:
        super().__init__()
        self.inner = inner or width
        self.embed = nn.Linear(width, self.inner)
        self.recurrent = GRU(self.inner, fused=fused)
        self.weigh = nn.Linear(self.inner, 1)
        nn.init.constant_(self.weigh.bias, open)

    def empty(self, batch: int, like: Tensor) -> Tensor:
        """Make the initial hidden state."""
        return like.new_zeros(batch, 1, self.inner)

    def forward(self, states: Tensor, mask: Tensor, hidden: Tensor) -> Salience:
        """Score one segment; padding leaves the hidden state unchanged.

        ``states`` b n d, ``mask`` b n, ``hidden`` b l c.
        """
        salience = self.score_segments(states.unsqueeze(1), mask.unsqueeze(1), hidden)
        return Salience(salience.logits[:, 0], salience.hidden[:, 0])

    def score_segments(self, states: Tensor, mask: Tensor, hidden: Tensor) -> Salience:
        """Score the inputs of several segments in turn.

        ``states`` b s n d, ``mask`` b s n, ``hidden`` b l c. Returns logits b s n and the
        hidden state after each segment, b s l c.
        """
        if not mask.numel():
            next_hidden = hidden.unsqueeze(1).expand(-1, mask.shape[1], -1, -1)
            return Salience(states.new_zeros(mask.shape), next_hidden)
        flat_mask = mask.flatten(1)
        scan = self.recurrent(self.embed(states.flatten(1, 2)), flat_mask, HiddenState(hidden))
        logits = self.weigh(scan.states).view(mask.shape)
        steps = torch.arange(1, flat_mask.shape[1] + 1, device=flat_mask.device)
        last_step = torch.where(flat_mask, steps, 0).view(mask.shape).amax(2).cummax(1).values  # b s
        hidden_states = torch.cat([hidden, scan.states.to(hidden.dtype)], 1)  # b 1+sn c
        next_hidden = hidden_states.gather(1, last_step.unsqueeze(-1).expand(-1, -1, hidden_states.shape[-1]))
        return Salience(logits.float().to(states.dtype), next_hidden.unsqueeze(2))


def bernoulli_entropy(logits: Tensor) -> Tensor:
    """Compute the entropy H(u) of each weight u = σ(logits), in nats."""
    u = torch.sigmoid(logits)
    return nn.functional.softplus(logits) - u * logits


CONTROLLERS: dict[str, Callable[..., Any]] = {"gru": Controller}
