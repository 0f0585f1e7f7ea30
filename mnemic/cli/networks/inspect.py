"""``mnemic inspect``: what a checkpoint is, and whether it is whole; or what a memory holds."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from mnemic.checkpoint import shipped
from mnemic.cli.options import AsJson
from mnemic.cli.render.console import duration, out, percent, print_json, size
from mnemic.cli.text.show import inspect_state

ROWS = 5  # of the log


def inspect(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR|FILE",
            help="A run's folder, a checkpoint, a shipped network, or a memory's file.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every slot of a memory, not those worth most.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a checkpoint is: recipe, sizes, weights, progress; and check every file.

    Without a folder it lists the trained networks that came with the package.

    Example: mnemic inspect runs/memn2n

    What a memory that was read into holds, sentence by sentence: mnemic inspect notes.mem
    """
    if folder is not None and folder.is_file():
        inspect_state(folder, everything=everything, as_json=as_json)
        return
    if everything:
        raise ValueError("--all is for the slots of a memory: give its file, such as notes.mem")
    if folder is None:
        list_shipped(as_json)
        return
    report = describe(folder)
    if as_json:
        print_json(report)
    else:
        tell(report)


def list_shipped(as_json: bool) -> None:
    """The networks that can be asked at once."""
    cards = [shipped.card(name) for name in shipped.names()]
    if as_json:
        print_json({"shipped": cards})
        return
    table = Table("network", "what it answers", "size", header_style="bold")
    table.columns[2].justify = "right"
    for own in cards:
        table.add_row(
            f"[bold]{escape(own['name'])}",
            shipped.brief(own),
            size(shipped.size_of(shipped.WEIGHTS / own["name"])),
        )
    screen = out()
    screen.print(table)
    screen.print(
        "to ask one about a story: mnemic ask --model NAME --story FILE QUESTION; `reader` is what "
        "mnemic ask uses for what is remembered",
        style="dim",
    )


def describe(folder: Path) -> dict[str, Any]:
    """Everything about a checkpoint; a file that is missing or changed raises."""
    from mnemic.checkpoint.atomic_files import read_json
    from mnemic.checkpoint.folder import load, locate

    place, checkpoint = locate(folder), load(folder)
    progress = checkpoint.progress
    card = place / shipped.CARD
    return {
        "checkpoint": str(place),
        "whole": True,  # or loading would have raised
        "written_by": f"mnemic {read_json(place / 'manifest.json').get('mnemic')}",
        "seed": checkpoint.seed,
        "sizes": dict(checkpoint.sizes),
        "parameters": weights_by_part(checkpoint.network),
        "progress": {
            "done": progress.done,
            "phase": progress.phase,
            "phases": len(checkpoint.recipe.get("phases") or [{}]),
            "step": progress.step,
            "seconds": round(sum(row["seconds"] for row in progress.history), 1),
        },
        "log": progress.history[-ROWS:],
        "files": {path.name: path.stat().st_size for path in sorted(place.iterdir())},
        "recipe": checkpoint.recipe,
        "card": read_json(card) if card.is_file() else None,
    }


def weights_by_part(network: Any) -> dict[str, int]:
    """How many numbers each part has learnt; those of tied parts are counted once."""
    counts = {name: 0 for name, _ in network.named_children()}
    for name, weight in network.named_parameters():
        counts[name.partition(".")[0]] += weight.numel()
    return counts


def tell(report: dict[str, Any]) -> None:
    from mnemic.recipe.to_toml import toml_of

    screen, progress = out(), report["progress"]
    parts = ", ".join(f"{part} {count:,}" for part, count in report["parameters"].items())
    where = (
        f"stopped in phase {progress['phase'] + 1} of {progress['phases']}, step {progress['step']}"
    )
    facts = {
        "checkpoint": report["checkpoint"],
        "files": "whole: every SHA-256 is the manifest's",
        "written by": report["written_by"],
        "progress": "trained to the end" if progress["done"] else where,
        "trained for": duration(progress["seconds"]),
        "seed": str(report["seed"]),
        "sizes": ", ".join(f"{name} {counted(size)}" for name, size in report["sizes"].items()),
        "weights": f"{sum(report['parameters'].values()):,} ({parts})",
    }
    if card := report["card"]:
        facts |= {"tested": shipped.brief(card), "trained by": card["command"]}
    for name, value in facts.items():
        screen.print(f"{name:<12} {value}", markup=False, soft_wrap=True)
    screen.print(f"\n{toml_of(report['recipe'])}", markup=False, soft_wrap=True)
    screen.print(files_table(report["files"]))
    if report["log"]:
        screen.print(log_table(report["log"]))


def counted(size: int | list[Any]) -> int:
    """A size that is a list is told by its length."""
    return len(size) if isinstance(size, list) else size


def files_table(files: dict[str, int]) -> Table:
    table = Table("file", "size", header_style="bold")
    table.columns[1].justify = "right"
    for name, count in files.items():
        table.add_row(name, size(count))
    return table


def log_table(log: list[dict[str, Any]]) -> Table:
    table = Table(
        "phase", "epoch", "step", "loss", "rate", "validation", header_style="bold", title="log"
    )
    for row in log:
        numbers = (str(row[name]) for name in ("phase", "epoch", "step"))
        running = row.get("figures", {}).get("perplexity")
        held = percent(row["validation"]) if running is None else f"perplexity {running:.1f}"
        table.add_row(*numbers, f"{row['loss']:.4f}", f"{row['rate']:g}", held)
    for column in table.columns:
        column.justify = "right"
    return table
