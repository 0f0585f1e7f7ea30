"""Boxes of a grid of regions, and the areas that boxes share.

Shapes: k regions.
"""

from itertools import product

import torch
from torch import Tensor

from mnemic.data.pictures.scenes import SIDE


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
