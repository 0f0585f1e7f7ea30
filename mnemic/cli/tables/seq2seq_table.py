"""``mnemic table seq2seq``: noises of pre-training, and what they are good for."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_table, print_text
from mnemic.cli.render.format import format_duration
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.reproduce.seq2seq.table import Seq2SeqTable

DEFAULT_FOLDER = Path("runs/table-seq2seq")
DATA_HELP = "Folder of sequences that mnemic data sequences t5-pretrain made, packed or not."
SQUAD_HELP = "Folder of SQuAD: train….json and dev….json, also .gz."
MULTI30K_HELP = "Folder of Multi30k: train, val and test….en and .de, also .gz."
ROWS_HELP = "Of none, infilling, rotation …, separated by commas."
COLUMNS_HELP = "Of squad, questions and translation, separated by commas."


def compare_noises(
    data: Annotated[str, opt.Option("--data DIR", DATA_HELP)],
    squad: Annotated[str, opt.Option("--squad DIR", SQUAD_HELP, "none")] = "",
    multi30k: Annotated[str, opt.Option("--multi30k DIR", MULTI30K_HELP, "none")] = "",
    rows: Annotated[str, opt.Option("--rows", ROWS_HELP, "all")] = "",
    columns: Annotated[str, opt.Option("--columns", COLUMNS_HELP, "all whose files are there")] = "",
    seeds: Annotated[int, opt.Option("--seeds", "Runs per network, from seed 0 on.", minimum=1)] = 1,
    sets: opt.Sets = None,
    device: opt.Device = "auto",
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the runs and the table.")] = DEFAULT_FOLDER,
) -> None:
    """Pre-train encoder-decoders on noises; compare them on SQuAD, questions and translation.

    Each row pre-trains on one list of noises and is fine-tuned on each task; rows from scratch
    stand beside. --set model.width=64 is for all networks, --set squad.train.epochs=2 for one
    stage: pretraining, squad, questions or translation. Generated texts are scored with
    mnemic[metrics]. An interrupted table resumes when the command is repeated.

    Example: mnemic table seq2seq --data runs/sequences --squad squad --multi30k multi30k
    """
    from mnemic.reproduce.seq2seq.report import save_table
    from mnemic.reproduce.seq2seq.table import Seq2SeqTable

    table = Seq2SeqTable(
        data=data, squad=squad, multi30k=multi30k, rows=split_names(rows), columns=split_names(columns),
        seeds=seeds, sets=sets or [], device=opt.resolve_device(device),
    )  # fmt: skip
    train_with_progress(table, folder)
    result = save_table(table, folder)
    print_json(result)
    print_noises(result)
    for note in result["notes"]:
        print_text(note)
    print_text(f"{format_duration(result['seconds'])} of training on {result['hardware']}")
    print_text(f"kept in {folder / 'table.json'}", style="dim")


def split_names(text: str) -> list[str]:
    """Split names at commas."""
    return [name for name in text.replace(" ", "").split(",") if name]


def train_with_progress(table: "Seq2SeqTable", folder: Path) -> None:
    """Train the missing cells with a progress bar; Ctrl-C saves between two steps."""
    from mnemic.reproduce.seq2seq.table import fill_table

    with defer_interrupts() as should_stop, ProgressBars() as bars, closing(fill_table(table, folder)) as steps:
        for step in steps:
            bars.show("networks", step.number + step.fraction, step.total, f"{step.cell}, {step.detail}")
            if should_stop():
                raise KeyboardInterrupt(f"stopped in network {step.number + 1} of {step.total}, and saved")


def print_noises(result: dict[str, Any]) -> None:
    """Print a table per task, one row per list of noises."""
    from mnemic.reproduce.seq2seq.rows import COLUMNS

    for column, metrics in result["columns"].items():
        rows = []
        for row in result["rows"]:
            values = row["columns"][column]["metrics"]
            rows.append([row["title"], *(format_score(values.get(metric), len(result["seeds"])) for metric in metrics)])
        caption = "test split; texts by beam search with 4 beams" if "perplexity" in metrics else "test split"
        headers = ["pre-training", *(f">{metric}" for metric in metrics)]
        print_table(headers, rows, title=COLUMNS[column].title, caption=caption)


def format_score(score: dict[str, float] | None, num_seeds: int) -> str:
    """Format a metric, with its deviation over several seeds."""
    if score is None:
        return ""
    return f"{score['mean']:.1f}" + (f" ± {score['std']:.1f}" if num_seeds > 1 else "")
