"""Draw cost against length from the figures on docs/explain/bert-mass.md.

    python docs/pictures/length_cost.py

The figures were measured by benchmarks/long_speed.py on an NVIDIA H200; the page has the command.
"""

from pathlib import Path

import matplotlib.pyplot as plt

TOKENS = (1024, 32768, 1048576)
# Microseconds per token and MiB that reading takes; None: not measured.
MICROSECONDS = {
    "BERT-MASS, blended": (15.9, 20.2, 17.1),
    "BERT-MASS, selective": (5.2, 4.4, 4.3),
    "Longformer": (9.9, 0.5, None),
    "BigBird": (16.4, 1.5, None),
    "full attention": (2.2, 4.1, 132),
}
MEBIBYTES = {
    "BERT-MASS, blended": (75, 75, 75),
    "BERT-MASS, selective": (76, 76, 76),
    "Longformer": (77, 5240, 1024**2),
    "BigBird": (117, 18100, 16 * 1024**2),
    "full attention": (65, 438, None),
}
COLORS = ("#0b4a9a", "#5b8dcb", "#c25400", "#e0a040", "#7a8494")
ESTIMATED = {  # not run: too slow, or more memory than the GPU has
    ("full attention", "µs"), ("Longformer", "MiB"), ("BigBird", "MiB"),
}  # fmt: skip
H200 = 141 * 1000**3 / 1024**2  # its memory, in MiB


def draw_panel(axes: plt.Axes, figures: dict[str, tuple], title: str, unit: str) -> None:
    for (name, values), color in zip(figures.items(), COLORS):
        points = [(x, y) for x, y in zip(TOKENS, values) if y is not None]
        axes.plot(*zip(*points), marker="o", markersize=4, label=name, color=color)
        if (name, unit) in ESTIMATED:
            axes.plot(*points[-1], marker="o", markersize=6, color=color, markerfacecolor="white")
    axes.set(xscale="log", yscale="log", xlabel="tokens of one text")
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xticks(TOKENS, ["1,024", "32,768", "1,048,576"])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "none"})
    figure, (time, memory) = plt.subplots(1, 2, figsize=(8.4, 3.3), layout="constrained")
    draw_panel(time, MICROSECONDS, "time: µs per token", "µs")
    draw_panel(memory, MEBIBYTES, "memory: MiB", "MiB")
    time.set_yticks([1, 10, 100], ["1", "10", "100"])
    ticks = [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000]
    memory.set_yticks(ticks, ["100", "1,000", "10⁴", "10⁵", "10⁶", "10⁷"])
    memory.axhline(H200, color="#444", linewidth=0.8, linestyle=":")
    memory.text(TOKENS[0], H200 * 1.3, "all of this GPU's memory", fontsize=8, color="#444")
    time.legend(frameon=False, fontsize=8, loc="upper left")
    figure.text(0.99, 0.02, "hollow: estimated", fontsize=8, color="#444", ha="right")
    figure.savefig(Path(__file__).with_name("length-cost.png"), dpi=110)


if __name__ == "__main__":
    main()
