"""Position embeddings: vectors to add to the token embeddings.

Contract: ``forward(tokens, *, start=0, positions=None)``. Without ``positions`` the tokens have the
positions ``start``, ``start + 1`` … (the result is n d); with them (b n, from 0) each token has its
own (b n d), as packed texts need, each of which begins at 0 again. ``max_length`` is the number of
positions, None if unlimited.

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError

MAX_WAVELENGTH = 10_000  # Vaswani et al. 2017, section 3.5


class NoPositions(nn.Module):
    """No position embeddings: zeros, for networks that know the order, such as recurrent ones."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.max_length = None

    def forward(self, tokens: Tensor, *, start: int = 0, positions: Tensor | None = None) -> Tensor:
        return torch.zeros((), device=tokens.device).expand(tokens.shape[-1], self.width)


class LearnedPositions(nn.Module):
    """One learned vector for each of the first ``length`` positions (Devlin et al. 2019)."""

    def __init__(self, width: int, *, length: int = 512) -> None:
        super().__init__()
        self.max_length = length
        self.table = nn.Parameter(torch.randn(length, width) * width**-0.5)

    def forward(self, tokens: Tensor, *, start: int = 0, positions: Tensor | None = None) -> Tensor:
        """Look up the vectors of the positions; ValueError beyond the table."""
        length, stop = self.table.shape[0], start + tokens.shape[-1]
        if positions is None:
            if stop > length:
                raise ValueError(format_range_error(f"{stop} are asked for", length))
            return self.table[start:stop]  # n d
        try:
            return nn.functional.embedding(positions, self.table)  # b n d
        except IndexError:  # a check beforehand would synchronize a GPU for every batch
            raise ValueError(format_range_error("`positions` reaches past them", length)) from None


class SinusoidalPositions(nn.Module):
    """Sine and cosine position embeddings of any length (Vaswani et al. 2017, section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same). Their size is about one:
    use ``scale = true`` in the embeddings with them, as the paper does.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        if width % 2:
            raise ConfigError(f"sinusoidal positions pair sine and cosine; width {width} is odd")
        self.width = width
        self.max_length = None

    def forward(self, tokens: Tensor, *, start: int = 0, positions: Tensor | None = None) -> Tensor:
        """Compute the sine and cosine vectors of the positions."""
        if positions is None:
            positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)
        even = torch.arange(0, self.width, 2, device=tokens.device)  # d/2
        angles = positions.unsqueeze(-1) / MAX_WAVELENGTH ** (even / self.width)  # … n d/2
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)  # … n d


def format_range_error(problem: str, length: int) -> str:
    """Format the error message for a position beyond the table."""
    return (
        f"there are {length} learned positions, 0 to {length - 1}, but {problem}; cut the text "
        "into windows, build with a larger `length`, or use sinusoidal positions"
    )


POSITIONS: dict[str, Callable[..., nn.Module]] = {
    "none": NoPositions,
    "learned": LearnedPositions,
    "sinusoidal": SinusoidalPositions,
}
