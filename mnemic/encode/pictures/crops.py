"""An encoder of pictures by crops, of regions that overlap.

Shapes: b pictures, c channels, y rows and x columns of pixels, n regions, s side of a crop,
d width.
"""

from itertools import product

import torch
from torch import Tensor, nn

from mnemic.encode.pictures.conv import ConvEncoder
from mnemic.recipe import ConfigError


class CropEncoder(nn.Module):
    """Cut out regions, scale each to ``crop`` × ``crop`` pixels, and encode each by itself.

    The region vectors of Karpathy and Fei-Fei (2015), arXiv:1412.2306, equation 1: v = W_m CNN(I_b)
    + b_m. Where we differ: they take the 19 best boxes of a detector and the picture; here regions
    are fixed: the cells of a grid of ``cells`` × ``cells``, its squares of two by two cells, its
    rows, its columns and the picture, 20 with three cells. ``halvings`` and ``depth`` are those of
    the convolutions (kind ``conv``), which all regions share.
    """

    def __init__(
        self,
        width: int,
        channels: int = 3,
        side: int = 48,
        *,
        cells: int = 3,
        crop: int = 16,
        halvings: int = 2,
        depth: int = 0,
    ) -> None:
        super().__init__()
        if cells < 1 or side % cells:
            raise ConfigError(f"encode.cells = {cells} does not divide pictures of {side}×{side} pixels")
        self.width, self.crop = width, crop
        self.boxes = list_boxes(cells)  # n 4, in cells: x1 y1 x2 y2
        self.cells, self.num_regions = cells, len(self.boxes)
        self.grid = (1, self.num_regions)  # regions overlap: they are no grid, but one after another
        self.conv = ConvEncoder(width, channels, crop, halvings=halvings, depth=depth)
        self.out = nn.Linear(self.conv.num_regions * width, width)

    @property
    def region_boxes(self) -> Tensor:
        """The corners of the regions, n 4: x1 y1 x2 y2, shares of the side."""
        return torch.tensor(self.boxes) / self.cells

    def forward(self, pictures: Tensor) -> Tensor:
        """Encode pictures as regions: b c y x → b n d."""
        crops = self.cut_crops(pictures)  # b n c s s
        vectors = self.out(self.conv(crops.flatten(0, 1)).flatten(1))
        return vectors.unflatten(0, crops.shape[:2])

    def cut_crops(self, pictures: Tensor) -> Tensor:
        """Cut out regions, scaled to squares: b c y x → b n c s s."""
        size = pictures.shape[-1] // self.cells
        boxes = [[size * edge for edge in box] for box in self.boxes]
        cuts = [pictures[:, :, y1:y2, x1:x2] for x1, y1, x2, y2 in boxes]
        return torch.stack([nn.functional.adaptive_avg_pool2d(cut, self.crop) for cut in cuts], 1)


def list_boxes(cells: int) -> list[tuple[int, int, int, int]]:
    """List the regions of a grid: cells, squares of 2×2, rows, columns and all.

    No region is in it twice.

    >>> len(list_boxes(3)), list_boxes(3)[0], list_boxes(3)[-1]
    (20, (0, 0, 1, 1), (0, 0, 3, 3))
    """
    boxes = [(x, y, x + size, y + size) for size in (1, 2) for y, x in product(range(cells + 1 - size), repeat=2)]
    boxes += [(0, y, cells, y + 1) for y in range(cells)] + [(x, 0, x + 1, cells) for x in range(cells)]
    return list(dict.fromkeys([*boxes, (0, 0, cells, cells)]))
