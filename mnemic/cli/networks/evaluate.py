"""``mnemic evaluate``: test a trained network, by the error of each task or by metrics."""

from collections.abc import Sequence
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from mnemic.cli import options as opt
from mnemic.cli.networks.load import choose_task, load_network
from mnemic.cli.render.console import Styled, print_json, print_table, print_text, print_warnings
from mnemic.cli.render.format import format_metric
from mnemic.cli.render.plot_story import check_plot_path
from mnemic.recipe import ConfigError, build, join_words, kind_of, override, parse_assignment
from mnemic.recipe.migrate import migrate_override

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.evaluate.answer_thresholds import SpanPrediction

# Of metrics that are no percentages.
METRIC_LABELS = {"loss": "loss, nats", "alignment": "alignment, no %", "uniformity": "uniformity, no %"}
TASKS_HELP = "Only these: 1,2,15-17 of bAbI, or the names of tasks such as RTE,MRPC."
Spec: TypeAlias = dict[str, Any]  # the data section of a recipe
Split: TypeAlias = Literal["test", "validation", "train"]
THRESHOLD_HEADERS = {
    "answered": ">answered %",
    "false_answers": ">false answers %",
    "precision": ">right of given %",
    "exact": ">exact",
    "f1": ">F1",
}


def evaluate(
    model: opt.ModelArgument,
    data: opt.Data = None,
    split: Annotated[Split, opt.Option("--split", "The split to test on.")] = "test",
    tasks: Annotated[list[str] | None, opt.Option("--tasks TASKS", TASKS_HELP, "all")] = None,
    sets: Annotated[
        list[str] | None,
        opt.Option("--set KEY=VALUE", "Change data, such as data.test_file=dev, or options of the model."),
    ] = None,
    device: opt.Device = "auto",
    plot: Annotated[
        Path | None,
        opt.Option("--plot FILE", "Plot precision and ROC curves of a reader or of two classes: .png, .svg or .pdf."),
    ] = None,
    best_of: Annotated[
        int, opt.Option("--best-of N", "The network is the best of N on this split: bound its shares.")
    ] = 1,
) -> None:
    """Test a trained network: error per task, metrics of text tasks, or perplexity.

    The data is that of the checkpoint's recipe; --data replaces its folder, and
    --set data.test_file=dev its test file; --set 'data={…}' replaces all of it. Options of the
    model that change no weight can be set, too: model.encode.memory_length=512. Shares and errors
    have their 95 % interval (Wilson). With --best-of they also have the bounds of the best of
    several networks that were compared on the same texts (Hoeffding). If some questions have no
    answer, a table shows what each threshold of "no answer" gives. --tasks RTE of a network that
    learned several tasks tests one of them, with all its metrics.

    Example: mnemic evaluate runs/memn2n --data babi --tasks 1-3
    """
    from mnemic.data import DATASETS

    check_plot_path(plot)
    if best_of < 1:
        raise ValueError(f"--best-of is the number of networks, from 1 on, not {best_of}")
    model_changes = dict(migrate_override(*parse_assignment(text)) for text in sets or [] if is_model_change(text))
    checkpoint, notes = load_network(model, device, model_changes)
    data_spec = dict(checkpoint.recipe["data"])
    if data is not None:
        data_spec = replace_folder(data_spec, data, kind_of(DATASETS, data_spec))
    data_spec = override_data(data_spec, [text for text in sets or [] if not is_model_change(text)])
    report = {"model": str(model), "data": data_spec, "split": split}
    report |= {"changes": model_changes} if model_changes else {}
    if kind_of(DATASETS, data_spec).response is not None:  # texts, not questions
        if tasks is not None:
            checkpoint, data_spec = choose_tasks(checkpoint, data_spec, tasks)
            report["data"] = data_spec
        report |= evaluate_texts(checkpoint, data_spec, split, plot, best_of)
    else:
        if plot is not None:
            raise ValueError("--plot is for readers and classifiers of texts: leave it out")
        report |= evaluate_tasks(checkpoint, data_spec, split, tasks or ["all"], best_of)
    report["notes"] = [*notes, *report["notes"]]
    print_warnings(*report["notes"])
    print_json(report)
    if "figures" in report:
        print_metrics(report)
    else:
        print_errors(report)


def choose_tasks(checkpoint: "Checkpoint", data_spec: Spec, terms: list[str]) -> tuple["Checkpoint", Spec]:
    """Return what ``--tasks`` names of a network that learned several: one by itself, or some."""
    from mnemic.data import DATASETS
    from mnemic.predict.methods import methods_of
    from mnemic.predict.tasks import list_tasks

    if "select_task" not in methods_of(checkpoint):
        raise ValueError("this data has no tasks: leave out --tasks")
    known = list_tasks(checkpoint)
    names = [name.strip() for name in ",".join(terms).split(",")]
    names = list(known) if names == ["all"] else names
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f"there is no task {unknown[0]!r} here; tasks: {join_words(known)}")
    is_joint = kind_of(DATASETS, data_spec) is kind_of(DATASETS, checkpoint.recipe["data"])
    if len(names) == 1:
        (name,) = names
        return choose_task(checkpoint, name), build(DATASETS, data_spec).task_spec(name) if is_joint else data_spec
    if not is_joint:
        raise ValueError("this data is that of one task: name it with --tasks")
    return checkpoint, data_spec | {"tasks": [task for task in data_spec["tasks"] if task["name"] in names]}


def evaluate_tasks(
    checkpoint: "Checkpoint", data_spec: Spec, split: Split, tasks: list[str], num_models: int
) -> dict[str, Any]:
    """Compute the error per task on a split, with the checkpoint's tokenizer."""
    from mnemic.data import DATASETS
    from mnemic.evaluate.by_task import count_by_task, mean_error
    from mnemic.evaluate.error_rate import bound_task_errors, compute_task_errors
    from mnemic.reproduce.statistics import FAILURE_THRESHOLD

    data = build(DATASETS, data_spec)
    task_ids = opt.parse_task_numbers(tasks, sorted(data.tasks))
    dataset = data.dataset(split, checkpoint.tokenizer, task_ids)
    if not len(dataset):
        raise ConfigError(f"the {split} split of this data has no questions")
    errors = compute_task_errors(checkpoint.network, dataset.to(checkpoint.network.device))
    counts = count_by_task(dataset.task)
    intervals, bounds = bound_task_errors(errors, dataset, num_models)
    if num_models > 1 and not bounds:
        raise ValueError("--best-of is for shares, such as the error of a task: this data has none")
    unknown = f"{dataset.num_unknown} of {len(dataset)} answers are words the network does not know"
    return {
        "mean_error": mean_error(list(errors.values())),
        "failed": sum(error > FAILURE_THRESHOLD for error in errors.values()),
        "per_task": {str(task): error for task, error in errors.items()},
        "intervals": intervals,
        **({"best_of": num_models, "bounds": bounds} if bounds else {}),
        "names": {str(task): data.names[task] for task in errors},
        "questions": {str(task): counts.get(task, 0) for task in errors},
        "notes": [f"{unknown}; they count as wrong"] if dataset.num_unknown else [],
    }


def evaluate_texts(
    checkpoint: "Checkpoint", data_spec: Spec, split: Split, plot: Path | None, num_models: int
) -> dict[str, Any]:
    """Compute the metrics of a network on a split of texts."""
    from mnemic.data import DATASETS
    from mnemic.evaluate.pretraining_metrics import attach_noises
    from mnemic.evaluate.text_metrics import compute_report

    dataset = build(DATASETS, data_spec).dataset(split, checkpoint.tokenizer, checkpoint.labels)
    if not len(dataset):
        hint = "; --split validation may have some" if split == "test" else ""
        raise ConfigError(f"the {split} split of this data has no texts{hint}")
    dataset = attach_noises(dataset.to(checkpoint.network.device), checkpoint.recipe["objective"])
    metrics, intervals, bounds, predictions = compute_report(checkpoint.network, dataset, num_models)
    if num_models > 1 and not bounds:
        raise ValueError("--best-of is for shares, such as accuracy: this data has none")
    if dataset.metrics == "perplexity":  # words: those that are unknown have a metric
        counts = {"seen": dataset.num_targets, "total": dataset.num_targets, "context": dataset.max_tokens}
        if dataset.is_stream:
            counts["memory"] = checkpoint.network.encode.memory_length
        return {"figures": metrics, **report_bits(metrics), **counts, "notes": []}
    title = f"{checkpoint.origin}, {split} split, {len(dataset)}"
    is_plotted = plot is not None and plot_classes(checkpoint, dataset, f"{title} texts", plot)
    unknown = f"{dataset.num_unknown} of {len(dataset)} labels were not in training; they count as wrong"
    num_seen, num_total = dataset.token_counts.sum(0).tolist()
    report = {"texts": len(dataset), "figures": metrics, **report_bits(metrics), "intervals": intervals}
    report |= {"best_of": num_models, "bounds": bounds} if bounds else {}
    return report | {
        **report_thresholds(predictions, None if is_plotted else plot, f"{title} questions"),
        "seen": num_seen,
        "total": num_total,
        "notes": [unknown] if dataset.num_unknown else [],
    }


def report_bits(metrics: dict[str, float]) -> dict[str, float]:
    """Report the perplexity in bits per word, if there is one."""
    return {"bits": log2(metrics["perplexity"])} if "perplexity" in metrics else {}


def plot_classes(checkpoint: "Checkpoint", dataset: Any, title: str, path: Path) -> bool:
    """Plot the curves of the second of two classes; return whether there are two."""
    from mnemic.cli.render.plot_curves import plot_class_curves
    from mnemic.evaluate.text_metrics import score_second_class
    from mnemic.predict.windows import compute_class_logits

    if dataset.metrics != "classes" or len(dataset.labels) != 2:
        return False
    decisions = score_second_class(compute_class_logits(checkpoint.network, dataset), dataset.targets.tolist())
    plot_class_curves(decisions, dataset.labels[1], title, path)
    return True


def report_thresholds(predictions: Sequence["SpanPrediction"], plot: Path | None, title: str) -> dict[str, Any]:
    """Tabulate thresholds of "no answer", and plot the curves."""
    from mnemic.cli.render.plot_curves import plot_answer_curves
    from mnemic.evaluate.answer_thresholds import tabulate_thresholds

    if all(case.has_answer for case in predictions):
        if plot is not None:
            raise ValueError(
                "--plot is for two classes, or questions of which some have no answer: this data has neither"
            )
        return {}
    if plot is not None:
        plot_answer_curves(predictions, title, plot)
    return {"thresholds": [row._asdict() for row in tabulate_thresholds(predictions)]}


def override_data(data_spec: Spec, sets: list[str]) -> Spec:
    """Apply ``--set data.key=value`` changes to the data section of a recipe."""
    recipe: dict[str, Any] = {"data": data_spec}
    for text in sets:
        key, value = migrate_override(*parse_assignment(text))
        if key.partition(".")[0] != "data":
            raise ConfigError(f"{key} of a trained network cannot change here; --set takes data.…")
        recipe = override(recipe, key, value)
    return recipe["data"]


def is_model_change(text: str) -> bool:
    """Check whether a ``--set KEY=VALUE`` changes an option of the model."""
    return text.startswith("model.")


def replace_folder(data_spec: Spec, folder: str, data_kind: Any) -> Spec:
    """Read the data from ``folder``; generated data is replaced by files of its kind."""
    if data_kind.file_kind:
        shared = {key: data_spec[key] for key in data_kind.shared_keys if key in data_spec}
        data_spec = shared | {"kind": data_kind.file_kind}
    return {**data_spec, "folder": folder}


def print_errors(report: dict[str, Any]) -> None:
    """Print the error of each task."""
    from mnemic.reproduce.statistics import FAILURE_THRESHOLD

    rows, columns = [], list_bound_columns(report)
    for task, error in report["per_task"].items():
        error_text = Styled(f"{error:.1f}", "red" if error > FAILURE_THRESHOLD else "green")
        cells = [format_bounds(pairs, task) for pairs in columns.values()]
        rows.append([task, report["names"][task], str(report["questions"][task]), error_text, *cells])
    footer = ["", "mean", str(sum(report["questions"].values())), f"{report['mean_error']:.1f}", *([""] * len(columns))]
    print_table([">task", "", ">questions", ">error %", *columns], rows, footer=footer)
    print_text(f"{report['failed']} of {len(report['per_task'])} tasks failed (over {FAILURE_THRESHOLD:g} %)")


def list_bound_columns(report: dict[str, Any]) -> dict[str, dict[str, tuple[float, float]]]:
    """List the columns of intervals and bounds that a report has, by their header."""
    columns = {">95 % interval": report.get("intervals", {})}
    columns |= {f">best of {report.get('best_of')}, 95 %": report.get("bounds", {})}
    return {header: pairs for header, pairs in columns.items() if pairs}


def format_bounds(pairs: dict[str, tuple[float, float]], name: str) -> str:
    """Format the interval of a metric or task; empty without one."""
    return "{:.1f} – {:.1f}".format(*pairs[name]) if name in pairs else ""


def print_metrics(report: dict[str, Any]) -> None:
    """Print the metrics of texts."""
    has_texts, metrics, columns = "texts" in report, report["figures"], list_bound_columns(report)
    rows = []
    for name, value in metrics.items():
        cells = [format_bounds(pairs, name) for pairs in columns.values()]
        rows.append([METRIC_LABELS.get(name, name), format_metric(name, value), *cells])
        if name == "perplexity":
            rows.append(["bits per word", f"{report['bits']:.3f}", *([""] * len(columns))])
    print_table(["metric", ">%" if has_texts else ">", *columns], rows)
    if "thresholds" in report:
        print_thresholds(report["thresholds"])
    if has_texts:
        print_text(f"{report['texts']} texts, {report['seen']:,} of {report['total']:,} tokens seen")
    else:
        memory = f" and {report['memory']} cached states per layer" if report.get("memory") else ""
        print_text(f"{report['total']:,} words asked for, each from {report['context']} words{memory} at most")


def print_thresholds(rows: list[dict[str, float]]) -> None:
    """Print what a reader does at each threshold of "no answer"."""
    cells = [[f"{row['threshold']:.3g}", *(f"{100 * row[name]:.1f}" for name in THRESHOLD_HEADERS)] for row in rows]
    caption = "right: an F1 of 0.5 or more; the row with an odd threshold has the best F1 on these questions"
    headers = [">threshold", *THRESHOLD_HEADERS.values()]
    print_table(headers, cells, title="if an answer needs at least this probability", caption=caption)
