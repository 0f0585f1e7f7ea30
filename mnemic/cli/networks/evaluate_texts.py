"""``mnemic evaluate`` for texts that are read without a memory: metrics or perplexity."""

from typing import TYPE_CHECKING, Any, Literal

from rich.table import Table

from mnemic.cli.render.console import format_metric, get_stdout, print_json, print_warning

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint


def evaluate_texts(
    checkpoint: "Checkpoint",
    data_spec: dict[str, Any],
    model: str,
    split: Literal["train", "validation", "test"],
    device: str,
    as_json: bool,
) -> None:
    """Compute the metrics of a network on a split of texts and print them."""
    from mnemic.data import DATASETS
    from mnemic.data.language_modeling.batches import TokenDataset
    from mnemic.evaluate.error_rate import evaluate_network
    from mnemic.recipe import ConfigError, build

    dataset = build(DATASETS, data_spec).dataset(split, checkpoint.tokenizer, checkpoint.labels)
    if not len(dataset):
        hint = "; --split validation may have some" if split == "test" else ""
        raise ConfigError(f"the {split} split of this data has no texts{hint}")
    notes = [] if checkpoint.progress.done else ["this network is not trained to the end"]
    is_language_model = isinstance(dataset, TokenDataset)
    if (num_unknown := dataset.num_unknown) and not is_language_model:  # which has a metric for it
        notes.append(f"{num_unknown} of {len(dataset)} labels were not in training; they count as wrong")
    for note in notes:
        print_warning(note)
    tokens_read, tokens_total = (
        (dataset.num_targets,) * 2 if is_language_model else dataset.token_counts.sum(0).tolist()
    )
    report = {
        "model": model,
        "data": data_spec,
        "split": split,
        **({} if is_language_model else {"texts": len(dataset)}),
        "figures": evaluate_network(checkpoint.network.to(device), dataset.to(device))[1],
        "seen": tokens_read,
        "total": tokens_total,
        "notes": notes,
    }
    if as_json:
        print_json(report)
        return
    table = Table("metric", "" if is_language_model else "%", header_style="bold")
    table.columns[1].justify = "right"
    for name, value in report["figures"].items():
        table.add_row(name if name != "loss" else "loss, nats", format_metric(name, value))
    screen = get_stdout()
    screen.print(table)
    if is_language_model:
        screen.print(f"{tokens_total:,} words asked for, each from {dataset.max_tokens} words at most")
    else:
        screen.print(f"{len(dataset)} texts, {tokens_read:,} of {tokens_total:,} tokens seen")
