"""``mnemic table vectors``: compare kinds of word vectors."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_table, print_text
from mnemic.cli.render.format import format_duration
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.reproduce.vectors_table import VectorsTable, VectorStep

DATA_HELP = "The documents: a .jsonl or .txt file, also .gz or .xz, or a folder of them."
CLASSES_HELP = "Texts with labels, to classify by the mean of their vectors."
KINDS_HELP = "A kind; repeat it. With -hierarchical: softmax over a tree."
DEFAULT_FOLDER = Path("runs/table-vectors")
COLUMNS = {"wordsim": ">WordSim-353", "simlex": ">SimLex-999", "analogies": ">analogies %", "classes": ">classes %"}


def compare_vectors(
    data: Annotated[str, opt.Option("--data PATH", DATA_HELP)],
    classes: Annotated[str, opt.Option("--classes DIR", CLASSES_HELP, "none")] = "",
    kinds: Annotated[list[str] | None, opt.Option("--kind KIND", KINDS_HELP, "all")] = None,
    width: Annotated[int, opt.Option("--width N", "Width of a vector.")] = 100,
    epochs: Annotated[int, opt.Option("--epochs N", "How often the documents are read.", "as each kind has")] = 0,
    documents: Annotated[int, opt.Option("--documents N", "Only the first N documents.", "all")] = 0,
    seeds: Annotated[int, opt.Option("--seeds N", "Vectors per kind.")] = 1,
    threads: Annotated[int, opt.Option("--threads N", "With several, no two runs give the same vectors.")] = 1,
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the table.")] = DEFAULT_FOLDER,
) -> None:
    """Compare kinds of word vectors that learn from the same documents.

    Measured on WordSim-353 and SimLex-999 (Spearman's correlation with people's ratings), on the
    analogies of word2vec, and on texts with labels. An interrupted table resumes when the
    command is repeated, with the vectors that are missing.

    Example: mnemic table vectors --data enwiki --classes glue/SST-2
    """
    from mnemic.reproduce.vectors_table import DEFAULT_KINDS, VectorsTable, save_vectors_table

    table = VectorsTable(
        data=data, classes=classes, kinds=kinds or DEFAULT_KINDS, width=width, epochs=epochs,
        max_documents=documents, seeds=seeds, threads=threads,
    )  # fmt: skip
    train_with_progress(table, folder)
    result = save_vectors_table(table, folder)
    print_json(result)
    print_vectors(result)
    print_text(f"kept in {folder / 'table.json'}", style="dim")


def train_with_progress(table: "VectorsTable", folder: Path) -> None:
    """Learn the missing vectors with a progress bar; Ctrl-C stops at once."""
    from mnemic.reproduce.vectors_table import train_missing_vectors

    total = len(table.kinds) * table.seeds
    with defer_interrupts() as should_stop, ProgressBars("words") as bars:

        def show_progress(step: "VectorStep") -> None:
            if should_stop():
                raise KeyboardInterrupt(f"stopped after {step.number} of {total} vectors, which are saved")
            if step.num_words:
                bars.show(f"{step.name}, seed {step.seed}", step.num_read, step.num_words)

        with closing(train_missing_vectors(table, folder, show_progress)) as steps:
            for step in steps:
                show_progress(step)


def print_vectors(result: dict[str, Any]) -> None:
    """Print one row per kind and seed."""
    columns = {name: header for name, header in COLUMNS.items() if all(name in row for row in result["rows"])}
    has_seeds = len({row["seed"] for row in result["rows"]}) > 1
    rows = []
    for row in result["rows"]:
        cells = [f"{row[name]:.1f}" for name in columns]
        rows.append([row["kind"], *([str(row["seed"])] if has_seeds else []), *cells, format_duration(row["seconds"])])
    first = result["rows"][0]
    covered = ", ".join(f"{name} {pair[0]:,} of {pair[1]:,}" for name, pair in first["covered"].items())
    title = f"{first['words_read']:,} words, width {result['width']}"
    headers = ["kind", *([">seed"] if has_seeds else []), *columns.values(), ">time"]
    print_table(headers, rows, title=title, caption=f"covered: {covered}")
