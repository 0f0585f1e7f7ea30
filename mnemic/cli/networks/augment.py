"""``mnemic data augment``: write labeled texts with similar ones beside them."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_text
from mnemic.cli.render.progress import ProgressBars
from mnemic.files import ANYONE, replace_file
from mnemic.recipe import ConfigError

MODEL_HELP = "A masked language model: a run of bert-pretrain, or the folder of a BertForMaskedLM."
COLUMN_HELP = "A column that is named otherwise: text=NAME, pair=NAME, label=NAME, or numbers from 1; may be repeated."


def augment(
    file: Annotated[Path, opt.Argument("FILE", "Labeled texts: .tsv, .csv or .jsonl.")],
    model: Annotated[Path, opt.Option("--model DIR", MODEL_HELP)],
    out: Annotated[Path, opt.Option("--out FILE", "The new file, .jsonl.")],
    pairs: Annotated[bool, opt.Option("--pairs", "Each example is a pair of texts.")] = False,
    columns: Annotated[list[str] | None, opt.Option("--column ROLE=NAME", COLUMN_HELP)] = None,
    copies: Annotated[int, opt.Option("--copies", "Similar texts per example.", minimum=1)] = 20,
    share: Annotated[float, opt.Option("--share", "Share of the words that a copy replaces.")] = 0.15,
    top_k: Annotated[int, opt.Option("--top-k", "Likeliest words that a new word is drawn from.", minimum=1)] = 15,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
) -> None:
    """Write labeled texts with similar ones beside them, for a student to learn from.

    Some words are masked and filled by a masked language model. A copy has the label of its
    original; a teacher labels it better. Keep the validation file as it is: data.validation_file.

    Example: mnemic data augment SST-2/train.tsv --model runs/bert-pretrain --out more/train.jsonl
    """
    from mnemic.data.text_tasks.augment import AugmentCounts, augment_examples, format_example
    from mnemic.data.text_tasks.tables import read_labeled
    from mnemic.predict.fill_masks import WordFiller, load_masked_model

    if out.suffix != ".jsonl":
        raise ConfigError(f"--out is a .jsonl file, not {out}")
    examples = read_labeled(file, parse_columns(columns or []), paired=pairs)
    network, tokenizer = load_masked_model(model.expanduser())
    filler = WordFiller(network.to(opt.resolve_device(device)), tokenizer, share=share, top_k=top_k)
    counts = AugmentCounts()
    out.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(out, mode=ANYONE) as stream, ProgressBars("texts") as bars:
        for example in augment_examples(examples, filler.fill, copies=copies, seed=seed, counts=counts):
            stream.write(format_example(example).encode("utf-8"))
            bars.show("filling", counts.examples, len(examples))
    print_json({"out": str(out), "seed": seed} | asdict(counts))
    print_text(f"{out}  {counts.examples:,} texts and {counts.copies:,} similar ones, {counts.words:,} words replaced")
    print_text(f"left out: {counts.duplicates:,} duplicates, {counts.unchanged:,} without a word to replace")


def parse_columns(terms: list[str]) -> dict[str, str | int]:
    """Parse ``["text=4", "label=2"]`` into names or numbers of columns."""
    columns: dict[str, str | int] = {}
    for term in terms:
        role, equals, name = term.partition("=")
        if not equals or not name:
            raise ConfigError(f"--column is ROLE=NAME, such as text=review, not {term!r}")
        columns[role] = int(name) if name.isdecimal() else name
    return columns
