"""``mnemic inspect``: describe and verify a checkpoint, or list the slots of a memory."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from mnemic.checkpoint import shipped
from mnemic.cli.options import JsonOption
from mnemic.cli.render.console import format_bytes, format_duration, format_percent, get_stdout, print_json
from mnemic.cli.text.show import inspect_state

MAX_LOG_ROWS = 5


def inspect(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR|FILE", help="A run's folder, a checkpoint, a shipped network, or a memory file."),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every slot of a memory, not only the most salient.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Describe a checkpoint: recipe, sizes, weights, progress; and verify its files.

    Without a folder, list the trained networks that ship with the package.

    Example: mnemic inspect runs/memn2n

    To list the slots of a memory file: mnemic inspect notes.mem
    """
    if folder is not None and folder.is_file():
        inspect_state(folder, show_all=show_all, as_json=as_json)
        return
    if show_all:
        raise ValueError("--all is for the slots of a memory: give its file, such as notes.mem")
    if folder is None:
        list_shipped(as_json)
        return
    report = describe_checkpoint(folder)
    if as_json:
        print_json(report)
    else:
        print_report(report)


def list_shipped(as_json: bool) -> None:
    """Print the networks that ship with the package."""
    cards = [shipped.read_card(name) for name in shipped.list_networks()]
    if as_json:
        print_json({"shipped": cards})
        return
    table = Table("network", "what it answers", "size", header_style="bold")
    table.columns[2].justify = "right"
    for card in cards:
        table.add_row(
            f"[bold]{escape(card['name'])}",
            shipped.summarize_card(card),
            format_bytes(shipped.size_in_bytes(shipped.WEIGHTS / card["name"])),
        )
    screen = get_stdout()
    screen.print(table)
    screen.print(
        "to ask one about a story: mnemic ask --model NAME --story FILE QUESTION; mnemic ask uses "
        "`reader` for your documents",
        style="dim",
    )


def describe_checkpoint(folder: Path) -> dict[str, Any]:
    """Collect the facts of a checkpoint; raise if a file is missing or changed."""
    from mnemic.checkpoint.folder import find_checkpoint, load_checkpoint
    from mnemic.files import read_json

    checkpoint_folder, checkpoint = find_checkpoint(folder), load_checkpoint(folder)
    progress = checkpoint.progress
    card = checkpoint_folder / shipped.CARD
    return {
        "checkpoint": str(checkpoint_folder),
        "whole": True,  # or loading would have raised
        "written_by": f"mnemic {read_json(checkpoint_folder / 'manifest.json').get('mnemic')}",
        "seed": checkpoint.seed,
        "sizes": dict(checkpoint.sizes),
        "parameters": count_parameters(checkpoint.network),
        "progress": {
            "done": progress.done,
            "phase": progress.phase,
            "phases": len(checkpoint.recipe.get("phases") or [{}]),
            "step": progress.step,
            "seconds": round(sum(row["seconds"] for row in progress.history), 1),
        },
        "log": progress.history[-MAX_LOG_ROWS:],
        "files": {path.name: path.stat().st_size for path in sorted(checkpoint_folder.iterdir())},
        "recipe": checkpoint.recipe,
        "card": read_json(card) if card.is_file() else None,
    }


def count_parameters(network: Any) -> dict[str, int]:
    """Count the parameters of each submodule; tied parameters count once."""
    counts = {name: 0 for name, _ in network.named_children()}
    for name, weight in network.named_parameters():
        counts[name.partition(".")[0]] += weight.numel()
    return counts


def print_report(report: dict[str, Any]) -> None:
    """Print the description of a checkpoint."""
    from mnemic.recipe.to_toml import format_toml

    screen, progress = get_stdout(), report["progress"]
    parts = ", ".join(f"{name} {count:,}" for name, count in report["parameters"].items())
    stopped_at = f"stopped in phase {progress['phase'] + 1} of {progress['phases']}, step {progress['step']}"
    facts = {
        "checkpoint": report["checkpoint"],
        "files": "whole: every SHA-256 is the manifest's",
        "written by": report["written_by"],
        "progress": "trained to the end" if progress["done"] else stopped_at,
        "trained for": format_duration(progress["seconds"]),
        "seed": str(report["seed"]),
        "sizes": ", ".join(f"{name} {to_count(size)}" for name, size in report["sizes"].items()),
        "weights": f"{sum(report['parameters'].values()):,} ({parts})",
    }
    if card := report["card"]:
        facts |= {"tested": shipped.summarize_card(card), "trained by": card["command"]}
    for name, value in facts.items():
        screen.print(f"{name:<12} {value}", markup=False, soft_wrap=True)
    screen.print(f"\n{format_toml(report['recipe'])}", markup=False, soft_wrap=True)
    screen.print(build_files_table(report["files"]))
    if report["log"]:
        screen.print(build_log_table(report["log"]))


def to_count(size: int | list[Any]) -> int:
    """Return the length of a list, or the number itself."""
    return len(size) if isinstance(size, list) else size


def build_files_table(files: dict[str, int]) -> Table:
    """Build a table of file names and sizes."""
    table = Table("file", "size", header_style="bold")
    table.columns[1].justify = "right"
    for name, count in files.items():
        table.add_row(name, format_bytes(count))
    return table


def build_log_table(log: list[dict[str, Any]]) -> Table:
    """Build a table of the last rows of the training log."""
    table = Table("phase", "epoch", "step", "loss", "rate", "validation", header_style="bold", title="log")
    for row in log:
        numbers = (str(row[name]) for name in ("phase", "epoch", "step"))
        perplexity = row.get("figures", {}).get("perplexity")
        validation = format_percent(row["validation"]) if perplexity is None else f"perplexity {perplexity:.1f}"
        table.add_row(*numbers, f"{row['loss']:.4f}", f"{row['rate']:g}", validation)
    for column in table.columns:
        column.justify = "right"
    return table
