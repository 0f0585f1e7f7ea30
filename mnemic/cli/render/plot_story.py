"""Plot the evidence of an answer: one row per sentence, one column per hop.

For a memory that rewrites its slots, a second panel shows when the gate of each slot opened.
"""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.cli.render.canvas import EMPTY, GRAY, INK, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE, Canvas
from mnemic.cli.render.captions import (
    SLOTS_CAPTION,
    UPDATE_GATE_LABEL,
    compute_unread_weights,
    format_column_titles,
    labels_of,
)
from mnemic.cli.render.colormap import MIN_VISIBLE, CellColors, pick_gate_colors, pick_weight_colors, to_hex

if TYPE_CHECKING:
    from mnemic.predict import SlotActivity, StoryAnswer

SENTENCE_CHARS, TITLE_CHARS = 60, 44  # characters per line of a sentence, of the question
MARGIN, NUMBER_WIDTH, GAP = 0.35, 0.36, 0.22  # inches: around, before and after the sentences
ROW_HEIGHT, LINE_HEIGHT, HOP_WIDTH = 0.32, 0.19, 0.72  # inches: a row, each further line, a hop
SLOT_WIDTH, SLOTS_GAP = 0.26, 0.3  # inches: a slot, before the slots
SLOT_LABELS = ("slot", "read of it", "its gate")  # beside the slots
MAX_LINES = 6  # per sentence
MAX_SENTENCES = 150  # per plot: those read most
FORMATS = (".png", ".svg", ".pdf")
MISSING_FONT_NOTE = "some characters are in no font here; install one that has them, such as Noto Sans CJK"
CHINESE_FONTS = (
    "Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "Microsoft YaHei",
    "PingFang SC", "Hiragino Sans GB", "SimHei",
)  # fmt: skip


class PlotRow(NamedTuple):
    """A row of the plot: a sentence, or a total without a number."""

    number: str
    lines: list[str]
    weights: tuple[float, ...]  # one per hop
    gates: tuple[float, ...] = ()  # one per slot; empty without slots

    @property
    def height(self) -> float:
        return ROW_HEIGHT + LINE_HEIGHT * (len(self.lines) - 1)


def check_plot_path(path: Path) -> None:
    """Raise before any work is done if the plot cannot be written."""
    if find_spec("matplotlib") is None:
        raise ValueError("--plot needs matplotlib; install it with: pip install matplotlib")
    if path.suffix.lower() not in FORMATS or path.is_dir():
        raise ValueError(f"--plot takes a file that ends in {', '.join(FORMATS)}, not {str(path)!r}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"--plot: there is no folder {str(path.parent)!r}")


def wrap_text(text: str, width: int) -> list[str]:
    """Wrap a text into lines; a very long one is truncated with …"""
    max_chars = MAX_LINES * width
    return wrap(text[: max_chars + 1], width, max_lines=MAX_LINES, placeholder=" …") or [""]


def plot_story(answer: "StoryAnswer", question: str, path: Path) -> list[str]:
    """Plot the sentences in memory; the suffix of ``path`` sets the format.

    Returns warnings, for example about characters that no installed font has.
    """
    if not answer.evidence:
        raise ValueError("nothing of the story is in memory, so there is nothing to draw")
    return save_plot(lambda: StoryPlot(answer, question), path)


def save_plot(make_plot: Callable[[], Any], path: Path) -> list[str]:
    """Make a plot with the available fonts and save it; return warnings."""
    import matplotlib

    style: Any = {"font.family": find_fonts(), "svg.fonttype": "none"}
    with warnings.catch_warnings(record=True) as captured, matplotlib.rc_context(style):
        warnings.simplefilter("always")
        make_plot().save(path)
    messages = [str(warning.message) for warning in captured]
    other_messages = [text for text in messages if not text.startswith("Glyph")]
    return other_messages if other_messages == messages else [*other_messages, MISSING_FONT_NOTE]


def find_fonts() -> list[str]:
    """List the default font and the installed fonts with Chinese characters."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return ["DejaVu Sans", *(name for name in CHINESE_FONTS if name in installed)]


def build_rows(answer: "StoryAnswer") -> list[PlotRow]:
    """Build one row per sentence, and one for the weight on no sentence."""
    gates_by_sentence = answer.slots.gates if answer.slots else [()] * len(answer.evidence)
    sentences = list(zip(answer.evidence, gates_by_sentence))
    most_read = sorted(sentences, key=lambda pair: -pair[0].max_weight)[:MAX_SENTENCES]
    visible = {evidence.sentence for evidence, _ in most_read}
    rows = [
        PlotRow(str(evidence.sentence + 1), wrap_text(evidence.text, SENTENCE_CHARS), evidence.weights, tuple(gates))
        for evidence, gates in sentences
        if evidence.sentence in visible
    ]
    if max(compute_unread_weights(answer)) > MIN_VISIBLE:
        rows.append(PlotRow("", [labels_of(answer).unread_label], tuple(compute_unread_weights(answer))))
    return rows


def build_caption(answer: "StoryAnswer") -> list[str]:
    """Build the lines of the caption."""
    caption = [labels_of(answer).caption]
    if answer.slots:
        name, weight = answer.slots.names[answer.slots.most_read], max(answer.slots.read)
        caption.append(f"{SLOTS_CAPTION} Most was read of slot {name} ({weight:.2f}).")
    if len(answer.evidence) > MAX_SENTENCES:
        caption.append(f"Of {len(answer.evidence)} sentences the {MAX_SENTENCES} most read are drawn.")
    if answer.missing_sentences:
        caption.append(f"The memory was full: {answer.missing_sentences}.")
    return caption


class StoryPlot:
    """A plot of the question, the answer, the weights per hop, and the slots."""

    def __init__(self, answer: "StoryAnswer", question: str) -> None:
        """Collect the rows and texts of the plot."""
        self.canvas = Canvas()
        self.slots, self.hops = answer.slots, format_column_titles(answer)
        self.rows = build_rows(answer)
        self.update_gate_row = PlotRow("", [UPDATE_GATE_LABEL], answer.taken)
        self.title = wrap_text(question, TITLE_CHARS)
        self.answer = f"{answer.text}  {answer.probability:.2f}"
        self.alternatives = ",  ".join(f"{word} {probability:.2f}" for word, probability in answer.ranked[1:])
        self.caption = build_caption(answer)

    def save(self, path: Path) -> None:
        """Lay out the page, draw everything and save it."""
        measure, rows = (
            self.canvas.measure_width,
            [*self.rows, *([self.update_gate_row] if self.has_update_gates else [])],
        )
        grid_x = MARGIN + NUMBER_WIDTH + GAP
        grid_x += max(measure(line, TEXT_SIZE) for row in rows for line in row.lines)
        slots_x = grid_x + len(self.hops) * HOP_WIDTH + SLOTS_GAP
        alternatives_x = MARGIN + measure(self.answer, TITLE_SIZE, weight="bold") + GAP
        width = MARGIN + max(
            slots_x + self.slots_width if self.slots else slots_x - SLOTS_GAP,
            MARGIN + max(measure(line, TITLE_SIZE, weight="bold") for line in self.title),
            alternatives_x + measure(self.alternatives, TEXT_SIZE),
            MARGIN + max(measure(line, SMALL_SIZE) for line in self.caption),
        )
        grid_top = MARGIN + 0.3 * len(self.title) + 0.75 + self.header_height
        caption_top = grid_top + sum(row.height for row in self.rows) + 0.2
        caption_top += (ROW_HEIGHT + 0.12) * self.has_update_gates
        self.canvas.set_size(width, caption_top + 0.2 * len(self.caption) + MARGIN - 0.2)
        self.draw_header(alternatives_x)
        self.draw_grid(grid_x, grid_top)
        if self.slots:
            self.draw_slots(self.slots, slots_x, grid_top)
        for number, line in enumerate(self.caption):
            self.canvas.draw_text(MARGIN, caption_top + 0.2 * number, line, SMALL_SIZE, color=GRAY)
        self.canvas.save(path)

    @property
    def has_update_gates(self) -> bool:
        return bool(self.update_gate_row.weights)

    @property
    def slots_width(self) -> float:
        """The width of the slots and the labels to their right, in inches."""
        num_slots = len(self.slots.names) if self.slots else 0
        return num_slots * SLOT_WIDTH + 0.1 + max(self.canvas.measure_width(text, SMALL_SIZE) for text in SLOT_LABELS)

    @property
    def header_height(self) -> float:
        """The height of the slots' names and read weights above the grid, in inches."""
        if self.slots is None:
            return 0.0
        longest = max(self.canvas.measure_width(name, SMALL_SIZE) for name in self.slots.names)
        return ROW_HEIGHT + 0.06 + (longest if has_word_names(self.slots) else 0.0)

    def draw_header(self, alternatives_x: float) -> None:
        """Draw the question, and the answer with its alternatives below it."""
        for number, line in enumerate(self.title):
            self.canvas.draw_text(MARGIN, MARGIN + 0.3 * number, line, TITLE_SIZE, va="top", weight="bold")
        answer_y = MARGIN + 0.3 * len(self.title) + 0.17
        blue = to_hex(pick_weight_colors(0.8).background)
        self.canvas.draw_text(MARGIN, answer_y, self.answer, TITLE_SIZE, color=blue, weight="bold")
        self.canvas.draw_text(alternatives_x, answer_y, self.alternatives, TEXT_SIZE, color=GRAY)

    def draw_grid(self, grid_x: float, top: float) -> None:
        """Draw the sentences with their weight per hop, and the gates between hops."""
        for hop, title in enumerate(self.hops):
            middle = grid_x + (hop + 0.5) * HOP_WIDTH
            self.canvas.draw_text(middle, top - 0.16, title, SMALL_SIZE, color=GRAY, ha="center")
        for row in self.rows:
            self.draw_row(row, grid_x, top)
            top += row.height
        if self.has_update_gates:
            self.draw_row(self.update_gate_row, grid_x, top + 0.12, gate=True)

    def draw_row(self, row: PlotRow, grid_x: float, top: float, *, gate: bool = False) -> None:
        """Draw a sentence and its cells."""
        text_x, middle = MARGIN + NUMBER_WIDTH, top + row.height / 2
        self.canvas.draw_text(text_x - 0.12, middle, row.number, SMALL_SIZE, color=GRAY, ha="right")
        for number, line in enumerate(row.lines):
            shift = LINE_HEIGHT * (number - (len(row.lines) - 1) / 2)
            self.canvas.draw_text(text_x, middle + shift, line, TEXT_SIZE, color=INK if row.number else GRAY)
        for hop, weight in enumerate(row.weights):
            color: CellColors = pick_gate_colors(weight) if gate else pick_weight_colors(weight)
            x = grid_x + hop * HOP_WIDTH
            self.canvas.draw_cell(x, top, HOP_WIDTH, row.height, weight, color)

    def draw_slots(self, slots: "SlotActivity", slots_x: float, top: float) -> None:
        """Draw each slot's gate per sentence, and above it how much of it was read."""
        sentence_rows = [row for row in self.rows if row.gates]
        height = sum(row.height for row in sentence_rows)
        read_top = top - ROW_HEIGHT - 0.06
        x = slots_x + slots.most_read * SLOT_WIDTH
        frame = {"facecolor": "none", "edgecolor": to_hex(pick_weight_colors(0.8).background), "linewidth": 1.4}
        self.canvas.draw_box(x - 0.02, read_top - 0.02, SLOT_WIDTH + 0.04, height + ROW_HEIGHT + 0.1, **frame)
        for slot, (name, read_weight) in enumerate(zip(slots.names, slots.read)):
            x, is_most_read = slots_x + slot * SLOT_WIDTH, slot == slots.most_read
            style = {"rotation": 90, "va": "bottom"} if has_word_names(slots) else {}
            color = INK if is_most_read else GRAY
            weight = "bold" if is_most_read else "normal"
            self.canvas.draw_text(
                x + SLOT_WIDTH / 2, read_top - 0.14, name, SMALL_SIZE - 1, color=color,
                weight=weight, ha="center", **style,
            )  # fmt: skip
            self.canvas.draw_box(
                x,
                read_top,
                SLOT_WIDTH,
                ROW_HEIGHT,
                facecolor=pick_background(read_weight, pick_weight_colors(read_weight)),
            )
            y = top
            for row in sentence_rows:
                gate = row.gates[slot]
                self.canvas.draw_box(
                    x, y, SLOT_WIDTH, row.height, facecolor=pick_background(gate, pick_gate_colors(gate))
                )
                y += row.height
        labels_x = slots_x + len(slots.names) * SLOT_WIDTH + 0.1
        self.canvas.draw_text(labels_x, read_top - 0.14, SLOT_LABELS[0], SMALL_SIZE, color=GRAY)
        self.canvas.draw_text(labels_x, read_top + ROW_HEIGHT / 2, SLOT_LABELS[1], SMALL_SIZE, color=GRAY)
        self.canvas.draw_text(labels_x, top + sentence_rows[0].height / 2, SLOT_LABELS[2], SMALL_SIZE, color=GRAY)


def pick_background(weight: float, colors: CellColors) -> str:
    """Pick the background of a cell without a number; empty if it rounds to 0."""
    return to_hex(colors.background) if weight >= MIN_VISIBLE else EMPTY


def has_word_names(slots: "SlotActivity") -> bool:
    """Check whether the names of the slots are words rather than numbers."""
    return not all(name.isdecimal() for name in slots.names)
