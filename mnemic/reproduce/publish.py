"""Put a trained network into the package: nothing but what answering needs, and a card.

What only training needs (the optimiser's state, the log) is left out, and weights are stored in 16
bits, or matrices in 8. The card's figures are measured after that, on the network as it will be
loaded.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from re import fullmatch
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch

from mnemic import __version__
from mnemic.checkpoint.atomic_files import digest, read_json, write_json
from mnemic.checkpoint.atomic_files import replace as replace_folder
from mnemic.checkpoint.folder import MANIFEST, Checkpoint, Progress, load, save
from mnemic.checkpoint.shipped import CARD, LARGEST, MOST, WEIGHTS, size_of
from mnemic.data import DATASETS, TEXTS
from mnemic.data.babi.batches import Stories
from mnemic.evaluate.error_rate import mean, task_errors
from mnemic.evaluate.text_metrics import figures
from mnemic.recipe import ConfigError, Recipe, build, override
from mnemic.reproduce.faithfulness import read_network
from mnemic.train.distributed import start_processes

NAME = r"[a-z0-9]+(-[a-z0-9]+)*"
Precision = Literal["float16", "float32", "int8"]
FOLDERS = ("data.folder", "data.tokenizer.folder", "model.start")  # a path here says nothing there


def ship(
    run: Path,
    name: str,
    *,
    command: str,
    into: Path = WEIGHTS,
    precision: Precision = "float16",
    device: str = "cpu",
    shares: str = "",
) -> dict[str, Any]:
    """Copy the finished ``run`` to ``into/name``, test it there on ``device``, return its card.

    ``command`` is what was typed to train it: the card repeats it, so that anyone can. ``shares``
    is a shipped network that it began with: weights that were fixed are not stored again.
    """
    whole = load(run)
    if not whole.progress.done:
        raise ConfigError(f"{run} is not trained to the end; finish it before it is shipped")
    if not fullmatch(NAME, name):
        raise ConfigError(f"a network's name is a word such as entnet-babi, not {name!r}")
    with TemporaryDirectory() as spare:
        place = Path(spare) / name
        save(place, stripped(whole, precision), small=precision == "int8", shares=shares)
        own = {"name": name, "precision": precision} | card_of(load(place), whole, command, device)
        write_json(place / CARD, own)
        manifest = read_json(place / MANIFEST)
        manifest["files"][CARD] = digest(place / CARD)
        write_json(place / MANIFEST, manifest)
        if (alone := size_of(place)) > LARGEST:
            raise ConfigError(f"{name} has {alone} bytes, over {LARGEST}; try precision int8")
        total = size_of(into) - size_of(into / name) + alone
        if total > MOST:
            raise ConfigError(f"with {name} the shipped networks have {total} bytes, over {MOST}")
        put(place, into / name)
    return own


def put(made: Path, place: Path) -> None:
    """Copy a finished folder to its place, readable for all; until then the old one stays."""
    beside = place.with_name(f".{place.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(made, beside, copy_function=shutil.copyfile)
    replace_folder(beside, place)


def stripped(whole: Checkpoint, precision: Precision) -> Checkpoint:
    """What answering needs. Of the log its last line is left, with the time of all of them."""
    history = whole.progress.history
    seconds = round(sum(row["seconds"] for row in history), 2)
    last = [history[-1] | {"seconds": seconds}] if history else []
    recipe = whole.recipe
    for key in FOLDERS:
        if folder := value_of(recipe, key):
            recipe = override(recipe, key, Path(folder).name)
    halved = torch.float16 if precision == "float16" else torch.float32
    return replace(
        whole,
        recipe=recipe,
        network=whole.network.to(halved),
        progress=Progress(phase=whole.progress.phase, done=True, history=last),
        state={},
    )


def value_of(recipe: Recipe, key: str) -> Any:
    """What a recipe says at a dotted key; None where it says nothing."""
    found: Any = recipe
    for name in key.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def card_of(
    shipped: Checkpoint, trained: Checkpoint, command: str, device: str = "cpu"
) -> dict[str, Any]:
    """What can be said of a network: its data, command and seed, and how it does."""
    source = build(DATASETS, trained.recipe["data"])
    place = start_processes(device)
    shipped.network.to(place)
    texts = shipped.recipe["data"]["kind"] in TEXTS
    return {
        "data": shipped.recipe["data"],
        "command": command,
        "seed": shipped.seed,
        "mnemic": __version__,
        "parameters": sum(weight.numel() for weight in shipped.network.parameters()),
        "seconds": round(sum(row["seconds"] for row in shipped.progress.history), 1),
    } | (of_texts if texts else of_stories)(shipped, source, place)


def of_texts(shipped: Checkpoint, source: Any, device: torch.device) -> dict[str, Any]:
    """The figures of a network that reads texts."""
    asked = source.asked("test", shipped.tokenizer, shipped.labels)
    return {"texts": len(asked), "figures": figures(shipped.network, asked.to(device))}


def of_stories(shipped: Checkpoint, source: Any, device: torch.device) -> dict[str, Any]:
    """The errors of a network with a memory, and what it reads."""
    asked = source.asked("test", shipped.tokenizer).to(device)
    errors = task_errors(shipped.network, asked)
    proofs = read_network(shipped.network, asked) if isinstance(asked, Stories) else {}
    return {
        "memory": shipped.recipe["model"]["memory"]["kind"],
        "questions": len(asked),
        "mean_error": mean(list(errors.values())),
        "per_task": {str(task): error for task, error in errors.items()},
        "evidence": {str(task): own for task, own in proofs.items()},
    }
