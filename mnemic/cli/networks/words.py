"""``mnemic data words`` and ``mnemic table words``: language models on the same words."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mnemic.cli.options import AsJson, Device, Sets, device_of
from mnemic.cli.render.console import duration, out, print_json
from mnemic.cli.render.progress import Bars
from mnemic.train.interrupt import patient

if TYPE_CHECKING:
    from mnemic.reproduce.words_table import WordsTable

Documents = Annotated[
    str,
    typer.Option("--data", metavar="DIR", help="Folder with the documents: .jsonl or .txt files."),
]


def make_words(
    data: Documents,
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the words go.")],
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Number the words of documents once; the folder then takes the place of the files.

    What can be set is what data of kind words takes: mnemic recipes lstm-words lists it.

    Example: mnemic data words --data enwiki --out words --set data.vocab=20000
    """
    from mnemic.cli.render.console import size
    from mnemic.data import DATASETS
    from mnemic.recipe import build, load, override

    recipe = override(load("rnn-words", sets or []), "data.folder", data)
    told = build(DATASETS, recipe["data"]).keep(folder)
    bytes_there = sum(path.stat().st_size for path in folder.iterdir())
    if as_json:
        print_json({"out": str(folder), "bytes": bytes_there} | told)
        return
    for part, count in told["words"].items():
        out().print(f"{part:<12} {count:,} words")
    line = f"{folder}  {size(bytes_there)}, a vocabulary of {told['vocab']:,}"
    out().print(line, markup=False, soft_wrap=True)


def words(
    data: Documents,
    recipes: Annotated[
        str, typer.Option(help="Which networks, with commas between.", show_default="all four")
    ] = "",
    seeds: Annotated[int, typer.Option(help="Runs of each, from seed 0 on.", min=1)] = 1,
    sets: Sets = None,
    device: Device = "auto",
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where runs and table go.")
    ] = Path("runs/table-words"),
    as_json: AsJson = False,
) -> None:
    """Train language models on the same words and compare their perplexity a word.

    A simple recurrent network, a GRU, an LSTM and a causal Transformer, with the same vocabulary,
    the same words and the same context. A table that was stopped goes on when it is repeated.

    Example: mnemic table words --data enwiki --set data.vocab=8000 --set model.width=128
    """
    from mnemic.reproduce.words_table import RECIPES, WordsTable, save_result

    chosen = [name.strip() for name in recipes.split(",")] if recipes else RECIPES
    table = WordsTable(
        data=data, recipes=chosen, seeds=seeds, sets=sets or [], device=device_of(device)
    )
    follow(table, folder)
    result = save_result(table, folder)
    if as_json:
        print_json(result)
        return
    out().print(perplexities(result))
    done, read = duration(result["seconds"]), result["words"]
    for line in (
        f"{read['train']:,} words to learn from, {read['test']:,} asked for",
        f"{done} of training on {result['hardware']}",
        f"kept in {folder / 'table.json'}",
    ):
        out().print(line, style="dim", markup=False, soft_wrap=True)


def follow(table: "WordsTable", folder: Path) -> None:
    """Train what is missing, and show how far it is; Ctrl-C saves between two steps."""
    from mnemic.reproduce.words_table import rebuild

    total = len(table.recipes) * table.seeds
    with patient() as stopped, Bars() as bars, closing(rebuild(table, folder)) as steps:
        for name, seed, number, report in steps:
            done = number + (report.phase + report.step / report.total) / report.phases
            brief = f"{name}, seed {seed}, step {report.step} of {report.total}"
            bars.show("runs", done, total, brief)
            if report.row is not None:
                held = report.row.get("figures", {}).get("perplexity")
                said = "" if held is None else f"  validation perplexity {held:.1f}"
                bars.line(f"{brief}  loss {report.row['loss']:.4f}{said}")
            if stopped():
                raise KeyboardInterrupt(f"stopped in run {number + 1} of {total}, and saved")


def perplexities(result: dict[str, Any]) -> Table:
    """A line a network, with guessing by frequency above them."""
    heads = ("network", "perplexity", "known words", "weights", "words read", "seconds")
    table = Table(*heads, header_style="bold", title="perplexity a word, test documents")
    guess = result["unigram"]
    table.add_row(
        "word frequencies", f"{guess['perplexity']:.1f}", f"{guess['known words']:.1f}", "", "", ""
    )
    for row in result["rows"]:
        deviation = f" ± {row['std']:.1f}" if len(result["seeds"]) > 1 else ""
        table.add_row(
            row["recipe"],
            f"{row['perplexity']:.1f}{deviation}",
            f"{row['known words']:.1f}",
            f"{row['weights']:,}",
            f"{row['words_read']:,}",
            f"{row['seconds']:.0f}",
        )
    for column in table.columns[1:]:
        column.justify = "right"
    table.caption = (
        f"{result['vocab']:,} words of vocabulary; {guess['unknown %']:.1f} % of the words asked "
        f'for are not in it and count as one word, "unknown"; at most {result["length"]} are read'
    )
    return table
