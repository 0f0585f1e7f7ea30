"""A page of a picture: everything is laid out in inches from the top left.

So a picture is as large as its text. Cells are boxes with round corners, shaded as on the screen.
"""

from pathlib import Path
from typing import Any

from mnemic.cli.render.colormap import FAINT, Shade, hexadecimal

INK, GREY, EMPTY = "#14181e", "#6b7480", "#f4f6f8"
TITLE, TEXT, SMALL = 15.0, 10.5, 9.0  # points
DPI = 160
ROUND, SPACE = 0.04, 0.025  # inches: of a cell's corners, around a cell


class Sheet:
    """A page in the making: measure first, then ``open`` it and write and draw on it."""

    def __init__(self) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure: Any = Figure(dpi=DPI)
        self.renderer: Any = FigureCanvasAgg(self.figure).get_renderer()

    def measure(self, text: str, size: float, **style: Any) -> float:
        """How many inches wide a text is."""
        drawn = self.figure.text(0, 0, text, fontsize=size, parse_math=False, **style)
        width = drawn.get_window_extent(self.renderer).width / DPI
        drawn.remove()
        return float(width)

    def open(self, width: float, height: float) -> None:
        """The page itself, so many inches wide and high."""
        self.figure.set_size_inches(width, height)
        self.page: Any = self.figure.add_axes((0, 0, 1, 1))
        self.page.set(xlim=(0, width), ylim=(height, 0))
        self.page.set_axis_off()

    def write(self, x: float, y: float, text: str, size: float, **style: Any) -> None:
        style = {"va": "center_baseline", "color": INK} | style
        self.page.text(x, y, text, fontsize=size, parse_math=False, **style)

    def cell(
        self, x: float, y: float, width: float, height: float, weight: float, shade: Shade
    ) -> None:
        """A weight in a box of its shade; one too small to be written is an empty box."""
        ground, ink = map(hexadecimal, shade)
        seen = weight >= FAINT
        self.box(x, y, width, height, facecolor=ground if seen else EMPTY)
        if seen:
            middle = (x + width / 2, y + height / 2)
            self.write(*middle, f"{weight:.2f}", SMALL, color=ink, ha="center")

    def box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """A box with round corners and a little room around it; narrow ones have less of both."""
        from matplotlib.patches import FancyBboxPatch

        part = min(1.0, width / 0.3)
        inner, space = ROUND * part, SPACE * part
        box = FancyBboxPatch(
            (x + space + inner, y + space + inner),
            width - 2 * (space + inner),
            height - 2 * (space + inner),
            boxstyle=f"round,pad={inner},rounding_size={inner * 1.5}",
            **({"linewidth": 0} | style),
        )
        self.page.add_patch(box)

    def save(self, path: Path) -> None:
        self.figure.savefig(path)
