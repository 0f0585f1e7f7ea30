"""Plot the evidence of an answer: one row per sentence, one column per hop.

For a memory that rewrites its slots, a second panel shows when the gate of each slot opened.
"""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from mnemic.cli.render.canvas import EMPTY, GRAY, INK, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE, Canvas
from mnemic.cli.render.captions import build_story_rows, format_column_titles, labels_of
from mnemic.cli.render.colormap import MIN_VISIBLE, CellColors, pick_gate_colors, pick_weight_colors, to_hex
from mnemic.cli.render.evidence_table import EvidenceRow

if TYPE_CHECKING:
    from mnemic.predict import SlotActivity, StoryAnswer

SENTENCE_CHARS, TITLE_CHARS = 60, 44  # characters per line of a sentence, of the question
MARGIN, NUMBER_WIDTH, GAP = 0.35, 0.36, 0.22  # inches: around, before and after the sentences
ROW_HEIGHT, LINE_HEIGHT, HOP_WIDTH = 0.32, 0.19, 0.72  # inches: a row, each further line, a hop
SLOT_WIDTH, SLOTS_GAP, GATES_GAP = 0.26, 0.3, 0.12  # inches: a slot, before the slots, before gates of hops
BLUE = to_hex(pick_weight_colors(0.8).background)  # of the answer and of the most-read slot
SLOT_LABELS = ("slot", "read of it", "its gate")  # beside the slots
SLOTS_CAPTION = "To the right: how far each slot opened for each sentence."
MAX_LINES = 6  # per sentence
MAX_SENTENCES = 150  # per plot: those read most
FORMATS = (".png", ".svg", ".pdf")
MISSING_FONT_NOTE = "some characters are in no font here; install one that has them, such as Noto Sans CJK"
CHINESE_FONTS = (
    "Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "Microsoft YaHei",
    "PingFang SC", "Hiragino Sans GB", "SimHei",
)  # fmt: skip


def check_plot_path(path: Path | None) -> None:
    """Raise an error at once if the plot cannot be written to this path."""
    if path is None:
        return
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
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    fonts = ["DejaVu Sans", *(name for name in CHINESE_FONTS if name in installed)]
    style: Any = {"font.family": fonts, "svg.fonttype": "none"}
    with warnings.catch_warnings(record=True) as captured, matplotlib.rc_context(style):
        warnings.simplefilter("always")
        make_plot().save(path)
    messages = [str(warning.message) for warning in captured]
    other_messages = [text for text in messages if not text.startswith("Glyph")]
    return other_messages if other_messages == messages else [*other_messages, MISSING_FONT_NOTE]


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
        rows = [row for row in build_story_rows(answer, MAX_SENTENCES) if row.weights]
        self.rows = [(row, wrap_text(row.text, SENTENCE_CHARS)) for row in rows]
        self.title = wrap_text(question, TITLE_CHARS)
        self.answer = f"{answer.text}  {answer.probability:.2f}"
        self.alternatives = ",  ".join(f"{word} {probability:.2f}" for word, probability in answer.ranked[1:])
        self.caption = build_caption(answer)

    def save(self, path: Path) -> None:
        """Lay out the page, draw everything and save it."""
        measure = self.canvas.measure_width
        grid_x = MARGIN + NUMBER_WIDTH + GAP + measure([line for _, lines in self.rows for line in lines], TEXT_SIZE)
        slots_x = grid_x + len(self.hops) * HOP_WIDTH + SLOTS_GAP
        slots_width = len(self.slots.names) * SLOT_WIDTH + 0.1 + measure(SLOT_LABELS, SMALL_SIZE) if self.slots else 0
        alternatives_x = MARGIN + measure([self.answer], TITLE_SIZE, weight="bold") + GAP
        width = MARGIN + max(
            slots_x + slots_width if self.slots else slots_x - SLOTS_GAP,
            MARGIN + measure(self.title, TITLE_SIZE, weight="bold"),
            alternatives_x + measure([self.alternatives], TEXT_SIZE),
            MARGIN + measure(self.caption, SMALL_SIZE),
        )
        grid_top = MARGIN + 0.3 * len(self.title) + 0.75 + self.measure_header()
        caption_top = grid_top + sum(gap_before(row) + row_height(lines) for row, lines in self.rows) + 0.2
        self.canvas.set_size(width, caption_top + 0.2 * len(self.caption) + MARGIN - 0.2)
        answer_y = self.canvas.draw_title(MARGIN, self.title, self.answer, BLUE)
        self.canvas.draw_text(alternatives_x, answer_y, self.alternatives, TEXT_SIZE, color=GRAY)
        self.draw_grid(grid_x, grid_top)
        if self.slots:
            self.draw_slots(self.slots, slots_x, grid_top)
        self.canvas.draw_caption(MARGIN, caption_top, self.caption)
        self.canvas.save(path)

    def measure_header(self) -> float:
        """Measure the height of the slots' names and read weights above the grid, in inches."""
        if self.slots is None:
            return 0.0
        longest = self.canvas.measure_width(self.slots.names, SMALL_SIZE)
        return ROW_HEIGHT + 0.06 + (longest if has_word_names(self.slots) else 0.0)

    def draw_grid(self, grid_x: float, top: float) -> None:
        """Draw the sentences with their weight per hop, and the gates between hops."""
        for hop, title in enumerate(self.hops):
            middle = grid_x + (hop + 0.5) * HOP_WIDTH
            self.canvas.draw_text(middle, top - 0.16, title, SMALL_SIZE, color=GRAY, ha="center")
        text_x = MARGIN + NUMBER_WIDTH
        for row, lines in self.rows:
            top, height = top + gap_before(row), row_height(lines)
            self.canvas.draw_text(text_x - 0.12, top + height / 2, row.label, SMALL_SIZE, color=GRAY, ha="right")
            for number, line in enumerate(lines):
                y = top + height / 2 + LINE_HEIGHT * (number - (len(lines) - 1) / 2)
                self.canvas.draw_text(text_x, y, line, TEXT_SIZE, color=INK if row.label else GRAY)
            for hop, weight in enumerate(row.weights):
                x = grid_x + hop * HOP_WIDTH
                self.canvas.draw_cell(x, top, HOP_WIDTH, height, weight, row.pick_colors(weight))
            top += height

    def draw_slots(self, slots: "SlotActivity", slots_x: float, top: float) -> None:
        """Draw each slot's gate per sentence, and above it how much of it was read."""
        gate_rows = [(row.gates, row_height(lines)) for row, lines in self.rows if row.gates]
        total_height = sum(height for _, height in gate_rows)
        read_top = top - ROW_HEIGHT - 0.06
        x = slots_x + slots.most_read * SLOT_WIDTH
        frame = {"facecolor": "none", "edgecolor": BLUE, "linewidth": 1.4}
        self.canvas.draw_box(x - 0.02, read_top - 0.02, SLOT_WIDTH + 0.04, total_height + ROW_HEIGHT + 0.1, **frame)
        for slot, (name, read_weight) in enumerate(zip(slots.names, slots.read)):
            x, is_most_read = slots_x + slot * SLOT_WIDTH, slot == slots.most_read
            style: dict[str, Any] = {"color": INK, "weight": "bold"} if is_most_read else {"color": GRAY}
            style |= {"rotation": 90, "va": "bottom"} if has_word_names(slots) else {}
            self.canvas.draw_text(x + SLOT_WIDTH / 2, read_top - 0.14, name, SMALL_SIZE - 1, ha="center", **style)
            color = pick_background(read_weight, pick_weight_colors(read_weight))
            self.canvas.draw_box(x, read_top, SLOT_WIDTH, ROW_HEIGHT, facecolor=color)
            y = top
            for gates, height in gate_rows:
                color = pick_background(gates[slot], pick_gate_colors(gates[slot]))
                self.canvas.draw_box(x, y, SLOT_WIDTH, height, facecolor=color)
                y += height
        labels_x = slots_x + len(slots.names) * SLOT_WIDTH + 0.1
        label_heights = (read_top - 0.14, read_top + ROW_HEIGHT / 2, top + gate_rows[0][1] / 2)
        for label, y in zip(SLOT_LABELS, label_heights):
            self.canvas.draw_text(labels_x, y, label, SMALL_SIZE, color=GRAY)


def row_height(lines: list[str]) -> float:
    """Compute the height of a row of the grid, in inches."""
    return ROW_HEIGHT + LINE_HEIGHT * (len(lines) - 1)


def gap_before(row: EvidenceRow) -> float:
    """Compute the gap above a row: the gates of hops stand apart."""
    return GATES_GAP if row.pick_colors is pick_gate_colors else 0.0


def pick_background(weight: float, colors: CellColors) -> str:
    """Pick the background of a cell without a number; empty if it rounds to 0."""
    return to_hex(colors.background) if weight >= MIN_VISIBLE else EMPTY


def has_word_names(slots: "SlotActivity") -> bool:
    """Check whether the names of the slots are words rather than numbers."""
    return not all(name.isdecimal() for name in slots.names)
