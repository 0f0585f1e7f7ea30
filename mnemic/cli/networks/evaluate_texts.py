"""``mnemic evaluate`` for texts that are read without a memory: the figures of their kind."""

from typing import TYPE_CHECKING, Any, Literal

from rich.table import Table

from mnemic.cli.render.console import figure, out, print_json, warn

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint


def evaluate_texts(
    checkpoint: "Checkpoint",
    source: dict[str, Any],
    model: str,
    split: Literal["train", "validation", "test"],
    device: str,
    as_json: bool,
) -> None:
    """Read every text of the split, and print how good what was said is."""
    from mnemic.data import DATASETS
    from mnemic.data.language_modeling.batches import WordSet
    from mnemic.evaluate.error_rate import look
    from mnemic.recipe import ConfigError, build

    texts = build(DATASETS, source).asked(split, checkpoint.tokenizer, checkpoint.labels)
    if not len(texts):
        other = "; --split validation may have some" if split == "test" else ""
        raise ConfigError(f"the {split} split of this data has no texts{other}")
    notes = [] if checkpoint.progress.done else ["this network is not trained to the end"]
    running = isinstance(texts, WordSet)
    if (strange := texts.unknown) and not running:  # which has a figure for it
        notes.append(f"{strange} of {len(texts)} labels were not in training; they count as wrong")
    for note in notes:
        warn(note)
    seen, total = (texts.asked,) * 2 if running else texts.count.sum(0).tolist()
    report = {
        "model": model,
        "data": source,
        "split": split,
        **({} if running else {"texts": len(texts)}),
        "figures": look(checkpoint.network.to(device), texts.to(device))[1],
        "seen": seen,
        "total": total,
        "notes": notes,
    }
    if as_json:
        print_json(report)
        return
    table = Table("figure", "" if running else "%", header_style="bold")
    table.columns[1].justify = "right"
    for name, value in report["figures"].items():
        table.add_row(name if name != "loss" else "loss, nats", figure(name, value))
    screen = out()
    screen.print(table)
    if running:
        screen.print(f"{total:,} words asked for, each from {texts.length} words at most")
    else:
        screen.print(f"{len(texts)} texts, {seen:,} of {total:,} tokens seen")
