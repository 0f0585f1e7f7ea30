"""Plot precision and ROC curves of a reader's answers, or of one of two classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.cli.render.canvas import DPI, GRAY, INK, SMALL_SIZE, TEXT_SIZE

if TYPE_CHECKING:
    from mnemic.evaluate.answer_thresholds import SpanPrediction

COLOR, WIDTH, HEIGHT = "#1f5fa8", 9.0, 4.4  # inches


class CurvePanel(NamedTuple):
    """One curve to plot, in percent, with the names of its axes."""

    x: Sequence[float]
    y: Sequence[float]
    x_name: str
    y_name: str
    title: str
    has_diagonal: bool = False  # that of chance


def plot_answer_curves(predictions: Sequence["SpanPrediction"], title: str, path: Path) -> None:
    """Plot a reader's curves over all thresholds; the suffix of ``path`` sets the format."""
    from mnemic.evaluate.answer_thresholds import MIN_RIGHT_F1

    scores = [case.probability for case in predictions]
    answers = build_precision_panel(
        scores, [case.f1 >= MIN_RIGHT_F1 for case in predictions],
        ("right answers that are given, %", "answers that are right, %"),
    )  # fmt: skip
    silences = build_roc_panel(
        [1 - score for score in scores], [not case.has_answer for case in predictions],
        ("questions with an answer that get none, %", "unanswerable questions that get none, %"), 'of "no answer" ',
    )  # fmt: skip
    save_panels([answers, silences], title, path)


def plot_class_curves(decisions: tuple[list[float], list[bool]], label: str, title: str, path: Path) -> None:
    """Plot precision and ROC of one of two classes, from its scores."""
    precision = build_precision_panel(*decisions, (f"texts of {label} that are found, %", "found texts of it, %"))
    roc = build_roc_panel(*decisions, ("other texts that are taken for it, %", f"texts of {label} that are found, %"))
    save_panels([precision, roc], title, path)


def build_precision_panel(
    scores: Sequence[float], is_positive: Sequence[bool], names: tuple[str, str]
) -> CurvePanel:  # fmt: skip
    """Build the curve of precision against recall."""
    from mnemic.evaluate.curves import average_precision, compute_curve

    curve = compute_curve(scores, is_positive)
    rates, precisions = ([100 * value for value in values] for values in (curve.true_positive_rates, curve.precisions))
    area = average_precision(scores, is_positive)
    return CurvePanel(rates, precisions, *names, f"average precision {100 * area:.1f}")


def build_roc_panel(
    scores: Sequence[float], is_positive: Sequence[bool], names: tuple[str, str], subject: str = ""
) -> CurvePanel:
    """Build the ROC curve; ``subject`` is what the title says that it is of."""
    from mnemic.evaluate.curves import compute_curve, roc_auc

    curve = compute_curve(scores, is_positive)
    false_rates, true_rates = (
        [0.0, *(100 * rate for rate in rates)] for rates in (curve.false_positive_rates, curve.true_positive_rates)
    )
    area = f"area under the ROC curve {subject}{100 * roc_auc(scores, is_positive):.1f}"
    return CurvePanel(false_rates, true_rates, *names, area, has_diagonal=True)


def save_panels(panels: Sequence[CurvePanel], title: str, path: Path) -> None:
    """Plot curves side by side into a file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, color=INK, fontsize=TEXT_SIZE + 1)
    for axes, panel in zip(figure.subplots(1, len(panels)), panels):
        axes.plot(panel.x, panel.y, color=COLOR)
        if panel.has_diagonal:
            axes.plot([0, 100], [0, 100], color=GRAY, linewidth=0.8, linestyle=":")
        axes.set(xlabel=panel.x_name, ylabel=panel.y_name, xlim=(0, 100), ylim=(0, 101))
        axes.set_title(panel.title, color=GRAY, fontsize=SMALL_SIZE)
        axes.grid(color="#e3e7eb", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
