"""A matplotlib page whose layout is in inches from the top left.

So a plot is as large as its text. Cells are boxes with round corners, colored as on the screen.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mnemic.cli.render.colormap import MIN_VISIBLE, CellColors, to_hex

INK, GRAY, EMPTY = "#14181e", "#6b7480", "#f4f6f8"
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 15.0, 10.5, 9.0  # points
DPI = 160
CORNER_RADIUS, CELL_MARGIN = 0.04, 0.025  # inches: of a cell's corners, around a cell


class Canvas:
    """A page to draw on: measure the texts first, then set the size, then draw."""

    def __init__(self) -> None:
        """Create an empty figure and a renderer that measures texts."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure: Any = Figure(dpi=DPI)
        self.renderer: Any = FigureCanvasAgg(self.figure).get_renderer()

    def measure_width(self, texts: Iterable[str], size: float, **style: Any) -> float:
        """Measure the width of the widest text in inches."""
        widths = []
        for text in texts:
            artist = self.figure.text(0, 0, text, fontsize=size, parse_math=False, **style)
            widths.append(float(artist.get_window_extent(self.renderer).width / DPI))
            artist.remove()
        return max(widths)

    def set_size(self, width: float, height: float) -> None:
        """Set the size of the page in inches; call it before drawing."""
        self.figure.set_size_inches(width, height)
        self.page: Any = self.figure.add_axes((0, 0, 1, 1))
        self.page.set(xlim=(0, width), ylim=(height, 0))
        self.page.set_axis_off()

    def draw_text(self, x: float, y: float, text: str, size: float, **style: Any) -> None:
        style = {"va": "center_baseline", "color": INK} | style
        self.page.text(x, y, text, fontsize=size, parse_math=False, **style)

    def draw_title(self, margin: float, lines: list[str], answer: str, answer_color: str) -> float:
        """Draw the question, and the answer below it; return the height of the answer."""
        for number, line in enumerate(lines):
            self.draw_text(margin, margin + 0.3 * number, line, TITLE_SIZE, va="top", weight="bold")
        answer_y = margin + 0.3 * len(lines) + 0.17
        self.draw_text(margin, answer_y, answer, TITLE_SIZE, color=answer_color, weight="bold")
        return answer_y

    def draw_caption(self, x: float, y: float, lines: list[str]) -> None:
        for number, line in enumerate(lines):
            self.draw_text(x, y + 0.2 * number, line, SMALL_SIZE, color=GRAY)

    def draw_cell(self, x: float, y: float, width: float, height: float, weight: float, colors: CellColors) -> None:
        """Draw a weight in a colored box; empty if it rounds to 0."""
        background, foreground = map(to_hex, colors)
        is_visible = weight >= MIN_VISIBLE
        self.draw_box(x, y, width, height, facecolor=background if is_visible else EMPTY)
        if is_visible:
            middle = (x + width / 2, y + height / 2)
            self.draw_text(*middle, f"{weight:.2f}", SMALL_SIZE, color=foreground, ha="center")

    def draw_box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """Draw a box with round corners and a margin; narrow boxes have less of both."""
        from matplotlib.patches import FancyBboxPatch

        scale = min(1.0, width / 0.3)
        radius, space = CORNER_RADIUS * scale, CELL_MARGIN * scale
        box = FancyBboxPatch(
            (x + space + radius, y + space + radius),
            width - 2 * (space + radius),
            height - 2 * (space + radius),
            boxstyle=f"round,pad={radius},rounding_size={radius * 1.5}",
            **({"linewidth": 0} | style),
        )
        self.page.add_patch(box)

    def save(self, path: Path) -> None:
        self.figure.savefig(path)
