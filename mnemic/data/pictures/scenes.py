"""Generate scenes: one to four shapes on a grid of nine cells.

A scene depends on its split, the seed and its number alone. Training never shows the pairs of color
and shape in ``HELD_OUT``; a network that names them right has learned colors and shapes apart.
"""

from collections.abc import Iterator
from random import Random
from typing import Literal, NamedTuple

from mnemic.data.contract import Split

SIDE, CELLS = 48, 3  # of a picture, in pixels; of the grid, in cells
CELL = SIDE // CELLS
MAX_OBJECTS = 4
SHAPES = ("circle", "square", "triangle", "cross", "ring")
COLORS = ("red", "green", "blue", "yellow", "purple", "white")
SIZES = ("small", "large")
RADII = {"small": 4.0, "large": 7.0}  # in pixels
HELD_OUT = frozenset({("red", "triangle"), ("blue", "ring"), ("yellow", "cross")})  # color and shape
Pairs = Literal["seen", "held-out"]  # of color and shape


class PictureBox(NamedTuple):
    """A box in a picture: its corners, in pixels from the top left."""

    x1: float
    y1: float
    x2: float
    y2: float


class SceneObject(NamedTuple):
    """A shape of a scene."""

    shape: str
    color: str
    size: str
    row: int  # of its cell
    column: int
    x: float  # its center, in pixels from the top left
    y: float

    @property
    def radius(self) -> float:
        """Its radius in pixels."""
        return RADII[self.size]

    @property
    def box(self) -> PictureBox:
        """The smallest box around it."""
        width, above, below = EXTENTS[self.shape]
        r = self.radius
        return PictureBox(self.x - width * r, self.y - above * r, self.x + width * r, self.y + below * r)


Scene = tuple[SceneObject, ...]  # in reading order: row by row, from left to right
# How far a shape of radius 1 reaches to each side, up and down.
EXTENTS = {
    "circle": (1.0, 1.0, 1.0),
    "square": (0.85, 0.85, 0.85),
    "triangle": (1.0, 1.0, 0.7),
    "cross": (1.0, 1.0, 1.0),
    "ring": (1.0, 1.0, 1.0),
}


def generate_scenes(split: Split, count: int, *, seed: int, pairs: Pairs = "seen") -> list[Scene]:
    """Generate scenes of a split; with ``held-out`` pairs each has at least one of those.

    >>> [scene] = generate_scenes("test", 1, seed=0)
    >>> [(item.size, item.color, item.shape) for item in scene]
    [('large', 'purple', 'triangle'), ('small', 'purple', 'ring')]
    """
    if pairs == "held-out" and split == "train":
        raise ValueError("pairs that are held out are never in training; ask for another split")
    return [draw_scene(Random(f"scenes/{split}/{pairs}/{seed}/{number}"), pairs) for number in range(count)]


def draw_scene(random: Random, pairs: Pairs) -> Scene:
    """Draw a scene at random."""
    count = random.randint(1, MAX_OBJECTS)
    cells = sorted(random.sample(range(CELLS * CELLS), count))
    held_out_index = random.randrange(count) if pairs == "held-out" else None
    return tuple(draw_object(random, cell, index == held_out_index) for index, cell in enumerate(cells))


def draw_object(random: Random, cell: int, is_held_out: bool) -> SceneObject:
    """Draw an object in a cell, of a pair that is held out or not."""
    color, shape = random.choice([pair for pair in list_pairs() if (pair in HELD_OUT) == is_held_out])
    size = random.choice(SIZES)
    slack = CELL / 2 - RADII[size]
    row, column = divmod(cell, CELLS)
    x, y = (CELL * (index + 0.5) + random.uniform(-slack, slack) for index in (column, row))
    return SceneObject(shape, color, size, row, column, x, y)


def list_pairs() -> Iterator[tuple[str, str]]:
    """List all pairs of color and shape."""
    return ((color, shape) for color in COLORS for shape in SHAPES)
