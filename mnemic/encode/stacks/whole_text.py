"""Common parts of stacks that see whole texts: no context, padding at the end.

Shapes: b batch, n tokens, d width.
"""

from typing import Any

import torch
from torch import Tensor

from mnemic.recipe import ConfigError


def check_whole_texts(kind: str, mask: Any, context: Any) -> None:
    """Raise unless ``mask`` (b n) says which tokens are real, and there is no context."""
    if context is not None:
        raise ConfigError(f"layers of kind {kind!r} have no context of earlier states; use kind 'encoder'")
    if not isinstance(mask, Tensor) or mask.dim() != 2:
        raise ConfigError(f"layers of kind {kind!r} take a mask b n, the same for all tokens; use kind 'encoder'")


def order_real_first(mask: Tensor) -> Tensor:
    """Return the positions of real tokens in order, then those of padding, b n."""
    return (~mask).to(torch.uint8).argsort(dim=1, stable=True)


def gather_tokens(x: Tensor, order: Tensor) -> Tensor:
    """Reorder the tokens of ``x`` (b n d): position i is that of ``order[:, i]``."""
    return x.gather(1, order.unsqueeze(-1).expand_as(x))


def scatter_tokens(x: Tensor, order: Tensor) -> Tensor:
    """Undo ``gather_tokens``."""
    return torch.zeros_like(x).scatter(1, order.unsqueeze(-1).expand_as(x), x)
