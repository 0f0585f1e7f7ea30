"""Plot how much each layer of one or several encoders changes a text's states."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.cli.render.canvas import DPI, INK, SMALL_SIZE, TEXT_SIZE

if TYPE_CHECKING:
    from mnemic.evaluate.layer_transitions import LayerTransition

COLORS = ("#1f5fa8", "#c8641e", "#2b8a5a", "#8a4fa0", "#6b7480")
WIDTH, HEIGHT = 9.0, 4.2  # inches


def plot_layer_transitions(networks: Mapping[str, list["LayerTransition"]], path: Path) -> None:
    """Plot a curve per network: L2 distances, and angles, of each layer's input and output.

    The suffix of ``path`` sets the format. It is the figure of ALBERT (Lan et al. 2020, figure 1).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("From the input of each layer to its output", color=INK, fontsize=TEXT_SIZE + 1)
    distance_axes, angle_axes = figure.subplots(1, 2)
    for number, (name, layers) in enumerate(networks.items()):
        style = {"color": COLORS[number % len(COLORS)], "marker": "o", "markersize": 3, "label": name}
        numbers = [layer.layer for layer in layers]
        distance_axes.plot(numbers, [layer.distance for layer in layers], **style)
        angle_axes.plot(numbers, [layer.angle for layer in layers], **style)
    distance_axes.set(xlabel="layer", ylabel="L2 distance")
    angle_axes.set(xlabel="layer", ylabel="angle of the cosine, degrees")
    for axes in (distance_axes, angle_axes):
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="x", integer=True)
        axes.grid(color="#e3e7eb", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    distance_axes.legend(fontsize=SMALL_SIZE, frameon=False)
    figure.savefig(path)
