"""What was read, as a picture: sentences down, hops across, darker where more was read.

Everything is laid out in inches from the top left, so that the picture is as large as its text.
"""

import warnings
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.app.evidence import unread
from mnemic.app.shade import FAINT, hexadecimal, shade

if TYPE_CHECKING:
    from mnemic.ask import Answer

LINE, HEAD = 60, 44  # characters before a sentence, or the question, goes on below
MARGIN, NUMBER, GAP = 0.35, 0.36, 0.22  # inches: around, before and behind the sentences
ROW, LEADING, COLUMN = 0.32, 0.19, 0.72  # a row, each further line in it, a hop
TITLE, TEXT, SMALL = 15.0, 10.5, 9.0  # points
INK, GREY, EMPTY = "#14181e", "#6b7480", "#f4f6f8"
DPI = 160
MOST = 6  # lines of a sentence that are drawn
FORMATS = (".png", ".svg", ".pdf")
NO_FONT = "some characters are in no font here; install one that has them, such as Noto Sans CJK"
ASIAN = ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "Microsoft YaHei",
         "PingFang SC", "Hiragino Sans GB", "SimHei")  # fmt: skip


class Row(NamedTuple):
    """A sentence as it is drawn."""

    number: str
    lines: list[str]
    weights: tuple[float, ...]

    @property
    def height(self) -> float:
        return ROW + LEADING * (len(self.lines) - 1)


def check(path: Path) -> None:
    """Say at once, before any work is done, why there can be no picture."""
    if find_spec("matplotlib") is None:
        raise ValueError("--plot needs matplotlib; install it with: pip install matplotlib")
    if path.suffix.lower() not in FORMATS or path.is_dir():
        raise ValueError(
            f"--plot takes a file that ends in {', '.join(FORMATS)}, not {str(path)!r}"
        )
    if not path.absolute().parent.is_dir():
        raise ValueError(f"--plot: there is no folder {str(path.parent)!r}")


def lines(text: str, width: int) -> list[str]:
    """A text as lines of a picture; one that goes on for ever is cut, and shows it."""
    most = MOST * width
    return wrap(text[: most + 1], width, max_lines=MOST, placeholder=" …") or [""]


def draw(answer: "Answer", question: str, path: Path) -> list[str]:
    """Draw every sentence in memory; the ending of ``path`` is the picture's format.

    Returns what should be said: characters, for example, that no font here has.
    """
    import matplotlib

    style: Any = {"font.family": fonts(), "svg.fonttype": "none"}
    with warnings.catch_warnings(record=True) as heard, matplotlib.rc_context(style):
        warnings.simplefilter("always")
        Sheet(answer, question).save(path)
    said = [str(warning.message) for warning in heard]
    other = [text for text in said if not text.startswith("Glyph")]
    return other if other == said else [*other, NO_FONT]


def fonts() -> list[str]:
    """The usual font, and behind it those that have Chinese, as far as they are here."""
    from matplotlib.font_manager import fontManager

    here = set(fontManager.get_font_names())
    return ["DejaVu Sans", *(name for name in ASIAN if name in here)]


class Sheet:
    """One picture in the making."""

    def __init__(self, answer: "Answer", question: str) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure: Any = Figure(dpi=DPI)
        self.renderer: Any = FigureCanvasAgg(self.figure).get_renderer()
        self.rows = [
            Row(str(one.sentence + 1), lines(one.text, LINE), one.weights)
            for one in answer.evidence
        ]
        if max(unread(answer)) > FAINT:
            self.rows.append(Row("", ["(nothing: free slots)"], tuple(unread(answer))))
        self.title = lines(question, HEAD)
        self.answer = f"{answer.text}  {answer.probability:.2f}"
        self.others = ",  ".join(f"{word} {chance:.2f}" for word, chance in answer.ranked[1:])
        self.caption = ["How much of each sentence was read at each hop; a column adds up to 1."]
        if answer.kept < answer.told:
            gone = answer.told - answer.kept
            self.caption.append(f"The memory was full: the first {gone} sentences were left out.")

    def save(self, path: Path) -> None:
        hops = len(self.rows[0].weights)
        lines = [line for row in self.rows for line in row.lines]
        left = MARGIN + NUMBER
        grid = left + max(self.measure(line, TEXT) for line in lines) + GAP
        head = [self.measure(line, TITLE, weight="bold") for line in self.title]
        behind = MARGIN + self.measure(self.answer, TITLE, weight="bold") + GAP
        width = MARGIN + max(
            grid + hops * COLUMN,
            MARGIN + max(head),
            behind + self.measure(self.others, TEXT),
            MARGIN + max(self.measure(line, SMALL) for line in self.caption),
        )
        top = MARGIN + 0.3 * len(self.title) + 0.3 + 0.45
        foot = top + sum(row.height for row in self.rows) + 0.2
        height = foot + 0.2 * len(self.caption) + MARGIN - 0.2
        self.canvas(width, height)
        for number, line in enumerate(self.title):
            self.write(MARGIN, MARGIN + 0.3 * number, line, TITLE, va="top", weight="bold")
        under = MARGIN + 0.3 * len(self.title) + 0.17
        blue = hexadecimal(shade(0.8).ground)
        self.write(MARGIN, under, self.answer, TITLE, color=blue, weight="bold")
        self.write(behind, under, self.others, TEXT, color=GREY)
        for hop in range(hops):
            middle = grid + (hop + 0.5) * COLUMN
            self.write(middle, top - 0.16, f"hop {hop + 1}", SMALL, color=GREY, ha="center")
        for row in self.rows:
            self.row(row, left, grid, top)
            top += row.height
        for number, line in enumerate(self.caption):
            self.write(MARGIN, foot + 0.2 * number, line, SMALL, color=GREY)
        self.figure.savefig(path)

    def canvas(self, width: float, height: float) -> None:
        """A page whose coordinates are inches from its top left corner."""
        self.figure.set_size_inches(width, height)
        self.page: Any = self.figure.add_axes((0, 0, 1, 1))
        self.page.set(xlim=(0, width), ylim=(height, 0))
        self.page.set_axis_off()

    def row(self, row: Row, left: float, grid: float, top: float) -> None:
        """A sentence and its cells."""
        from matplotlib.patches import FancyBboxPatch

        middle = top + row.height / 2
        colour = INK if row.number else GREY
        self.write(left - 0.12, middle, row.number, SMALL, color=GREY, ha="right")
        for place, line in enumerate(row.lines):
            shift = LEADING * (place - (len(row.lines) - 1) / 2)
            self.write(left, middle + shift, line, TEXT, color=colour)
        for hop, weight in enumerate(row.weights):
            ground, ink = map(hexadecimal, shade(weight))
            seen = weight >= FAINT
            x, round_, space = grid + hop * COLUMN, 0.04, 0.025
            box = FancyBboxPatch(
                (x + space + round_, top + space + round_),
                COLUMN - 2 * (space + round_),
                row.height - 2 * (space + round_),
                boxstyle=f"round,pad={round_},rounding_size={round_ * 1.5}",
                linewidth=0,
                facecolor=ground if seen else EMPTY,
            )
            self.page.add_patch(box)
            if seen:
                self.write(x + COLUMN / 2, middle, f"{weight:.2f}", SMALL, color=ink, ha="center")

    def write(self, x: float, y: float, text: str, size: float, **style: Any) -> None:
        style = {"va": "center_baseline", "color": INK} | style
        self.page.text(x, y, text, fontsize=size, parse_math=False, **style)

    def measure(self, text: str, size: float, **style: Any) -> float:
        """How many inches wide a text is."""
        drawn = self.figure.text(0, 0, text, fontsize=size, parse_math=False, **style)
        width = drawn.get_window_extent(self.renderer).width / DPI
        drawn.remove()
        return float(width)
