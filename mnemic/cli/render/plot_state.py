"""A memory as a picture: what was thought worth storing, and what its slots held over time.

Above, the controller's storage weight along the text, with marks where the answer was read; below,
the slots down and the segments across, each slot in the colour of the place in the text that it
held most of, and beside them how much of each the answer read.

Shapes: u units that were read, t looks at the slots, s slots.
"""

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mnemic.cli.render.canvas import EMPTY, GREY, INK, SMALL, TITLE, Sheet
from mnemic.cli.render.colormap import DARK, DEEP, PALE, hexadecimal, shade
from mnemic.cli.render.plot_story import HEAD, lines, saved

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State
    from mnemic.predict.results import Recollected

MARGIN, LEFT, WIDTH = 0.4, 0.75, 7.6  # inches: around, before the panels, of the panels
WORTH, SLOTS, BETWEEN, READ = 1.3, 3.4, 0.62, 0.32  # of the panels, between them, of what was read
COLUMNS = 600  # of the upper panel, at most: longer texts are means of so many stretches
LEAST = 0.1  # the upper panel's scale ends at the largest weight, and not below this
MARKS = 5  # places that the answer was read from most
EARLY, LATE = "#fbd786", hexadecimal(DARK)  # colours of places: the beginning and the end


def draw(state: "State", answer: "Recollected", question: str, path: Path) -> list[str]:
    """Draw the memory and what was read of it; returns what should be said of the picture."""
    if not len(state.worth):
        raise ValueError("nothing was read into this memory, so there is nothing to draw")
    return saved(lambda: Picture(state, answer, question), path)


class Picture:
    """One picture: the question, the answer, the storage weights, the slots."""

    def __init__(self, state: "State", answer: "Recollected", question: str) -> None:
        self.sheet, self.state, self.answer = Sheet(), state, answer
        self.title = lines(question, HEAD)

    def save(self, path: Path) -> None:
        top = MARGIN + 0.3 * len(self.title) + 0.6
        below = top + WORTH + BETWEEN
        caption = self.caption()
        foot = below + SLOTS + 0.6
        breadth = LEFT + WIDTH + 0.1 + READ + MARGIN
        self.height = foot + 0.2 * len(caption) + MARGIN - 0.2
        self.width = max(
            breadth,
            MARGIN * 2 + max(self.sheet.measure(line, TITLE, weight="bold") for line in self.title),
            MARGIN * 2 + max(self.sheet.measure(line, SMALL) for line in caption),
        )
        self.sheet.open(self.width, self.height)
        self.header()
        self.worth(self.panel(LEFT, top, WIDTH, WORTH))
        self.slots(self.panel(LEFT, below, WIDTH, SLOTS))
        self.read(self.panel(LEFT + WIDTH + 0.1, below, READ, SLOTS))
        for number, line in enumerate(caption):
            self.sheet.write(MARGIN, foot + 0.2 * number, line, SMALL, color=GREY)
        self.sheet.save(path)

    def caption(self) -> list[str]:
        said = [
            "Above: how much each token or sentence was thought worth storing; blue where the "
            "answer was read.",
            "Below: the place in the text that each slot held most of; right, how much of it the "
            "answer read.",
            f"{self.state.seen:,} of {self.state.total:,} tokens were read in "
            f"{self.state.segments:,} segment{'s' * (self.state.segments != 1)}; "
            f"{self.state.filled} of {self.state.slots} slots are filled.",
        ]
        if low := self.lowest():
            said.append(f"The scale above begins at {low:.2f}: nothing was thought worth less.")
        if self.state.stride > 1:
            said.append(f"The slots are shown after every {self.state.stride} segments.")
        return said

    def header(self) -> None:
        for number, line in enumerate(self.title):
            self.sheet.write(MARGIN, MARGIN + 0.3 * number, line, TITLE, va="top", weight="bold")
        under = MARGIN + 0.3 * len(self.title) + 0.17
        said = f"{self.answer.text or 'read at the marks'}  {self.answer.probability:.2f}"
        self.sheet.write(MARGIN, under, said, TITLE, color=LATE, weight="bold")

    def panel(self, left: float, top: float, width: float, height: float) -> Any:
        """Axes at a place in inches from the top left, in the style of the page."""
        place = (
            left / self.width, 1 - (top + height) / self.height,
            width / self.width, height / self.height,
        )  # fmt: skip
        axes = self.sheet.figure.add_axes(place)
        axes.tick_params(labelsize=SMALL - 1, colors=GREY, length=2, color=GREY)
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_facecolor(EMPTY)
        return axes

    def worth(self, axes: Any) -> None:
        """Storage weights along the text: the mean and the largest of each stretch."""
        state = self.state
        parts = np.array_split(state.worth.numpy(), min(COLUMNS, len(state.worth)))
        first = np.cumsum([0, *map(len, parts[:-1])])
        edges = [*state.spans[first, 0].tolist(), state.characters]
        mean, most = ([float(how(part)) for part in parts] for how in (np.mean, np.max))
        low = self.lowest()
        axes.stairs(most, edges, baseline=low, fill=True, color=hexadecimal(PALE))
        axes.stairs(mean, edges, baseline=low, fill=True, color=hexadecimal(DEEP))
        middles = [(start + end) / 2 for start, end in pairwise(edges)]
        axes.vlines(middles, low, mean, color=hexadecimal(DEEP), linewidth=1)  # short ones are seen
        top = max(*most, LEAST)
        for source in reversed(self.answer.evidence[:MARKS]):
            colour = hexadecimal(shade(source.weight).ground)
            size = 4 + 5 * source.weight
            middle = (source.start + source.end) / 2
            place = top + 0.07 * (top - low)
            axes.plot([middle], [place], "v", color=colour, markersize=size, clip_on=False)
        axes.set(xlim=(0, state.characters), ylim=(low, top))
        axes.locator_params(axis="y", nbins=3)
        axes.set_xlabel("character", fontsize=SMALL, color=GREY, labelpad=2)
        axes.set_ylabel("worth storing", fontsize=SMALL, color=GREY)
        axes.xaxis.set_major_formatter("{x:,.0f}")

    def lowest(self) -> float:
        """Where the scale of storage weights begins: at 0, unless all of them are high."""
        least, most = float(self.state.worth.min()), float(self.state.worth.max())
        return least if most > least > most / 2 else 0.0

    def slots(self, axes: Any) -> None:
        """What each slot held, look by look."""
        from matplotlib.colors import LinearSegmentedColormap

        held = self.shown()
        colours = LinearSegmentedColormap.from_list("places", [EARLY, "#4aa5a0", LATE])
        last = max(len(self.state.spans) - 1, 1)
        axes.imshow(
            np.ma.masked_less(held.T / last, 0), cmap=colours, vmin=0, vmax=1, aspect="auto",
            interpolation="nearest", extent=(0, self.state.segments, held.shape[1], 0),
        )  # fmt: skip
        axes.set_xlabel("segment", fontsize=SMALL, color=GREY, labelpad=2)
        axes.set_ylabel("slot", fontsize=SMALL, color=GREY)
        axes.locator_params(integer=True)
        axes.xaxis.set_major_formatter("{x:,.0f}")

    def read(self, axes: Any) -> None:
        """How much of each slot was read, as a column of shades."""
        from matplotlib.colors import to_rgb

        held = self.shown()
        column = np.tile(to_rgb(EMPTY), (held.shape[1], 1, 1))
        for slot in self.answer.slots:
            if slot.number < len(column):
                column[slot.number, 0] = to_rgb(hexadecimal(shade(slot.weight).ground))
        axes.imshow(column, aspect="auto", interpolation="nearest",
                    extent=(0, 1, held.shape[1], 0))  # fmt: skip
        axes.set(xticks=[], yticks=[])
        axes.set_title("read", fontsize=SMALL, color=INK, pad=4)

    def shown(self) -> Any:
        """Looks at the slots, t s, without those that nothing was ever in."""
        history = self.state.history.numpy()
        used = np.flatnonzero((history >= 0).any(0))
        return history[:, : int(used[-1]) + 1 if len(used) else 1]
