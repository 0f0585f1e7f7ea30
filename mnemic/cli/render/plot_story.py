"""What was read, as a picture: sentences down, hops across, darker where more was read.

Of a memory that rewrites its slots a second panel shows when each slot opened.
"""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.cli.render.canvas import EMPTY, GREY, INK, SMALL, TEXT, TITLE, Sheet
from mnemic.cli.render.captions import SLOTS, TAKEN, columns, manner, unread
from mnemic.cli.render.colormap import FAINT, Shade, hexadecimal, open_shade, shade

if TYPE_CHECKING:
    from mnemic.predict import Answer, Slots

LINE, HEAD = 60, 44  # characters before a sentence, or the question, goes on below
MARGIN, NUMBER, GAP = 0.35, 0.36, 0.22  # inches: around, before and behind the sentences
ROW, LEADING, COLUMN = 0.32, 0.19, 0.72  # a row, each further line in it, a hop
SLOT, BETWEEN = 0.26, 0.3  # a slot, before the slots
LABELS = ("slot", "read of it", "its gate")  # beside the slots
MOST = 6  # lines of a sentence that are drawn
SENTENCES = 150  # of a story that are drawn; of longer ones those that were read most
FORMATS = (".png", ".svg", ".pdf")
NO_FONT = "some characters are in no font here; install one that has them, such as Noto Sans CJK"
ASIAN = ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "Microsoft YaHei",
         "PingFang SC", "Hiragino Sans GB", "SimHei")  # fmt: skip


class Row(NamedTuple):
    """A sentence as it is drawn, or a line about all of them, which has no number."""

    number: str
    lines: list[str]
    weights: tuple[float, ...]  # one a hop
    slots: tuple[float, ...] = ()  # one a slot, where there are slots

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
    """Draw the sentences in memory; the ending of ``path`` is the picture's format.

    Returns what should be said: characters, for example, that no font here has.
    """
    if not answer.evidence:
        raise ValueError("nothing of the story is in memory, so there is nothing to draw")
    return saved(lambda: Picture(answer, question), path)


def saved(make: Callable[[], Any], path: Path) -> list[str]:
    """Make a picture in the page's fonts and save it; what should be said of it."""
    import matplotlib

    style: Any = {"font.family": fonts(), "svg.fonttype": "none"}
    with warnings.catch_warnings(record=True) as heard, matplotlib.rc_context(style):
        warnings.simplefilter("always")
        make().save(path)
    said = [str(warning.message) for warning in heard]
    other = [text for text in said if not text.startswith("Glyph")]
    return other if other == said else [*other, NO_FONT]


def fonts() -> list[str]:
    """The usual font, and behind it those that have Chinese, as far as they are here."""
    from matplotlib.font_manager import fontManager

    here = set(fontManager.get_font_names())
    return ["DejaVu Sans", *(name for name in ASIAN if name in here)]


def rows_of(answer: "Answer") -> list[Row]:
    """A row a sentence, and then what was spent on none of them."""
    opened = answer.slots.gates if answer.slots else [()] * len(answer.evidence)
    told = list(zip(answer.evidence, opened))
    most = sorted(told, key=lambda pair: -pair[0].most)[:SENTENCES]
    drawn = {one.sentence for one, _ in most}
    rows = [
        Row(str(one.sentence + 1), lines(one.text, LINE), one.weights, tuple(gates))
        for one, gates in told
        if one.sentence in drawn
    ]
    if max(unread(answer)) > FAINT:
        rows.append(Row("", [manner(answer).rest], tuple(unread(answer))))
    return rows


def caption_of(answer: "Answer") -> list[str]:
    caption = [manner(answer).caption]
    if answer.slots:
        name, share = answer.slots.names[answer.slots.most], max(answer.slots.read)
        caption.append(f"{SLOTS} Most was read of slot {name} ({share:.2f}).")
    if len(answer.evidence) > SENTENCES:
        caption.append(f"Of {len(answer.evidence)} sentences the {SENTENCES} most read are drawn.")
    if answer.left_out:
        caption.append(f"The memory was full: {answer.left_out}.")
    return caption


class Picture:
    """One picture: the question, the answer, the grid of hops, and the slots if there are any."""

    def __init__(self, answer: "Answer", question: str) -> None:
        self.sheet = Sheet()
        self.slots, self.hops = answer.slots, columns(answer)
        self.rows = rows_of(answer)
        self.taken = Row("", [TAKEN], answer.taken)
        self.title = lines(question, HEAD)
        self.answer = f"{answer.text}  {answer.probability:.2f}"
        self.others = ",  ".join(f"{word} {chance:.2f}" for word, chance in answer.ranked[1:])
        self.caption = caption_of(answer)

    def save(self, path: Path) -> None:
        measure, rows = self.sheet.measure, [*self.rows, *([self.taken] if self.gated else [])]
        grid = MARGIN + NUMBER + GAP
        grid += max(measure(line, TEXT) for row in rows for line in row.lines)
        panel = grid + len(self.hops) * COLUMN + BETWEEN
        behind = MARGIN + measure(self.answer, TITLE, weight="bold") + GAP
        width = MARGIN + max(
            panel + self.breadth if self.slots else panel - BETWEEN,
            MARGIN + max(measure(line, TITLE, weight="bold") for line in self.title),
            behind + measure(self.others, TEXT),
            MARGIN + max(measure(line, SMALL) for line in self.caption),
        )
        top = MARGIN + 0.3 * len(self.title) + 0.75 + self.heads
        foot = top + sum(row.height for row in self.rows) + 0.2
        foot += (ROW + 0.12) * self.gated
        self.sheet.open(width, foot + 0.2 * len(self.caption) + MARGIN - 0.2)
        self.header(behind)
        self.grid(grid, top)
        if self.slots:
            self.panel(self.slots, panel, top)
        for number, line in enumerate(self.caption):
            self.sheet.write(MARGIN, foot + 0.2 * number, line, SMALL, color=GREY)
        self.sheet.save(path)

    @property
    def gated(self) -> bool:
        return bool(self.taken.weights)

    @property
    def breadth(self) -> float:
        """Inches that the slots take, with what stands to their right."""
        slots = len(self.slots.names) if self.slots else 0
        return slots * SLOT + 0.1 + max(self.sheet.measure(text, SMALL) for text in LABELS)

    @property
    def heads(self) -> float:
        """Inches above the grid for what heads the slots: words are turned, and a row is read."""
        if self.slots is None:
            return 0.0
        longest = max(self.sheet.measure(name, SMALL) for name in self.slots.names)
        return ROW + 0.06 + (longest if worded(self.slots) else 0.0)

    def header(self, behind: float) -> None:
        """The question, and below it the answer with the next best ones behind it."""
        for number, line in enumerate(self.title):
            self.sheet.write(MARGIN, MARGIN + 0.3 * number, line, TITLE, va="top", weight="bold")
        under = MARGIN + 0.3 * len(self.title) + 0.17
        blue = hexadecimal(shade(0.8).ground)
        self.sheet.write(MARGIN, under, self.answer, TITLE, color=blue, weight="bold")
        self.sheet.write(behind, under, self.others, TEXT, color=GREY)

    def grid(self, grid: float, top: float) -> None:
        """Sentences down, hops across; below them the gates between hops."""
        for hop, head in enumerate(self.hops):
            middle = grid + (hop + 0.5) * COLUMN
            self.sheet.write(middle, top - 0.16, head, SMALL, color=GREY, ha="center")
        for row in self.rows:
            self.row(row, grid, top)
            top += row.height
        if self.gated:
            self.row(self.taken, grid, top + 0.12, gate=True)

    def row(self, row: Row, grid: float, top: float, *, gate: bool = False) -> None:
        """A sentence and its cells."""
        left, middle = MARGIN + NUMBER, top + row.height / 2
        self.sheet.write(left - 0.12, middle, row.number, SMALL, color=GREY, ha="right")
        for place, line in enumerate(row.lines):
            shift = LEADING * (place - (len(row.lines) - 1) / 2)
            self.sheet.write(left, middle + shift, line, TEXT, color=INK if row.number else GREY)
        for hop, weight in enumerate(row.weights):
            colour: Shade = open_shade(weight) if gate else shade(weight)
            x = grid + hop * COLUMN
            self.sheet.cell(x, top, COLUMN, row.height, weight, colour)

    def panel(self, slots: "Slots", left: float, top: float) -> None:
        """Slots across, beside the sentences; above them what was read of each, most marked."""
        told = [row for row in self.rows if row.slots]
        height = sum(row.height for row in told)
        read = top - ROW - 0.06
        x = left + slots.most * SLOT
        frame = {"facecolor": "none", "edgecolor": hexadecimal(shade(0.8).ground), "linewidth": 1.4}
        self.sheet.box(x - 0.02, read - 0.02, SLOT + 0.04, height + ROW + 0.1, **frame)
        for slot, (name, share) in enumerate(zip(slots.names, slots.read)):
            x, most = left + slot * SLOT, slot == slots.most
            style = {"rotation": 90, "va": "bottom"} if worded(slots) else {}
            colour = INK if most else GREY
            weight = "bold" if most else "normal"
            self.sheet.write(
                x + SLOT / 2, read - 0.14, name, SMALL - 1, color=colour, weight=weight,
                ha="center", **style,
            )  # fmt: skip
            self.sheet.box(x, read, SLOT, ROW, facecolor=ground(share, shade(share)))
            y = top
            for row in told:
                gate = row.slots[slot]
                self.sheet.box(x, y, SLOT, row.height, facecolor=ground(gate, open_shade(gate)))
                y += row.height
        right = left + len(slots.names) * SLOT + 0.1
        self.sheet.write(right, read - 0.14, LABELS[0], SMALL, color=GREY)
        self.sheet.write(right, read + ROW / 2, LABELS[1], SMALL, color=GREY)
        self.sheet.write(right, top + told[0].height / 2, LABELS[2], SMALL, color=GREY)


def ground(weight: float, shade: Shade) -> str:
    """The colour of a cell without a number; one that is as good as 0 is empty."""
    return hexadecimal(shade.ground) if weight >= FAINT else EMPTY


def worded(slots: "Slots") -> bool:
    """Whether the slots' names are words, and not numbers."""
    return not all(name.isdecimal() for name in slots.names)
