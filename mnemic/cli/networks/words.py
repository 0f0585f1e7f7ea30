"""``mnemic data words`` and ``mnemic table words``: compare language models."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mnemic.cli.options import DeviceOption, JsonOption, SetOption, resolve_device
from mnemic.cli.render.console import format_duration, get_stdout, print_json
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.reproduce.words_table import WordsTable

DocumentsOption = Annotated[
    str, typer.Option("--data", metavar="DIR", help="Folder with the documents: .jsonl or .txt files.")
]


def prepare_words(
    data: DocumentsOption,
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the token ids.")],
    sets: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Convert documents to token ids once, for many runs.

    The folder then replaces the documents. --set takes the options of data kind words;
    mnemic recipes lstm-words lists them.

    Example: mnemic data words --data enwiki --out words --set data.vocab=20000
    """
    from mnemic.cli.render.console import format_bytes
    from mnemic.data import DATASETS
    from mnemic.recipe import build, load_recipe, override

    recipe = override(load_recipe("rnn-words", sets or []), "data.folder", data)
    report = build(DATASETS, recipe["data"]).save_encoded(folder)
    num_bytes = sum(path.stat().st_size for path in folder.iterdir())
    if as_json:
        print_json({"out": str(folder), "bytes": num_bytes} | report)
        return
    for split, count in report["words"].items():
        get_stdout().print(f"{split:<12} {count:,} words")
    line = f"{folder}  {format_bytes(num_bytes)}, a vocabulary of {report['vocab']:,}"
    get_stdout().print(line, markup=False, soft_wrap=True)


def words(
    data: DocumentsOption,
    recipes: Annotated[str, typer.Option(help="The networks, separated by commas.", show_default="all four")] = "",
    seeds: Annotated[int, typer.Option(help="Runs per network, from seed 0 on.", min=1)] = 1,
    sets: SetOption = None,
    device: DeviceOption = "auto",
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the runs and the table.")] = Path(
        "runs/table-words"
    ),
    as_json: JsonOption = False,
) -> None:
    """Train language models on the same words and compare their perplexity per word.

    A simple recurrent network, a GRU, an LSTM and a causal Transformer, with the same vocabulary,
    words and context. An interrupted table resumes when the command is repeated.

    Example: mnemic table words --data enwiki --set data.vocab=8000 --set model.width=128
    """
    from mnemic.reproduce.words_table import DEFAULT_RECIPES, WordsTable, save_result

    recipe_names = [name.strip() for name in recipes.split(",")] if recipes else DEFAULT_RECIPES
    table = WordsTable(data=data, recipes=recipe_names, seeds=seeds, sets=sets or [], device=resolve_device(device))
    train_with_progress(table, folder)
    result = save_result(table, folder)
    if as_json:
        print_json(result)
        return
    get_stdout().print(build_perplexity_table(result))
    time, num_words = format_duration(result["seconds"]), result["words"]
    for line in (
        f"{num_words['train']:,} words to learn from, {num_words['test']:,} asked for",
        f"{time} of training on {result['hardware']}",
        f"kept in {folder / 'table.json'}",
    ):
        get_stdout().print(line, style="dim", markup=False, soft_wrap=True)


def train_with_progress(table: "WordsTable", folder: Path) -> None:
    """Train the missing runs with a progress bar; Ctrl-C saves between two steps."""
    from mnemic.reproduce.words_table import train_missing_runs

    total = len(table.recipes) * table.seeds
    with (
        defer_interrupts() as is_interrupted,
        ProgressBars() as bars,
        closing(train_missing_runs(table, folder)) as steps,
    ):
        for name, seed, number, report in steps:
            done = number + (report.phase + report.step / report.total_steps) / report.num_phases
            detail = f"{name}, seed {seed}, step {report.step} of {report.total_steps}"
            bars.show("runs", done, total, detail)
            if report.row is not None:
                perplexity = report.row.get("figures", {}).get("perplexity")
                validation = "" if perplexity is None else f"  validation perplexity {perplexity:.1f}"
                bars.print_line(f"{detail}  loss {report.row['loss']:.4f}{validation}")
            if is_interrupted():
                raise KeyboardInterrupt(f"stopped in run {number + 1} of {total}, and saved")


def build_perplexity_table(result: dict[str, Any]) -> Table:
    """Build a table of perplexities per network, below a unigram baseline."""
    headers = ("network", "perplexity", "known words", "weights", "words read", "seconds")
    table = Table(*headers, header_style="bold", title="perplexity a word, test documents")
    unigram = result["unigram"]
    table.add_row("word frequencies", f"{unigram['perplexity']:.1f}", f"{unigram['known words']:.1f}", "", "", "")
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
        f"{result['vocab']:,} words of vocabulary; {unigram['unknown %']:.1f} % of the words asked "
        f'for are not in it and count as one word, "unknown"; at most {result["length"]} are read'
    )
    return table
