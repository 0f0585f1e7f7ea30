"""Plot where a network looked in a picture for each word of a caption.

Shapes: c colors, y rows and x columns of pixels.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from mnemic.cli.render.canvas import DPI, GRAY, INK, SMALL_SIZE, TEXT_SIZE

if TYPE_CHECKING:
    from torch import Tensor

    from mnemic.predict.results import PictureCaption

COLUMNS = 12  # pictures of a line
CELL = 1.05  # inches: a picture with its word
SHADE = 0.75  # how dark a region without weight is


class GazePlot(NamedTuple):
    """A picture with its caption, to plot."""

    title: str
    picture: "Tensor"  # c y x, from 0 to 1
    caption: "PictureCaption"


def plot_gaze(plots: Sequence[GazePlot], path: Path) -> None:
    """Plot each picture once, then once per word, bright where the network looked.

    It is figure 3 of Show, Attend and Tell (Xu et al. 2015). The suffix of ``path`` sets the
    format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = [-(-(1 + len(plot.caption.gaze)) // COLUMNS) for plot in plots]
    figure: Any = Figure(figsize=(COLUMNS * CELL, CELL * (sum(lines) + 0.3 * len(plots))), dpi=DPI)
    FigureCanvasAgg(figure)
    panels = figure.subfigures(len(plots), 1, height_ratios=lines, squeeze=False)[:, 0]
    for panel, plot, num_lines in zip(panels, plots, lines):
        panel.suptitle(f"{plot.title}: {plot.caption.text}", color=INK, fontsize=TEXT_SIZE, x=0.01, ha="left")
        panel.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=1 - 0.42 / (num_lines * CELL), wspace=0.08)
        grid = panel.subplots(num_lines, COLUMNS, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        grid.flat[0].imshow(to_image(plot.picture))
        for axes, gaze in zip(grid.flat[1:], plot.caption.gaze):
            axes.imshow(to_image(shade_picture(plot.picture, torch.tensor(gaze.weights))))
            axes.set_title(
                gaze.word, fontsize=SMALL_SIZE, color=INK if max(map(max, gaze.weights)) > 0.5 else GRAY, pad=2
            )
    figure.savefig(path)


def shade_picture(picture: "Tensor", weights: "Tensor") -> "Tensor":
    """Darken a picture (c y x) where the weights of its regions are small."""
    light = weights / weights.max().clamp(min=1e-9)
    factors = torch.nn.functional.interpolate(light[None, None], picture.shape[1:], mode="nearest")[0]
    return picture * (1 - SHADE * (1 - factors))


def to_image(picture: "Tensor") -> Any:
    """Convert a picture to an array y x 3; a single color becomes gray."""
    return picture.expand(3, -1, -1).movedim(0, -1).clamp(0, 1).cpu().numpy()
