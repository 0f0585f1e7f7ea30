"""A convolutional encoder of pictures: annotation vectors on a grid.

Shapes: b pictures, c channels, y rows and x columns, n regions, d width.
"""

from itertools import pairwise
from math import gcd
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError, check_repeats

NORM_GROUPS = 8  # of channels that are normalized together


class ConvEncoder(nn.Module):
    """Halve a picture ``halvings`` times by convolutions, then read each point of the grid.

    Each layer has a 3×3 kernel with stride 2, a group norm (Wu and He 2018) and a ReLU; the
    channels double up to ``width``. 48×48 pixels give 6×6 regions of 8×8 pixels; each sees the
    15×15 pixels around its middle.
    ``depth`` residual blocks follow: two 3×3 convolutions with ``groups`` (ResNeXt; Xie et al.
    2017) and ``dilation`` (Yu and Koltun 2016), and with ``squeeze`` > 0 a squeeze-and-excitation
    of ``width`` / ``squeeze`` channels (Hu et al. 2018). A learned vector per region says where it
    is: Xu et al. (2015) have none, as a deep network's states know it.
    """

    def __init__(
        self,
        width: int,
        channels: int = 3,
        side: int = 48,
        *,
        halvings: int = 3,
        depth: int = 0,
        groups: int = 1,
        dilation: int = 1,
        squeeze: int = 0,
    ) -> None:
        super().__init__()
        check_repeats(depth=depth)
        rows = count_rows(side, 2**halvings, "halvings", halvings)
        if halvings < 1 or width % 2 ** (halvings - 1):
            raise ConfigError(f"encode.halvings = {halvings} does not divide model.width = {width}: make it a multiple")
        if groups < 1 or width % groups or dilation < 1 or squeeze < 0:
            raise ConfigError(f"encode takes dilation ≥ 1 and groups that divide {width}, not {dilation} and {groups}")
        self.width, self.grid, self.num_regions = width, (rows, rows), rows * rows
        sizes = [channels, *(width >> (halvings - 1 - number) for number in range(halvings))]
        self.layers = nn.Sequential(
            *(
                make_halving(before, after, is_last=number == halvings)
                for number, (before, after) in enumerate(pairwise(sizes), start=1)
            ),
            *(ConvBlock(width, groups=groups, dilation=dilation, squeeze=squeeze) for _ in range(depth)),
        )
        self.positions = nn.Parameter(torch.randn(self.num_regions, width) * 0.1)

    def forward(self, pictures: Tensor) -> Tensor:
        """Encode pictures as regions: b c y x → b n d."""
        return self.layers(pictures).flatten(2).mT + self.positions


class ConvBlock(nn.Module):
    """Add two convolutions, with groups, dilation and squeeze-and-excitation, to their input."""

    def __init__(self, width: int, *, groups: int, dilation: int, squeeze: int) -> None:
        super().__init__()
        options: dict[str, Any] = {"padding": dilation, "dilation": dilation, "groups": groups}
        self.first, self.second = (make_layer(nn.Conv2d(width, width, 3, **options)) for _ in range(2))
        inner = max(width // squeeze, 1) if squeeze else 0
        self.excite = (
            nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width), nn.Sigmoid()) if inner else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Compute x plus its change: b d y x."""
        change = self.second(self.first(x))
        if self.excite is not None:
            change = change * self.excite(change.mean((2, 3)))[:, :, None, None]
        return x + change


def make_halving(before: int, after: int, *, is_last: bool) -> nn.Module:
    """Make a layer that halves a picture.

    A row of zeros is below and to the right; in the last one above and to the left, so that the
    pixels a region sees lie around its middle.
    """
    layer = make_layer(nn.Conv2d(before, after, 3, stride=2))
    return nn.Sequential(nn.ZeroPad2d((1, 0, 1, 0) if is_last else (0, 1, 0, 1)), *layer)


def make_layer(conv: nn.Conv2d) -> nn.Sequential:
    """Make a layer of a convolution, a group norm and a ReLU."""
    channels = conv.out_channels
    return nn.Sequential(conv, nn.GroupNorm(gcd(NORM_GROUPS, channels), channels), nn.ReLU())


def count_rows(side: int, pixels: int, option: str, value: int) -> int:
    """Count the rows of regions of so many pixels; raise unless they fill the picture."""
    if pixels < 1 or side % pixels:
        raise ConfigError(f"encode.{option} = {value} does not divide pictures of {side}×{side} pixels")
    return side // pixels
