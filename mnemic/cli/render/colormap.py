"""The colours of a weight, on the screen as in a picture."""

from typing import NamedTuple, TypeAlias

Colour: TypeAlias = tuple[int, int, int]  # red, green, blue, 0 to 255

FAINT = 0.005  # a smaller weight would be shown as 0.00
LIGHT, DARK = (228, 238, 248), (8, 69, 148)  # of what was read: blue
PALE, DEEP = (253, 240, 224), (204, 85, 0)  # of gates: orange
BLACK, WHITE = (20, 24, 30), (255, 255, 255)


class Shade(NamedTuple):
    ground: Colour
    ink: Colour  # what can be read on it


def shade(weight: float) -> Shade:
    """The darker the more was read; the power keeps small weights apart."""
    return between(LIGHT, DARK, weight)


def open_shade(gate: float) -> Shade:
    """The deeper the wider a gate is open."""
    return between(PALE, DEEP, gate)


def between(light: Colour, dark: Colour, weight: float) -> Shade:
    share = min(max(weight, 0.0), 1.0) ** 0.75
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(light, dark))
    return Shade((red, green, blue), WHITE if share > 0.45 else BLACK)


def hexadecimal(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
