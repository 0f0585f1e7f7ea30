"""Plot a reader's precision against the answers that it gives, and its ROC curve."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.cli.render.canvas import DPI, GRAY, INK, SMALL_SIZE, TEXT_SIZE

if TYPE_CHECKING:
    from mnemic.evaluate.answer_thresholds import SpanPrediction

COLOR, WIDTH, HEIGHT = "#1f5fa8", 9.0, 4.4  # inches


def plot_answer_curves(predictions: Sequence["SpanPrediction"], title: str, path: Path) -> None:
    """Plot both curves over all thresholds; the suffix of ``path`` sets the format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from mnemic.evaluate.answer_thresholds import MIN_RIGHT_F1
    from mnemic.evaluate.curves import average_precision, compute_curve, roc_auc

    figure: Any = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, color=INK, fontsize=TEXT_SIZE + 1)
    precision_axes, roc_axes = figure.subplots(1, 2)
    scores = [case.probability for case in predictions]
    is_right = [case.f1 >= MIN_RIGHT_F1 for case in predictions]
    answers = compute_curve(scores, is_right)
    area = average_precision(scores, is_right)
    recalls, precisions = answers.true_positive_rates, answers.precisions
    precision_axes.plot(
        [100 * recall for recall in recalls], [100 * precision for precision in precisions], color=COLOR
    )
    precision_axes.set(
        xlabel="right answers that are given, %", ylabel="answers that are right, %", xlim=(0, 100), ylim=(0, 101)
    )
    precision_axes.set_title(f"average precision {100 * area:.1f}", color=GRAY, fontsize=SMALL_SIZE)
    silences = [1 - score for score in scores], [not case.has_answer for case in predictions]
    roc = compute_curve(*silences)
    roc_axes.plot(
        [0, *(100 * rate for rate in roc.false_positive_rates)],
        [0, *(100 * rate for rate in roc.true_positive_rates)],
        color=COLOR,
    )
    roc_axes.plot([0, 100], [0, 100], color=GRAY, linewidth=0.8, linestyle=":")
    roc_axes.set(xlabel="questions with an answer that get none, %", ylabel="unanswerable questions that get none, %")
    roc_axes.set(xlim=(0, 100), ylim=(0, 101))
    roc_axes.set_title(
        f'area under the ROC curve of "no answer" {100 * roc_auc(*silences):.1f}', color=GRAY, fontsize=SMALL_SIZE
    )
    for axes in (precision_axes, roc_axes):
        axes.grid(color="#e3e7eb", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
