"""Plot time and memory against the length of a text, one line per kind of attention."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mnemic.cli.render.canvas import DPI, GRAY, SMALL_SIZE

WIDTH, PANEL_HEIGHT = 10.4, 3.9  # inches
BASELINE_COLOR = "#14181e"
COLORS = (
    "#0b4a9a", "#c25400", "#2a8a5a", "#8a3ab0", "#5b8dcb", "#e0a040", "#7fbf7b", "#c2185b",
    "#7a8494", "#8c6d31", "#17a2b8", "#b5b800",
)  # fmt: skip
DASHES = ("-", "--", ":")  # one more for each round of the colors


def plot_length_cost(result: Mapping[str, Any], path: Path) -> None:
    """Plot the costs of a table of attention on all its devices.

    The legend has the order of the lines at their right end. The suffix of ``path`` sets the
    format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    devices = list(result["rows"][0]["cost"])
    if not devices:
        raise ValueError("--plot shows cost against length, which this table does not have: add cost to --columns")
    figure: Any = Figure(figsize=(WIDTH, PANEL_HEIGHT * len(devices)), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    styles = pick_styles([row["name"] for row in result["rows"]])
    for device, panels in zip(devices, figure.subplots(len(devices), 2, squeeze=False)):
        draw_panel(panels[0], result["rows"], device, styles, ("seconds",), 1000)
        memory = ("peak_mib", "saved_mib")
        draw_panel(panels[1], result["rows"], device, styles, memory, 1)
        name = "CPU" if device == "cpu" else "GPU"
        kind = "kept for the backward pass" if device == "cpu" else "at the peak"
        for panel, title in zip(panels, (f"{name}: ms a training pass", f"{name}: MiB {kind}")):
            panel.set_title(title, fontsize=SMALL_SIZE + 1, loc="left")
        add_legend(panels[1], panels[0])
    figure.savefig(path)


def pick_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Pick a color and dashes per row; full attention is black."""
    styles = {}
    for number, name in enumerate(name for name in names if name != "full"):
        dashes = DASHES[number // len(COLORS) % len(DASHES)]
        styles[name] = {"color": COLORS[number % len(COLORS)], "linestyle": dashes, "linewidth": 1.3}
    return styles | {"full": {"color": BASELINE_COLOR, "linewidth": 2.4, "zorder": 5}}


def draw_panel(
    axes: Any,
    rows: Sequence[Mapping[str, Any]],
    device: str,
    styles: Mapping[str, Any],
    keys: Sequence[str],
    factor: float,
) -> None:
    """Draw one line per row, with the first of ``keys`` that it has."""
    ticks: set[int] = set()
    for row in rows:
        cells = row["cost"].get(device, {}).get("lengths", ())
        key = next((key for key in keys if any(key in cell for cell in cells)), "")
        points = [(cell["tokens"], factor * cell[key]) for cell in cells if cell.get(key)]
        if points:
            ticks |= {tokens for tokens, _ in points}
            axes.plot(*zip(*points), marker="o", markersize=3, label=row["title"], **styles[row["name"]])
    axes.set(xscale="log", yscale="log", xlabel="tokens of one text")
    axes.set_xticks(
        sorted(ticks), [f"{tokens // 1024}k" if tokens >= 1024 else str(tokens) for tokens in sorted(ticks)]
    )
    axes.minorticks_off()
    axes.tick_params(labelsize=SMALL_SIZE, color=GRAY)
    axes.grid(color="#e3e7eb", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def add_legend(axes: Any, ordered_axes: Any) -> None:
    """Add a legend to the right of a panel, in the order of another panel's right ends.

    Lines that reach further come after shorter ones of steeper growth.
    """
    lines = {line.get_label(): line for line in axes.get_lines()}

    def rank(line: Any) -> float:
        (x, y) = (values[-1] for values in line.get_data())
        (first_x, first_y) = (values[0] for values in line.get_data())
        slope = 0.0 if x == first_x else float(y / first_y) / float(x / first_x)
        return float(y / x) * max(slope, 1.0)

    ordered = sorted(ordered_axes.get_lines(), key=rank, reverse=True)
    handles = [lines[line.get_label()] for line in ordered if line.get_label() in lines]
    if handles:
        axes.legend(
            handles=handles, frameon=False, fontsize=SMALL_SIZE - 1, loc="center left", bbox_to_anchor=(1.01, 0.5)
        )
