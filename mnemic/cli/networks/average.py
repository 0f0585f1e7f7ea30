"""``mnemic average`` and ``mnemic ship``: make one network of several runs, and publish it."""

from pathlib import Path
from typing import Annotated, Literal

from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.cli.declare import Argument, Option
from mnemic.cli.options import JsonOption, resolve_device
from mnemic.cli.render.console import print_json, print_text


def average(
    runs: Annotated[list[Path], Argument("RUNS", "Folders of finished runs.")],
    folder: Annotated[Path, Option("--out DIR", "Folder for the average.")],
    as_json: JsonOption = False,
) -> None:
    """Average the weights of several finished runs of one recipe.

    Example: mnemic average runs/one runs/two --out runs/mean
    """
    from mnemic.checkpoint.average import average_checkpoints

    average_checkpoints(runs, folder)
    if as_json:
        print_json({"out": str(folder), "runs": list(map(str, runs))})
    else:
        print_text(f"{folder}  the mean of {len(runs)} runs")


def ship(
    run: Annotated[Path, Argument("RUN", "Folder of a finished run.")],
    name: Annotated[str, Argument("NAME", "Name of the network, for --model NAME.")],
    command: Annotated[str, Option("--command", "The command that trained it.")],
    precision: Annotated[
        Literal["float16", "float32", "int8"], Option("--precision", "Format of its weights.")
    ] = "float16",
    device: Annotated[str, Option("--device", "Device of its test: cpu, cuda or auto.")] = "cpu",
    shares: Annotated[str, Option("--shares NAME", "Shipped network that it shares weights with.")] = "",
    folder: Annotated[Path, Option("--into DIR", "Target folder, if not the package's.", "the package's")] = WEIGHTS,
    as_json: JsonOption = False,
) -> None:
    """Add a finished run to the package's networks, and print its card.

    Example: mnemic ship runs/reader reader --precision int8 --command "mnemic train reader"
    """
    from mnemic.reproduce.publish import publish_checkpoint

    card = publish_checkpoint(
        run, name, command=command, into=folder, precision=precision, device=resolve_device(device), shares=shares
    )
    print_json(card)
