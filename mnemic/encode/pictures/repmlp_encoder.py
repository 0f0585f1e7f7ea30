"""An encoder of pictures whose layers are RepMLP's.

Shapes: b pictures, c channels, y rows and x columns of pixels, n regions, d width.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from mnemic.encode.pictures.conv import count_rows
from mnemic.encode.pictures.repmlp import DEFAULT_KERNELS, RepMLPLayer
from mnemic.recipe import check_repeats


class RepMLPEncoder(nn.Module):
    """Embed patches, then run bottlenecks of RepMLP layers over their map (Ding et al. 2021).

    arXiv:2105.01883, figure 4, "RepMLP Light": a 1×1 convolution to ``bottleneck`` channels, the
    layer, and a 1×1 convolution back, added to the input. ``tile``, ``groups`` and ``kernels`` are
    those of the layers. ``merged`` builds the network of fully connected layers that
    ``mnemic.encode.pictures.merge_repmlp`` makes of a trained one: for inference.
    """

    def __init__(
        self,
        width: int,
        channels: int = 3,
        side: int = 48,
        *,
        patch: int = 4,
        depth: int = 2,
        bottleneck: int = 16,
        tile: int = 6,
        groups: int = 4,
        kernels: Sequence[int] = DEFAULT_KERNELS,
        merged: bool = False,
    ) -> None:
        super().__init__()
        check_repeats(depth=depth)
        rows = count_rows(side, patch, "patch", patch)
        self.width, self.grid, self.num_regions = width, (rows, rows), rows * rows
        self.embed = nn.Sequential(
            nn.Conv2d(channels, width, patch, patch, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.blocks = nn.ModuleList(
            RepMLPBottleneck(
                width,
                bottleneck,
                RepMLPLayer(bottleneck, rows, tile=tile, groups=groups, kernels=kernels, merged=merged),
            )
            for _ in range(depth)
        )

    def forward(self, pictures: Tensor) -> Tensor:
        """Encode pictures as regions: b c y x → b n d."""
        x = self.embed(pictures)  # b d y x
        for block in self.blocks:
            x = block(x)
        return x.flatten(2).mT


class RepMLPBottleneck(nn.Module):
    """Add to a map what a RepMLP layer makes of fewer channels."""

    def __init__(self, width: int, channels: int, layer: RepMLPLayer) -> None:
        super().__init__()
        self.reduce = nn.Sequential(nn.Conv2d(width, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())
        self.layer = layer
        self.widen = nn.Sequential(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.widen(self.layer(self.reduce(x)).relu())).relu()
