"""A fragment of a line on a page, with its box."""

from typing import NamedTuple


class Fragment(NamedTuple):
    """Glyphs of a line without a wide gap; ``row`` numbers the lines."""

    text: str
    x_min: float
    y_min: float
    x_max: float
    y_max: float
    first_word_width: float
    row: int

    @property
    def height(self) -> float:
        return self.y_max - self.y_min
