"""Save, find, verify and load checkpoints. A checkpoint is a folder of plain files:

    recipe.json            the recipe, the seed, the sizes the network was built from, the labels
    weights.safetensors    every weight once, except those it shares with a shipped network
    tokenizer.json         the vocabulary
    progress.json          where training stands: phase, step, history
    progress.safetensors   the state of the optimizer, carried state and dropout's random state
    manifest.json          format, version and the SHA-256 of all other files

The folder is written under another name and renamed when it is complete. Nothing is pickled.
Loading raises an error that names any file that is missing, truncated or changed.
"""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mnemic import __version__
from mnemic.checkpoint import shared_weights, shipped
from mnemic.checkpoint.atomic_files import CheckpointError, backup_path_of, hash_file, replace_folder, write_json
from mnemic.checkpoint.quantize import quantize_weights
from mnemic.checkpoint.tensors import read_tensors, write_tensors
from mnemic.encode.precision import Precision, prepare_for_inference
from mnemic.files import read_json
from mnemic.models import build_model, build_within
from mnemic.recipe import Recipe, join_words, override
from mnemic.recipe.bounds import is_too_deep
from mnemic.recipe.migrate import migrate_recipe, migrate_sizes, migrate_state
from mnemic.text import Tokenizer
from mnemic.text import load_tokenizer as load_tokenizer

NO_OVERRIDES: Mapping[str, Any] = {}
FORMAT = 2  # that is written
READABLE_FORMATS = (1, 2)  # 1: with the names of version 0.1, which ``recipe.migrate`` translates
RECIPE, WEIGHTS, TOKENIZER = "recipe.json", "weights.safetensors", "tokenizer.json"
MIN_SIZE_LIMIT = 1_000_000  # sizes of the data up to this need no weights
MAX_BUILD_FACTOR = 4  # numbers that building a network may take per stored one: drafts, masks
PROGRESS, STATE, MANIFEST = "progress.json", "progress.safetensors", "manifest.json"


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """How far a run has been trained, and its log so far."""

    phase: int = 0  # counted from 0; equal to the number of phases when training is over
    step: int = 0  # steps taken in this phase
    done: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)  # one row per logged epoch


@dataclass(frozen=True, kw_only=True, repr=False)
class Checkpoint:
    """A network, fully trained or not, with everything to use it or resume training."""

    recipe: Recipe
    seed: int
    sizes: Mapping[str, Any]
    tokenizer: Tokenizer
    network: Any  # one of the model classes of mnemic.models
    progress: TrainingProgress
    state: Mapping[str, Tensor]  # optimizer, random generator, carried state
    labels: tuple[str, ...] = ()  # names of the answers, in the order of their logits
    origin: str = field(default="", compare=False)  # the path or name it was loaded from

    def __repr__(self) -> str:
        stage = "trained" if self.progress.done else f"at step {self.progress.step} of phase {self.progress.phase}"
        name = f"{self.origin!r}: " if self.origin else ""
        return f"Checkpoint({name}{type(self.network).__name__}, {stage})"


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, quantize: bool = False, share_with: str = "") -> None:
    """Save a checkpoint to ``folder``, which it replaces atomically.

    ``quantize`` stores weights in 8 bits. ``share_with`` names a shipped network: weights that are
    equal to its weights are left out.
    """
    weights = weights_of(checkpoint.network)
    new_folder = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new_folder, ignore_errors=True)
    new_folder.mkdir(parents=True)
    metadata = {"recipe": checkpoint.recipe, "seed": checkpoint.seed, "sizes": checkpoint.sizes}
    if checkpoint.labels:
        metadata["labels"] = checkpoint.labels
    if share_with:
        shared_path = shared_weights.find_shipped_file(share_with, WEIGHTS)
        shared_folder = shared_path.parent
        stored, shared = read_stored_weights(shared_folder, read_metadata(shared_folder / RECIPE))
        unshared = shared_weights.drop_shared_weights(weights, shared | stored)
        digest = shared_weights.hash_tensors({name: weights[name] for name in weights if name not in unshared})
        metadata["shared"] = {"network": share_with, "weights": hash_file(shared_path), "tensors": digest}
        weights = unshared
    write_json(new_folder / RECIPE, metadata)
    write_tensors(new_folder / WEIGHTS, (quantize_weights if quantize else dict)(weights))
    checkpoint.tokenizer.save(new_folder)
    write_json(new_folder / PROGRESS, asdict(checkpoint.progress))
    write_tensors(new_folder / STATE, checkpoint.state)
    files = {path.name: hash_file(path) for path in sorted(new_folder.iterdir())}
    write_json(new_folder / MANIFEST, {"format": FORMAT, "mnemic": __version__, "files": files})
    replace_folder(new_folder, folder)


def load_checkpoint(
    folder: str | Path, *, precision: Precision = "float32", overrides: Mapping[str, Any] = NO_OVERRIDES
) -> Checkpoint:
    """Load a checkpoint from its folder, or from a run's folder, and verify every file.

    With a ``precision`` other than float32 (see ``for_inference``) it is for inference only.
    ``overrides`` change its recipe, by dotted keys: options of the model that leave the shapes of
    all weights as they are.
    """
    path, folder = Path(folder), find_checkpoint(Path(folder))
    verify_files(folder)
    metadata = read_metadata(folder / RECIPE)
    for key, value in overrides.items():
        metadata["recipe"] = override(metadata["recipe"], key, value)
    network, weights = build_for_weights(folder, metadata)
    load_weights(network, weights, folder / WEIGHTS)
    return Checkpoint(
        recipe=metadata["recipe"],
        seed=metadata["seed"],
        sizes=metadata["sizes"],
        tokenizer=load_tokenizer(folder / TOKENIZER),
        network=network.eval() if precision == "float32" else prepare_for_inference(network, precision),
        progress=read_progress(folder / PROGRESS),
        state=migrate_state(read_tensors(folder / STATE)),
        labels=tuple(metadata.get("labels", ())),
        origin=str(path if folder == shipped.WEIGHTS / path else path.absolute()),
    )


def read_metadata(path: Path) -> dict[str, Any]:
    """Read the recipe, seed, sizes and labels that ``save_checkpoint`` wrote."""
    metadata = read_json(path, error=CheckpointError)
    recipe, sizes, labels = metadata.get("recipe"), metadata.get("sizes"), metadata.get("labels", [])
    has_model = isinstance(recipe, dict) and isinstance(recipe.get("model"), dict)
    has_valid_labels = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    has_sizes = isinstance(sizes, dict) and all(isinstance(size, int | list) for size in sizes.values())
    if not has_model or not has_sizes or not has_valid_labels or not isinstance(metadata.get("seed"), int):
        raise CheckpointError(f"{path} does not hold a recipe with its model, a seed and sizes")
    if is_too_deep(metadata):
        raise CheckpointError(f"{path} is nested too deeply to be read")
    return metadata | {"recipe": migrate_recipe(metadata["recipe"]), "sizes": migrate_sizes(metadata["sizes"])}


def build_for_weights(folder: Path, metadata: Mapping[str, Any]) -> tuple[Any, dict[str, Tensor]]:
    """Read a checkpoint's weights, and build its network unless that is far larger.

    Shared weights come from a shipped network.
    """
    weights, shared = read_stored_weights(folder, metadata)
    check_sizes(metadata["sizes"], {**shared, **weights}, folder / RECIPE)
    num_weights = sum(weight.numel() for weight in {**shared, **weights}.values())
    build = partial(build_model, metadata["recipe"]["model"], metadata["sizes"])
    network = build_within(build, MAX_BUILD_FACTOR * num_weights + MIN_SIZE_LIMIT)
    expected = shapes_of(network)
    weights = {name: shared[name] for name in expected if name in shared} | weights
    check_shapes(expected, weights, folder / WEIGHTS)
    return network, weights


def read_stored_weights(folder: Path, metadata: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Read the weights in a checkpoint's file, and those that it shares with shipped networks."""
    weights = read_tensors(folder / WEIGHTS)
    if "shared" not in metadata:
        return weights, {}
    shared_folder = shared_weights.find_shared_weights(metadata["shared"], folder, WEIGHTS).parent
    stored, shared = read_stored_weights(shared_folder, read_metadata(shared_folder / RECIPE))
    return weights, shared | stored


def check_sizes(sizes: Mapping[str, Any], weights: Mapping[str, Tensor], path: Path) -> None:
    """Raise an error if a size is negative, or far larger than all weights together."""
    limit = max(sum(weight.numel() for weight in weights.values()), MIN_SIZE_LIMIT)
    for name, size in sizes.items():
        numbers = size if isinstance(size, list) else [size]
        for number in chain.from_iterable(item if isinstance(item, list) else [item] for item in numbers):
            if not isinstance(number, int) or not 0 <= number <= limit:
                raise CheckpointError(f"{path}: the size {name!r} is a whole number from 0 to {limit:,}, not {number}")


def read_progress(path: Path) -> TrainingProgress:
    """Read how far a run has been trained; unknown fields are an error."""
    values = read_json(path, error=CheckpointError)
    known = {field.name for field in fields(TrainingProgress)}
    rows = values.get("history", [])
    if values.keys() - known or not all(isinstance(row, dict) for row in rows):
        raise CheckpointError(f"{path} was not written by this version; it should hold {known}")
    return TrainingProgress(**values)


def find_checkpoint(folder: Path) -> Path:
    """Find the folder that holds a checkpoint's files.

    That is ``folder``, its subfolder ``checkpoint``, or the backup of one of them if a process was
    killed while it saved. Otherwise ``folder`` may be the name of a network shipped with mnemic.
    """
    candidates = [folder / "checkpoint", *([folder] if folder.name else [])]
    for candidate in [*candidates, *(backup_path_of(candidate) for candidate in candidates)]:
        if (candidate / MANIFEST).is_file() or (candidate / RECIPE).is_file():
            return candidate
    if str(folder) in shipped.list_networks():
        return shipped.WEIGHTS / folder
    reason = f"no {MANIFEST}" if folder.is_dir() else "there is no such folder"
    advice = f"train one with `mnemic train RECIPE --out {folder if folder.name else 'DIR'}`"
    if (folder / "config.json").is_file():
        reason, advice = ("a Hugging Face folder", f"`mnemic train RECIPE --start {folder}` begins with it")
    raise CheckpointError(
        f"no checkpoint in {str(folder)!r} ({reason}); {advice}, or use one that came with mnemic: "
        f"{join_words(shipped.list_networks())}"
    )


def check_replaceable(run: Path) -> None:
    """Raise an error if a run would replace something that is not a checkpoint."""
    for path in checkpoint_paths_of(run):
        is_checkpoint = (path / MANIFEST).is_file() or (path / RECIPE).is_file()
        if path.exists() and not is_checkpoint and (not path.is_dir() or any(path.iterdir())):
            raise CheckpointError(
                f"{path} is no checkpoint of mnemic, and a run would replace it; move it away, or give another --out"
            )


def remove_checkpoint(run: Path) -> None:
    """Remove a run's checkpoint and the backup that a killed process may have left."""
    for path in checkpoint_paths_of(run):
        shutil.rmtree(path, ignore_errors=True)


def checkpoint_paths_of(run: Path) -> tuple[Path, Path]:
    """The paths of a run's checkpoint and of its backup."""
    return run / "checkpoint", backup_path_of(run / "checkpoint")


def verify_files(folder: Path) -> None:
    """Compare the SHA-256 of every file with the manifest."""
    manifest = read_json(folder / MANIFEST, error=CheckpointError)
    if manifest.get("format") not in READABLE_FORMATS:
        raise CheckpointError(
            f"{folder / MANIFEST} has format {manifest.get('format')!r}; this version reads "
            f"formats 1 to {FORMAT}: use the mnemic that wrote it ({manifest.get('mnemic')!r})"
        )
    files = manifest.get("files")
    if not isinstance(files, dict) or not {RECIPE, WEIGHTS, TOKENIZER} <= files.keys():
        raise CheckpointError(f"{folder / MANIFEST} does not list the checkpoint's files")
    for name, expected_digest in files.items():
        path = folder / Path(name).name
        if not path.is_file():
            raise CheckpointError(f"{path} is missing")
        if hash_file(path) != expected_digest:
            raise CheckpointError(
                f"{path} was changed or cut short after it was saved (its SHA-256 is not the "
                "manifest's); restore it from a copy, or train again with --fresh"
            )


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """All parameters and saved buffers by name; tied weights once, by their first name."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in stored_tensors_of(network).items()}


def shapes_of(network: nn.Module) -> dict[str, torch.Size]:
    """The shapes of ``weights_of(network)``, also of a network without values."""
    return {name: tensor.shape for name, tensor in stored_tensors_of(network).items()}


def stored_tensors_of(network: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers that a checkpoint stores, by their first name."""
    state_dict = network.state_dict()
    names = [name for name, _ in network.named_parameters()]
    names += [name for name, _ in network.named_buffers() if name in state_dict]
    return {name: state_dict[name] for name in names}


def load_weights(network: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Load weights into a network; every name and shape must agree.

    ``path`` names their file in error messages.
    """
    check_shapes(shapes_of(network), weights, path)
    network.load_state_dict(dict(weights), strict=False)


def check_shapes(expected: Mapping[str, torch.Size], weights: Mapping[str, Tensor], path: Path) -> None:
    """Raise an error that names the first weight whose name or shape differs."""
    for name in [*expected, *weights]:
        if name not in weights:
            raise CheckpointError(f"{path} has no weight {name!r}, which its recipe needs")
        if name not in expected:
            raise CheckpointError(f"{path} has a weight {name!r}, which its recipe does not know")
        if weights[name].shape != expected[name]:
            shape, expected_shape = tuple(weights[name].shape), tuple(expected[name])
            raise CheckpointError(f"{path}: {name!r} has shape {shape}, its recipe wants {expected_shape}")
