"""Publish a trained network in the package: only what inference needs, and a model card.

Optimizer state and training log are left out; weights are stored in 16 bits, or matrices in 8 bits.
The card's metrics are measured on the network as it will be loaded.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from re import fullmatch
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch

from mnemic import __version__
from mnemic.checkpoint.atomic_files import hash_file, replace_folder, write_json
from mnemic.checkpoint.folder import MANIFEST, Checkpoint, load_checkpoint, save_checkpoint
from mnemic.checkpoint.shipped import CARD, MAX_NETWORK_BYTES, MAX_TOTAL_BYTES, WEIGHTS, size_in_bytes
from mnemic.data import DATASETS
from mnemic.evaluate.by_task import mean_error
from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.files import read_json
from mnemic.recipe import ConfigError, Recipe, build, kind_name, override
from mnemic.reproduce.faithfulness import measure_evidence
from mnemic.train.distributed import init_distributed

LICENSE = "Apache-2.0"  # of shipped networks, as of mnemic
SOURCE_PATTERN = r"(?P<role>[^:]*\S): *(?P<name>\S.*\S) \((?P<license>[^()]+)\)"
SOURCE_HINT = "ROLE: NAME (LICENSE), such as 'training data: SQuAD 1.1 (CC-BY-SA-4.0)'"
NAME_PATTERN = r"[a-z0-9]+(-[a-z0-9]+)*"
Precision = Literal["float16", "float32", "int8"]
# Keys of paths in a recipe: only the last part of a path is published.
PATH_KEYS = (
    "data.folder", "data.tokenizer.folder", "model.init_from", "model.init_vectors",
    "teacher.folder", "teacher.data.folder", "teacher.model.init_from",
)  # fmt: skip


def publish_checkpoint(
    run: Path,
    name: str,
    *,
    command: str,
    sources: Sequence[str],
    into: Path = WEIGHTS,
    precision: Precision = "float16",
    device: str = "cpu",
    shares: str = "",
) -> dict[str, Any]:
    """Publish the finished ``run`` as ``into/name``, evaluate it on ``device``, return its card.

    ``command`` is the command that trained it, for the card, and ``sources`` what it was made from,
    such as ``training data: SQuAD 1.1 (CC-BY-SA-4.0)``. ``shares`` is a shipped network that
    training started from: weights that were frozen are not stored again.
    """
    origin = {"license": LICENSE, "sources": parse_sources(sources)}
    checkpoint = load_checkpoint(run)
    if not checkpoint.progress.done:
        raise ConfigError(f"{run} is not trained to the end; finish it before it is shipped")
    if not fullmatch(NAME_PATTERN, name):
        raise ConfigError(f"a network's name is a word such as entnet-babi, not {name!r}")
    with TemporaryDirectory() as temporary_folder:
        folder = Path(temporary_folder) / name
        stripped = strip_checkpoint(checkpoint, precision)
        save_checkpoint(folder, stripped, quantize=precision == "int8", share_with=shares)
        measured = build_card(load_checkpoint(folder), checkpoint, command, device)
        card = {"name": name, **origin, "precision": precision, **measured}
        write_json(folder / CARD, card)
        manifest = read_json(folder / MANIFEST)
        manifest["files"][CARD] = hash_file(folder / CARD)
        write_json(folder / MANIFEST, manifest)
        if (num_bytes := size_in_bytes(folder)) > MAX_NETWORK_BYTES:
            raise ConfigError(f"{name} has {num_bytes} bytes, over {MAX_NETWORK_BYTES}; try precision int8")
        total_bytes = size_in_bytes(into) - size_in_bytes(into / name) + num_bytes
        if total_bytes > MAX_TOTAL_BYTES:
            raise ConfigError(f"with {name} the shipped networks have {total_bytes} bytes, over {MAX_TOTAL_BYTES}")
        install_folder(folder, into / name)
    return card


def parse_sources(sources: Sequence[str]) -> list[dict[str, str]]:
    """Parse what a network was made from: ``ROLE: NAME (LICENSE)`` each, at least one.

    >>> parse_sources(["training data: bAbI tasks v1.2 (CC-BY-3.0)"])
    [{'name': 'bAbI tasks v1.2', 'role': 'training data', 'license': 'CC-BY-3.0'}]
    """
    if not sources:
        raise ConfigError(f"a network that is shipped says what it was made from: {SOURCE_HINT}")
    parsed = []
    for source in sources:
        match = fullmatch(SOURCE_PATTERN, source)
        if match is None:
            raise ConfigError(f"a source is {SOURCE_HINT}, not {source!r}")
        parsed.append({"name": match["name"], "role": match["role"], "license": match["license"]})
    return parsed


def install_folder(source: Path, target: Path) -> None:
    """Copy a folder to ``target`` with default permissions, replacing an old one atomically."""
    temporary_path = target.with_name(f".{target.name}.new")
    shutil.rmtree(temporary_path, ignore_errors=True)
    shutil.copytree(source, temporary_path, copy_function=shutil.copyfile)
    replace_folder(temporary_path, target)


def strip_checkpoint(checkpoint: Checkpoint, precision: Precision) -> Checkpoint:
    """Remove from a checkpoint what only training needs.

    Of the log the last row is kept, with the total time.
    """
    rows = checkpoint.progress.history
    seconds = round(sum(row["seconds"] for row in rows), 2)
    last_row = [rows[-1] | {"seconds": seconds}] if rows else []
    recipe = checkpoint.recipe
    for key in PATH_KEYS:
        if folder := recipe_value_of(recipe, key):
            names = [Path(path).name for path in ([folder] if isinstance(folder, str) else folder)]
            recipe = override(recipe, key, names[0] if isinstance(folder, str) else names)
    dtype = torch.float16 if precision == "float16" else torch.float32
    return replace(
        checkpoint,
        recipe=recipe,
        network=checkpoint.network.to(dtype),
        progress=replace(checkpoint.progress, history=last_row),
        state={},
    )


def recipe_value_of(recipe: Recipe, key: str) -> Any:
    """Return a recipe's value at a dotted key, or None."""
    value: Any = recipe
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def build_card(shipped: Checkpoint, trained: Checkpoint, command: str, device: str = "cpu") -> dict[str, Any]:
    """Build a network's card: data, command, seed, size, training time and metrics."""
    source = build(DATASETS, trained.recipe["data"])
    torch_device = init_distributed(device)
    shipped.network.to(torch_device)
    measure = measure_texts if source.layout == "windows" else measure_stories
    return {
        "data": shipped.recipe["data"],
        "command": command,
        "seed": shipped.seed,
        "mnemic": __version__,
        "parameters": sum(weight.numel() for weight in shipped.network.parameters()),
        "seconds": round(sum(row["seconds"] for row in shipped.progress.history), 1),
    } | measure(shipped, source, torch_device)


def measure_texts(shipped: Checkpoint, data_source: Any, device: torch.device) -> dict[str, Any]:
    """Compute the test metrics of a network that reads texts."""
    dataset = data_source.dataset("test", shipped.tokenizer, shipped.labels)
    return {"texts": len(dataset), "figures": compute_metrics(shipped.network, dataset.to(device))}


def measure_stories(shipped: Checkpoint, data_source: Any, device: torch.device) -> dict[str, Any]:
    """Compute the test errors of a network with a memory, and measure its evidence."""
    dataset = data_source.dataset("test", shipped.tokenizer).to(device)
    errors = compute_task_errors(shipped.network, dataset)
    evidence = measure_evidence(shipped.network, dataset) if data_source.reads_stories else {}
    return {
        "memory": kind_name(shipped.recipe["model"]["memory"]),
        "questions": len(dataset),
        "mean_error": mean_error(list(errors.values())),
        "per_task": {str(task): error for task, error in errors.items()},
        "evidence": {str(task): percentages for task, percentages in evidence.items()},
    }
