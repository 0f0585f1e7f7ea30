"""``mnemic train vectors``: learn word vectors from documents."""

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_status, print_text
from mnemic.cli.render.format import format_bytes, format_duration
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.vectors.describe import list_neighbors, print_neighbors
from mnemic.recipe import ConfigError, parse_assignment
from mnemic.train.interrupt import defer_interrupts

WIDTH_HELP = "Width of a vector: that of the network it is for."
DATA_HELP = "The documents: a .jsonl or .txt file, also .gz or .xz, or a folder of them."


def train_word_vectors(
    data: Annotated[Path, opt.Option("--data PATH", DATA_HELP)],
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the vectors.")] = Path("runs/vectors"),
    kind: Annotated[
        str, opt.Option("--kind KIND", "How: skip-gram, cbow, cbow-corrected, fasttext, glove or svd.")
    ] = "skip-gram",
    width: Annotated[int | None, opt.Option("--width N", WIDTH_HELP, "300")] = None,
    window: Annotated[int | None, opt.Option("--window N", "Words to either side that count.", "5, glove 10")] = None,
    negatives: Annotated[int | None, opt.Option("--negatives N", "Random words per predicted one.", "5")] = None,
    min_count: Annotated[int | None, opt.Option("--min-count N", "Rarer words have no vector.", "5")] = None,
    epochs: Annotated[int | None, opt.Option("--epochs N", "How often the documents are read.", "5, glove 25")] = None,
    sets: Annotated[
        list[str] | None, opt.Option("--set KEY=VALUE", "Another option of the kind, such as hierarchical=true.")
    ] = None,
    documents: Annotated[int, opt.Option("--documents N", "Only the first N documents.", "all")] = 0,
    field: Annotated[str, opt.Option("--field NAME", "The text in a line of .jsonl.")] = "text",
    seed: opt.Seed = 0,
    threads: Annotated[int, opt.Option("--threads N", "With several, no two runs give the same vectors.")] = 1,
    fresh: Annotated[bool, opt.Option("--fresh", "Replace the vectors that are in the folder.")] = False,
) -> None:
    """Learn word vectors from documents, for the embedding of a network to start from.

    Example: mnemic train vectors --data enwiki --width 128 --out runs/vectors

    Then: mnemic train bert-classes --data DIR --set model.init_vectors=runs/vectors
    """
    from mnemic.checkpoint.vectors import check_vectors_replaceable, is_vector_folder, save_vectors
    from mnemic.data.corpora.read_documents import Corpus
    from mnemic.train.vectors.train import train_vectors

    check_vectors_replaceable(folder)
    if is_vector_folder(folder) and not fresh:
        raise ConfigError(f"{folder} has word vectors already; give another --out, or --fresh to replace them")
    options = {"width": width, "window": window, "negatives": negatives, "min_count": min_count, "epochs": epochs}
    spec: dict[str, Any] = {"kind": kind} | {name: value for name, value in options.items() if value is not None}
    spec |= dict(parse_assignment(text) for text in sets or [])
    corpus, start_time = Corpus.from_paths([data], field=field), time.monotonic()
    with defer_interrupts() as is_interrupted, ProgressBars("words") as bars:

        def show_progress(num_read: int, total: int) -> None:
            if is_interrupted():
                raise KeyboardInterrupt("stopped, and nothing was written")
            if total:
                bars.show("words", num_read, total)

        print_status(f"counting the words of {data}")
        table = train_vectors(
            spec, corpus, max_documents=documents, seed=seed, threads=threads, on_progress=show_progress
        )
        save_vectors(folder, table)
    report = {
        "out": str(folder),
        "kind": kind,
        "words": len(table.words),
        "width": table.width,
        "words_read": table.card["corpus"]["words"],
        "seconds": round(time.monotonic() - start_time, 1),
        "bytes": sum(path.stat().st_size for path in folder.iterdir()),
        "neighbors": list_neighbors(table),
    }
    print_json(report)
    print_text(f"{folder}  {report['words']:,} words of width {table.width}, {format_bytes(report['bytes'])}")
    print_text(f"trained on {report['words_read']:,} words in {format_duration(report['seconds'])}")
    print_neighbors(report["neighbors"])
    target = shlex.quote(f"model.init_vectors={folder}")
    print_text(f"\nnext:\n  mnemic train bert-classes --data DIR --set model.width={table.width} --set {target}")
