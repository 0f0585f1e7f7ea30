"""``mnemic inspect``: describe and verify a checkpoint or vectors, or list what ships."""

from pathlib import Path
from typing import Annotated, Any

from mnemic.checkpoint import shipped
from mnemic.cli import options as opt
from mnemic.cli.networks.inspect_layers import inspect_layers
from mnemic.cli.networks.load import load_network
from mnemic.cli.render.console import Styled, print_json, print_table, print_text
from mnemic.cli.render.format import format_bytes, format_duration, format_percent
from mnemic.cli.text_io import STDIN, read_text
from mnemic.cli.vectors.describe import describe_vectors
from mnemic.recipe.to_toml import format_toml

MAX_LOG_ROWS = 5
ASK_HINT = "to ask one about a story: mnemic story ask --model NAME --story FILE QUESTION"
READER_HINT = "mnemic ask finds passages by `reader-small`, and reads them by `reader`"


def inspect(
    folder: Annotated[Path | None, opt.Argument("DIR", opt.MODEL_HELP)] = None,
    layers: Annotated[
        str | None, opt.Option("--layers TEXT", "How much each layer changes the states of this text; - reads it.")
    ] = None,
    compare: Annotated[
        list[Path] | None, opt.Option("--compare DIR", "Another network for --layers; may be repeated.")
    ] = None,
    plot: Annotated[
        Path | None, opt.Option("--plot FILE", "Plot what --layers shows into a .png, .svg or .pdf file.")
    ] = None,
) -> None:
    """Describe a checkpoint: recipe, sizes, weights, progress; and verify its files.

    The folder may also hold word vectors. Without a folder, list the trained networks that ship
    with the package. With --layers, show instead how far each layer of the encoder moves the states
    of a text: the L2 distance and the cosine of its input and output, averaged over the tokens; DIR
    may then be a Hugging Face folder.

    Example: mnemic inspect runs/memn2n

    Example: mnemic inspect reader --layers "The lease ends in June." --plot layers.svg
    """
    if layers is None and (plot or compare):
        raise ValueError("--plot and --compare show layers: add --layers and a text")
    if folder is None and layers is not None:
        raise ValueError("--layers needs a network: mnemic inspect DIR --layers TEXT")
    if folder is None:
        print_cards()
        return
    if layers is not None:
        inspect_layers([folder, *(compare or [])], read_text(STDIN) if layers == STDIN else layers, plot)
        return
    from mnemic.checkpoint.vectors import is_vector_folder

    if is_vector_folder(folder):
        describe_vectors(folder)
        return
    report = describe_checkpoint(folder)
    print_json(report)
    print_report(report)


def print_cards() -> None:
    """Print the networks that ship with the package."""
    cards, rows = [shipped.read_card(name) for name in shipped.list_networks()], []
    print_json({"shipped": cards})
    for card in cards:
        size = format_bytes(shipped.size_in_bytes(shipped.WEIGHTS / card["name"]))
        rows.append([Styled(card["name"], "bold"), shipped.summarize_card(card), size])
    print_table(["network", "what it answers", ">size"], rows)
    print_text(f"{ASK_HINT}; {READER_HINT}", style="dim")


def describe_checkpoint(folder: Path) -> dict[str, Any]:
    """Collect the facts of a checkpoint; raise if a file is missing or changed."""
    from mnemic.checkpoint.folder import find_checkpoint
    from mnemic.files import read_json

    checkpoint_folder, (checkpoint, _) = find_checkpoint(folder), load_network(folder)
    progress, card = checkpoint.progress, checkpoint_folder / shipped.CARD
    parameters = {name: 0 for name, _ in checkpoint.network.named_children()}
    for name, weight in checkpoint.network.named_parameters():  # tied ones count once
        parameters[name.partition(".")[0]] += weight.numel()
    num_phases = len(checkpoint.recipe.get("phases") or [{}])
    position = {"step": progress.step, "seconds": round(sum(row["seconds"] for row in progress.history), 1)}
    return {
        "checkpoint": str(checkpoint_folder),
        "whole": True,  # or loading would have raised
        "written_by": f"mnemic {read_json(checkpoint_folder / 'manifest.json').get('mnemic')}",
        "seed": checkpoint.seed,
        "sizes": dict(checkpoint.sizes),
        "parameters": parameters,
        "progress": {"done": progress.done, "phase": progress.phase, "phases": num_phases} | position,
        "log": progress.history[-MAX_LOG_ROWS:],
        "files": {path.name: path.stat().st_size for path in sorted(checkpoint_folder.iterdir())},
        "recipe": checkpoint.recipe,
        "card": read_json(card) if card.is_file() else None,
    }


def print_report(report: dict[str, Any]) -> None:
    """Print the description of a checkpoint."""
    progress = report["progress"]
    parts = ", ".join(f"{name} {count:,}" for name, count in report["parameters"].items())
    stopped_at = f"stopped in phase {progress['phase'] + 1} of {progress['phases']}, step {progress['step']}"
    sizes = {name: len(size) if isinstance(size, list) else size for name, size in report["sizes"].items()}
    facts = {
        "checkpoint": report["checkpoint"],
        "files": "whole: every SHA-256 is the manifest's",
        "written by": report["written_by"],
        "progress": "trained to the end" if progress["done"] else stopped_at,
        "trained for": format_duration(progress["seconds"]),
        "seed": str(report["seed"]),
        "sizes": ", ".join(f"{name} {size}" for name, size in sizes.items()),
        "weights": f"{sum(report['parameters'].values()):,} ({parts})",
    }
    if card := report["card"]:
        facts |= {"tested": shipped.summarize_card(card), "trained by": card["command"]}
    print_text("\n".join(f"{name:<12} {value}" for name, value in facts.items()))
    print_text(f"\n{format_toml(report['recipe'])}")
    print_table(["file", ">size"], [[name, format_bytes(count)] for name, count in report["files"].items()])
    if report["log"]:
        headers = [">phase", ">epoch", ">step", ">loss", ">rate", ">validation"]
        print_table(headers, map(format_log_row, report["log"]), title="log")


def format_log_row(row: dict[str, Any]) -> list[str]:
    """Format a row of the training log as cells."""
    perplexity = row.get("figures", {}).get("perplexity")
    validation = format_percent(row["validation"]) if perplexity is None else f"perplexity {perplexity:.1f}"
    numbers = [str(row[name]) for name in ("phase", "epoch", "step")]
    return [*numbers, f"{row['loss']:.4f}", f"{row['rate']:g}", validation]
