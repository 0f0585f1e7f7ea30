"""Plot a memory: the salience along the text, and the slots over time.

The upper panel shows the controller's storage weight along the text, with markers where the answer
was read. The lower panel has one row per slot and one column per segment; the color of a cell is
the position in the text that the slot held most of. Beside it, how much of each slot the answer
read.

Shapes: t snapshots of the slots, s slots.
"""

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mnemic.cli.render.canvas import EMPTY, GRAY, INK, SMALL_SIZE, TITLE_SIZE, Canvas
from mnemic.cli.render.colormap import GATE_DARK, GATE_LIGHT, READ_DARK, pick_weight_colors, to_hex
from mnemic.cli.render.plot_story import TITLE_CHARS, save_plot, wrap_text

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State
    from mnemic.predict.results import MemoryAnswer

MARGIN, PANELS_LEFT, PANELS_WIDTH = 0.4, 0.75, 7.6  # inches
SALIENCE_HEIGHT, SLOTS_HEIGHT, PANEL_GAP, READ_WIDTH = 1.3, 3.4, 0.62, 0.32  # inches
MAX_COLUMNS = 600  # of the upper panel; longer texts are averaged in so many spans
MIN_SCALE_TOP = 0.1  # of the upper panel: its scale ends at the largest weight, or here
MAX_MARKERS = 5  # for the evidence read most
EARLY, LATE = "#fbd786", to_hex(READ_DARK)  # colors of positions: start and end of the text


def plot_state(state: "State", answer: "MemoryAnswer", question: str, path: Path) -> list[str]:
    """Plot a memory and the slots that the answer read; return warnings."""
    if not len(state.worth):
        raise ValueError("nothing was read into this memory, so there is nothing to draw")
    return save_plot(lambda: StatePlot(state, answer, question), path)


class StatePlot:
    """A plot of the question, the answer, the storage weights and the slots."""

    def __init__(self, state: "State", answer: "MemoryAnswer", question: str) -> None:
        self.canvas, self.state, self.answer = Canvas(), state, answer
        self.title = wrap_text(question, TITLE_CHARS)

    def save(self, path: Path) -> None:
        """Lay out the page, draw everything and save it."""
        salience_top = MARGIN + 0.3 * len(self.title) + 0.6
        slots_top = salience_top + SALIENCE_HEIGHT + PANEL_GAP
        caption = self.build_caption()
        caption_top = slots_top + SLOTS_HEIGHT + 0.6
        panels_width = PANELS_LEFT + PANELS_WIDTH + 0.1 + READ_WIDTH + MARGIN
        self.height = caption_top + 0.2 * len(caption) + MARGIN - 0.2
        self.width = max(
            panels_width,
            MARGIN * 2 + self.canvas.measure_width(self.title, TITLE_SIZE, weight="bold"),
            MARGIN * 2 + self.canvas.measure_width(caption, SMALL_SIZE),
        )
        self.canvas.set_size(self.width, self.height)
        answer = f"{self.answer.text or 'read at the marks'}  {self.answer.probability:.2f}"
        self.canvas.draw_title(MARGIN, self.title, answer, LATE)
        self.draw_salience(self.add_panel(PANELS_LEFT, salience_top, PANELS_WIDTH, SALIENCE_HEIGHT))
        self.draw_slots(self.add_panel(PANELS_LEFT, slots_top, PANELS_WIDTH, SLOTS_HEIGHT))
        self.draw_slot_reads(self.add_panel(PANELS_LEFT + PANELS_WIDTH + 0.1, slots_top, READ_WIDTH, SLOTS_HEIGHT))
        self.canvas.draw_caption(MARGIN, caption_top, caption)
        self.canvas.save(path)

    def build_caption(self) -> list[str]:
        """Build the lines of the caption."""
        lines = [
            "Above: how much each token or sentence was thought worth storing; blue where the answer was read.",
            "Below: the place in the text that each slot held most of; right, how much of it the answer read.",
            f"{self.state.seen:,} of {self.state.total:,} tokens were read in "
            f"{self.state.segments:,} segment{'s' * (self.state.segments != 1)}; "
            f"{self.state.filled} of {self.state.slots} slots are filled.",
        ]
        if low := self.find_scale_start():
            lines.append(f"The scale above begins at {low:.2f}: nothing was thought worth less.")
        if self.state.stride > 1:
            lines.append(f"The slots are shown after every {self.state.stride} segments.")
        return lines

    def add_panel(self, x: float, y: float, width: float, height: float) -> Any:
        """Add axes at a position in inches from the top left, in the page's style."""
        bottom = 1 - (y + height) / self.height
        axes = self.canvas.figure.add_axes((x / self.width, bottom, width / self.width, height / self.height))
        axes.tick_params(labelsize=SMALL_SIZE - 1, colors=GRAY, length=2, color=GRAY)
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_facecolor(EMPTY)
        return axes

    def label_axes(self, axes: Any, x_label: str, y_label: str) -> None:
        axes.set_xlabel(x_label, fontsize=SMALL_SIZE, color=GRAY, labelpad=2)
        axes.set_ylabel(y_label, fontsize=SMALL_SIZE, color=GRAY)
        axes.xaxis.set_major_formatter("{x:,.0f}")

    def draw_salience(self, axes: Any) -> None:
        """Draw the storage weights along the text: mean and maximum of each span."""
        state = self.state
        chunks = np.array_split(state.worth.numpy(), min(MAX_COLUMNS, len(state.worth)))
        first = np.cumsum([0, *map(len, chunks[:-1])])
        edges = [*state.spans[first, 0].tolist(), state.characters]
        mean, maximum = ([float(reduce(chunk)) for chunk in chunks] for reduce in (np.mean, np.max))
        low = self.find_scale_start()
        axes.stairs(maximum, edges, baseline=low, fill=True, color=to_hex(GATE_LIGHT))
        axes.stairs(mean, edges, baseline=low, fill=True, color=to_hex(GATE_DARK))
        middles = [(start + end) / 2 for start, end in pairwise(edges)]
        axes.vlines(middles, low, mean, color=to_hex(GATE_DARK), linewidth=1)  # keeps short spans visible
        top = max(*maximum, MIN_SCALE_TOP)
        for source in reversed(self.answer.evidence[:MAX_MARKERS]):
            color = to_hex(pick_weight_colors(source.weight).background)
            size = 4 + 5 * source.weight
            middle = (source.start + source.end) / 2
            marker_y = top + 0.07 * (top - low)
            axes.plot([middle], [marker_y], "v", color=color, markersize=size, clip_on=False)
        axes.set(xlim=(0, state.characters), ylim=(low, top))
        axes.locator_params(axis="y", nbins=3)
        self.label_axes(axes, "character", "worth storing")

    def find_scale_start(self) -> float:
        """Find the start of the storage weights' scale: 0, unless all of them are high."""
        minimum, maximum = float(self.state.worth.min()), float(self.state.worth.max())
        return minimum if maximum > minimum > maximum / 2 else 0.0

    def draw_slots(self, axes: Any) -> None:
        """Draw the position in the text that each slot held, snapshot by snapshot."""
        from matplotlib.colors import LinearSegmentedColormap

        positions = self.trim_history()
        colormap = LinearSegmentedColormap.from_list("places", [EARLY, "#4aa5a0", LATE])
        last = max(len(self.state.spans) - 1, 1)
        axes.imshow(
            np.ma.masked_less(positions.T / last, 0), cmap=colormap, vmin=0, vmax=1, aspect="auto",
            interpolation="nearest", extent=(0, self.state.segments, positions.shape[1], 0),
        )  # fmt: skip
        axes.locator_params(integer=True)
        self.label_axes(axes, "segment", "slot")

    def draw_slot_reads(self, axes: Any) -> None:
        """Draw how much of each slot was read, as a column of colors."""
        from matplotlib.colors import to_rgb

        positions = self.trim_history()
        column = np.tile(to_rgb(EMPTY), (positions.shape[1], 1, 1))
        for slot in self.answer.slots:
            if slot.number < len(column):
                column[slot.number, 0] = to_rgb(to_hex(pick_weight_colors(slot.weight).background))
        axes.imshow(column, aspect="auto", interpolation="nearest", extent=(0, 1, positions.shape[1], 0))
        axes.set(xticks=[], yticks=[])
        axes.set_title("read", fontsize=SMALL_SIZE, color=INK, pad=4)

    def trim_history(self) -> Any:
        """Return the snapshots of the slots, t s, without trailing slots that were never used."""
        history = self.state.history.numpy()
        used = np.flatnonzero((history >= 0).any(0))
        return history[:, : int(used[-1]) + 1 if len(used) else 1]
