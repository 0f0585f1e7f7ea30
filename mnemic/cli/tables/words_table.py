"""``mnemic table words``: compare language models on the same words."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.networks.data import Documents
from mnemic.cli.render.console import print_json, print_table, print_text
from mnemic.cli.render.format import format_duration
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.reproduce.words_table import WordsTable

DEFAULT_FOLDER = Path("runs/table-words")


def compare_language_models(
    data: Documents,
    recipes: Annotated[str, opt.Option("--recipes", "The networks, separated by commas.", "all four")] = "",
    seeds: Annotated[int, opt.Option("--seeds", "Runs per network, from seed 0 on.", minimum=1)] = 1,
    sets: opt.Sets = None,
    device: opt.Device = "auto",
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the runs and the table.")] = DEFAULT_FOLDER,
) -> None:
    """Train language models on the same words and compare their perplexity per word.

    A simple recurrent network, a GRU, an LSTM and a causal Transformer, with the same vocabulary,
    words and context. An interrupted table resumes when the command is repeated.

    Example: mnemic table words --data enwiki --set data.vocab=8000 --set model.width=128
    """
    from mnemic.reproduce.words_table import DEFAULT_RECIPES, WordsTable, save_result

    recipe_names = [name.strip() for name in recipes.split(",")] if recipes else DEFAULT_RECIPES
    table = WordsTable(data=data, recipes=recipe_names, seeds=seeds, sets=sets or [], device=opt.resolve_device(device))
    train_with_progress(table, folder)
    result = save_result(table, folder)
    print_json(result)
    print_perplexities(result)
    print_text(f"{result['words']['train']:,} words to learn from, {result['words']['test']:,} asked for")
    print_text(f"{format_duration(result['seconds'])} of training on {result['hardware']}")
    print_text(f"kept in {folder / 'table.json'}", style="dim")


def train_with_progress(table: "WordsTable", folder: Path) -> None:
    """Train the missing runs with a progress bar; Ctrl-C saves between two steps."""
    from mnemic.reproduce.words_table import train_missing_runs

    total = len(table.recipes) * table.seeds
    with defer_interrupts() as should_stop, ProgressBars() as bars, closing(train_missing_runs(table, folder)) as steps:
        for name, seed, number, report in steps:
            done = number + (report.phase + report.step / report.total_steps) / report.num_phases
            detail = f"{name}, seed {seed}, step {report.step} of {report.total_steps}"
            bars.show("runs", done, total, detail)
            if report.row is not None:
                perplexity = report.row.get("figures", {}).get("perplexity")
                validation = "" if perplexity is None else f"  validation perplexity {perplexity:.1f}"
                bars.print_line(f"{detail}  loss {report.row['loss']:.4f}{validation}")
            if should_stop():
                raise KeyboardInterrupt(f"stopped in run {number + 1} of {total}, and saved")


def print_perplexities(result: dict[str, Any]) -> None:
    """Print the perplexity of each network, below a unigram baseline."""
    unigram = result["unigram"]
    rows = [["word frequencies", f"{unigram['perplexity']:.1f}", f"{unigram['known words']:.1f}", "", "", ""]]
    for row in result["rows"]:
        deviation = f" ± {row['std']:.1f}" if len(result["seeds"]) > 1 else ""
        perplexities = [f"{row['perplexity']:.1f}{deviation}", f"{row['known words']:.1f}"]
        sizes = [f"{row['weights']:,}", f"{row['words_read']:,}", f"{row['seconds']:.0f}"]
        rows.append([row["recipe"], *perplexities, *sizes])
    headers = ["network", ">perplexity", ">known words", ">weights", ">words read", ">seconds"]
    caption = (
        f"{result['vocab']:,} words of vocabulary; {unigram['unknown %']:.1f} % of the words asked "
        f'for are not in it and count as one word, "unknown"; at most {result["length"]} are read'
    )
    print_table(headers, rows, title="perplexity a word, test documents", caption=caption)
