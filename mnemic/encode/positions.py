"""Where a token stands, as a vector to add to its embedding.

Contract: ``forward(tokens, *, start=0, positions=None)``. Without ``positions`` the tokens stand at
``start``, ``start + 1`` … (n d comes back); with them (b n, from 0) each token stands where they
say (b n d), as packed texts need, each of which begins at 0 again. ``longest`` is the number of
positions there are, None for no end.

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError

LONGEST_WAVE = 10_000  # Vaswani et al. 2017, section 3.5


class NoPositions(nn.Module):
    """Add nothing: for networks that know the order anyway, such as recurrent ones."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.longest = None

    def forward(self, tokens: Tensor, *, start: int = 0, positions: Tensor | None = None) -> Tensor:
        return torch.zeros((), device=tokens.device).expand(tokens.shape[-1], self.width)


class LearnedPositions(nn.Module):
    """One learned vector for each of the first ``length`` positions (Devlin et al. 2019)."""

    def __init__(self, width: int, *, length: int = 512) -> None:
        super().__init__()
        self.longest = length
        self.table = nn.Parameter(torch.randn(length, width) * width**-0.5)

    def forward(self, tokens: Tensor, *, start: int = 0, positions: Tensor | None = None) -> Tensor:
        length, stop = self.table.shape[0], start + tokens.shape[-1]
        if positions is None:
            if stop > length:
                raise ValueError(too_far(f"{stop} are asked for", length))
            return self.table[start:stop]  # n d
        try:
            return nn.functional.embedding(positions, self.table)  # b n d
        except IndexError:  # checking beforehand would make a GPU wait for every batch
            raise ValueError(too_far("`positions` reaches past them", length)) from None


class SinusoidalPositions(nn.Module):
    """Sine and cosine waves, computed and endless (Vaswani et al. 2017, section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same). Their size is about one:
    let the embeddings be ``scaled`` beside them, as the paper does.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        if width % 2:
            raise ConfigError(f"sinusoidal positions pair sine and cosine; width {width} is odd")
        self.width = width
        self.longest = None

    def forward(self, tokens: Tensor, *, start: int = 0, positions: Tensor | None = None) -> Tensor:
        if positions is None:
            positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)
        even = torch.arange(0, self.width, 2, device=tokens.device)  # d/2
        angles = positions.unsqueeze(-1) / LONGEST_WAVE ** (even / self.width)  # … n d/2
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)  # … n d


def too_far(what: str, length: int) -> str:
    return (
        f"there are {length} learned positions, 0 to {length - 1}, but {what}; cut the text into "
        "windows, build with a larger `length`, or use sinusoidal positions"
    )


POSITIONS: dict[str, Callable[..., nn.Module]] = {
    "none": NoPositions,
    "learned": LearnedPositions,
    "sinusoidal": SinusoidalPositions,
}
