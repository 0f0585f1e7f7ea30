"""``mnemic average`` and ``mnemic ship``: make one network of several runs, and publish it."""

import json
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_text

SOURCE_HELP = "What it was made from: 'ROLE: NAME (LICENSE)'; once or more."
Precision: TypeAlias = Literal["float16", "float32", "int8"]


def average(
    runs: Annotated[list[Path], opt.Argument("RUNS", "Folders of finished runs.")],
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the average.")],
) -> None:
    """Average the weights of several finished runs of one recipe.

    Example: mnemic average runs/one runs/two --out runs/mean
    """
    from mnemic.checkpoint.average import average_checkpoints

    average_checkpoints(runs, folder)
    print_json({"out": str(folder), "runs": runs})
    print_text(f"{folder}  the mean of {len(runs)} runs")


def ship(
    run: Annotated[Path, opt.Argument("RUN", "Folder of a finished run.")],
    name: Annotated[str, opt.Argument("NAME", "Name of the network, for --model NAME.")],
    command: Annotated[str, opt.Option("--command", "The command that trained it.")],
    sources: Annotated[list[str] | None, opt.Option("--source TEXT", SOURCE_HELP)] = None,
    precision: Annotated[Precision, opt.Option("--precision", "Format of its weights.")] = "float16",
    device: Annotated[str, opt.Option("--device", "Device of its test: cpu, cuda or auto.")] = "cpu",
    shares: Annotated[str, opt.Option("--shares NAME", "Shipped network that it shares weights with.")] = "",
    folder: Annotated[Path, opt.Option("--into DIR", "Folder of all networks.", "the package's")] = WEIGHTS,
) -> None:
    """Add a finished run to the package's networks, and print its card.

    Example: mnemic ship runs/reader reader --precision int8 --command "mnemic train reader"
    --source "training data: SQuAD 1.1 (CC-BY-SA-4.0)"
    """
    from mnemic.reproduce.publish import publish_checkpoint

    device = opt.resolve_device(device)
    card = publish_checkpoint(
        run,
        name,
        command=command,
        sources=sources or (),
        into=folder,
        precision=precision,
        device=device,
        shares=shares,
    )
    print_json(card)
    print_text(json.dumps(card, indent=1))
