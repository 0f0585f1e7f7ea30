"""Cut pictures into regions: nineteen crops and the picture itself.

The crops are the cells of the grid, its four squares of two by two cells, its rows and its columns:
where a detector would look for objects (Karpathy and Fei-Fei 2015 take its 19 best).

Shapes: b pictures, r regions, c channels, s side of a crop, y rows and x columns of pixels.
"""

from itertools import product

import torch
from torch import Tensor, nn

from mnemic.data.pictures.scenes import CELL, CELLS, SIDE, PictureBox

CROP = 16  # pixels of a crop's side


def list_regions() -> tuple[PictureBox, ...]:
    """List the boxes of the 20 regions: cells, squares, rows, columns, picture."""
    steps = [CELL * index for index in range(CELLS + 1)]
    cells = [PictureBox(steps[x], steps[y], steps[x + 1], steps[y + 1]) for y, x in product(range(CELLS), repeat=2)]
    squares = [
        PictureBox(steps[x], steps[y], steps[x + 2], steps[y + 2]) for y, x in product(range(CELLS - 1), repeat=2)
    ]
    rows = [PictureBox(0, steps[y], SIDE, steps[y + 1]) for y in range(CELLS)]
    columns = [PictureBox(steps[x], 0, steps[x + 1], SIDE) for x in range(CELLS)]
    return (*cells, *squares, *rows, *columns, PictureBox(0, 0, SIDE, SIDE))


REGIONS = list_regions()


def crop_regions(pictures: Tensor, side: int = CROP) -> Tensor:
    """Cut out regions, scaled to squares: b c y x → b r c s s."""
    crops = []
    for box in REGIONS:
        x1, y1, x2, y2 = map(int, box)
        crops.append(nn.functional.adaptive_avg_pool2d(pictures[:, :, y1:y2, x1:x2], side))
    return torch.stack(crops, 1)


def overlap_areas(boxes: Tensor, regions: Tensor) -> Tensor:
    """Compute the area that each box (… 4) shares with each region (k 4): … k."""
    boxes = boxes.unsqueeze(-2)
    sides = torch.minimum(boxes[..., 2:], regions[..., 2:]) - torch.maximum(boxes[..., :2], regions[..., :2])
    return sides.clamp(min=0).prod(-1)


def grid_boxes(num_rows: int, num_columns: int) -> Tensor:
    """List the boxes of a grid that divides a picture, row by row: k 4."""
    height, width = SIDE / num_rows, SIDE / num_columns
    cells = product(range(num_rows), range(num_columns))
    return torch.tensor([[x * width, y * height, (x + 1) * width, (y + 1) * height] for y, x in cells])
