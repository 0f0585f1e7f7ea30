"""Draw scenes as pictures: anti-aliased shapes on a dark ground.

Shapes: e scenes, o objects of the largest scene, y rows and x columns of pixels.
"""

from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from mnemic.data.pictures.scenes import COLORS, MAX_OBJECTS, SHAPES, SIDE, Scene

GROUND = 0.15  # the brightness where there is no object
RGB = {
    "red": (0.9, 0.15, 0.15),
    "green": (0.15, 0.75, 0.2),
    "blue": (0.2, 0.35, 0.95),
    "yellow": (0.95, 0.85, 0.15),
    "purple": (0.7, 0.2, 0.8),
    "white": (0.95, 0.95, 0.95),
}
SCENES_PER_BATCH = 256  # changes memory use, not results


def draw_scenes(scenes: Sequence[Scene]) -> Tensor:
    """Draw scenes as bytes: e 3 y x."""
    pictures = [
        draw_batch(scenes[start : start + SCENES_PER_BATCH]) for start in range(0, len(scenes), SCENES_PER_BATCH)
    ]
    return torch.cat(pictures) if pictures else torch.zeros(0, 3, SIDE, SIDE, dtype=torch.uint8)


def draw_batch(scenes: Sequence[Scene]) -> Tensor:
    """Draw some scenes at once, object by object; objects never overlap."""
    canvas = torch.full((len(scenes), 3, SIDE, SIDE), GROUND)
    pixel = torch.arange(SIDE) + 0.5
    for index in range(MAX_OBJECTS):
        rows = torch.tensor([row for row, scene in enumerate(scenes) if index < len(scene)])
        for shape in SHAPES:
            drawn_rows = [int(row) for row in rows if scenes[row][index].shape == shape]
            if not drawn_rows:
                continue
            objects = [scenes[row][index] for row in drawn_rows]
            centers = torch.tensor([[item.x, item.y] for item in objects])  # e 2
            radius = torch.tensor([item.radius for item in objects])[:, None, None]  # e 1 1
            x, y = pixel - centers[:, 0, None, None], pixel[:, None] - centers[:, 1, None, None]  # e 1 x, e y 1
            coverage = (0.5 - DISTANCES[shape](x, y, radius)).clamp(0, 1).unsqueeze(1)  # e 1 y x
            colors = color_table()[[COLORS.index(item.color) for item in objects]][:, :, None, None]
            canvas[drawn_rows] = canvas[drawn_rows] * (1 - coverage) + colors * coverage
    return (canvas * 255).round().byte()


@cache
def color_table() -> Tensor:
    """List the red, green and blue of each color."""
    return torch.tensor([RGB[color] for color in COLORS])


def circle_distance(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    """Measure how far pixels are outside a circle; below 0: inside."""
    return (x.square() + y.square()).sqrt() - radius


def square_distance(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    """Measure how far pixels are outside a square."""
    return torch.maximum(x.abs(), y.abs()) - 0.85 * radius


def triangle_distance(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    """Measure how far pixels are outside a triangle that stands on its base."""
    side = (1.7 * x.abs() - (y + radius)) / (1 + 1.7**2) ** 0.5
    return torch.maximum(side, y - 0.7 * radius)


def cross_distance(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    """Measure how far pixels are outside an upright cross."""
    bars = (torch.maximum(a.abs() - radius, b.abs() - 0.3 * radius) for a, b in ((x, y), (y, x)))
    return torch.minimum(*bars)


def ring_distance(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    """Measure how far pixels are outside a ring."""
    return (circle_distance(x, y, 0.7 * radius)).abs() - 0.3 * radius


# How far pixels (x and y from the center of an object of some radius) are outside of each shape.
DISTANCES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "circle": circle_distance,
    "square": square_distance,
    "triangle": triangle_distance,
    "cross": cross_distance,
    "ring": ring_distance,
}
