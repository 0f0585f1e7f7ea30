"""Colors of weights and gates, for the terminal and for plots."""

from typing import NamedTuple, TypeAlias

Color: TypeAlias = tuple[int, int, int]  # red, green, blue, 0 to 255

MIN_VISIBLE = 0.005  # smaller weights would be printed as 0.00
READ_LIGHT, READ_DARK = (228, 238, 248), (8, 69, 148)  # weights: blue
GATE_LIGHT, GATE_DARK = (253, 240, 224), (204, 85, 0)  # gates: orange
BLACK, WHITE = (20, 24, 30), (255, 255, 255)


class CellColors(NamedTuple):
    """The colors of a table cell."""

    background: Color
    foreground: Color  # readable on the background


def pick_weight_colors(weight: float) -> CellColors:
    """Pick a blue that is darker for a larger weight."""
    return interpolate_colors(READ_LIGHT, READ_DARK, weight)


def pick_gate_colors(gate: float) -> CellColors:
    """Pick an orange that is darker for a more open gate."""
    return interpolate_colors(GATE_LIGHT, GATE_DARK, gate)


def interpolate_colors(light: Color, dark: Color, weight: float) -> CellColors:
    """Interpolate between two colors; the power keeps small weights apart."""
    fraction = min(max(weight, 0.0), 1.0) ** 0.75
    red, green, blue = (round(a + fraction * (b - a)) for a, b in zip(light, dark))
    return CellColors((red, green, blue), WHITE if fraction > 0.45 else BLACK)


def to_hex(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
