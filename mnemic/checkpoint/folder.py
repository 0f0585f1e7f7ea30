"""A checkpoint is a folder of plain files, written beside and renamed into place.

    recipe.json            the recipe, the seed, the sizes the network was built from, the labels
    weights.safetensors    every weight once, but those of a shipped network that it shares
    tokenizer.json         the vocabulary
    progress.json          where training stands: phase, step, history
    progress.safetensors   the optimiser's state, carried state and dropout's random state
    manifest.json          format, version and the SHA-256 of all the others

Nothing is pickled. A file that is missing, cut short or changed is an error that names it.
"""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from mnemic import __version__
from mnemic.checkpoint import shared_weights as share
from mnemic.checkpoint import shipped
from mnemic.checkpoint.atomic_files import (
    CheckpointError,
    digest,
    flush,
    old_of,
    read_json,
    replace,
    write_json,
)
from mnemic.checkpoint.quantize import quantised
from mnemic.checkpoint.tensors import read_tensors, write_tensors
from mnemic.encode.precision import Precision, for_inference
from mnemic.models import assemble
from mnemic.recipe import Recipe, listed
from mnemic.text import Tokenizer
from mnemic.text import load as load_tokenizer

FORMAT = 1
RECIPE, WEIGHTS, TOKENIZER = "recipe.json", "weights.safetensors", "tokenizer.json"
PROGRESS, STATE, MANIFEST = "progress.json", "progress.safetensors", "manifest.json"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where training stands."""

    phase: int = 0  # counted from 0; equal to the number of phases when training is over
    step: int = 0  # steps taken in this phase
    done: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)  # one row a logged epoch


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A trained, or half trained, network and all that is needed to use it or to go on."""

    recipe: Recipe
    seed: int
    sizes: Mapping[str, Any]
    tokenizer: Tokenizer
    network: Any  # a Network or a Reader
    progress: Progress
    state: Mapping[str, Tensor]  # of the optimiser, of dropout's dice, carried
    labels: tuple[str, ...] = ()  # what answers are called, in the order of their scores
    origin: str = field(default="", compare=False)  # where it was loaded from, to be found again


def save(folder: Path, checkpoint: Checkpoint, *, small: bool = False, shares: str = "") -> None:
    """Write the whole folder beside its place, then put it there; ``small``: with 8-bit weights.

    ``shares`` names a shipped network: weights that are its own, too, are left out.
    """
    weights = weights_of(checkpoint.network)
    beside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    described = {"recipe": checkpoint.recipe, "seed": checkpoint.seed, "sizes": checkpoint.sizes}
    if checkpoint.labels:
        described["labels"] = checkpoint.labels
    if shares:
        place = share.place_of(shares, WEIGHTS)
        weights = share.own_weights(weights, read_tensors(place))
        described["shared"] = share.described(place)
    write_json(beside / RECIPE, described)
    write_tensors(beside / WEIGHTS, (quantised if small else dict)(weights))
    checkpoint.tokenizer.save(beside)
    write_json(beside / PROGRESS, asdict(checkpoint.progress))
    write_tensors(beside / STATE, checkpoint.state)
    files = {path.name: digest(path) for path in sorted(beside.iterdir())}
    write_json(beside / MANIFEST, {"format": FORMAT, "mnemic": __version__, "files": files})
    for path in [*beside.iterdir(), beside]:
        flush(path)
    replace(beside, folder)


def load(folder: str | Path, *, precision: Precision = "float32") -> Checkpoint:
    """Read a checkpoint, or the one inside a run's folder, and check every file.

    With another ``precision`` than float32 (see ``for_inference``) it is only to be read with.
    """
    given, folder = Path(folder), locate(Path(folder))
    check(folder)
    described = read_described(folder / RECIPE)
    network = assemble(described["recipe"]["model"], described["sizes"])
    fill(network, read_weights(folder, described, weights_of(network)), folder / WEIGHTS)
    return Checkpoint(
        recipe=described["recipe"],
        seed=described["seed"],
        sizes=described["sizes"],
        tokenizer=load_tokenizer(folder / TOKENIZER),
        network=network.eval() if precision == "float32" else for_inference(network, precision),
        progress=read_progress(folder / PROGRESS),
        state=read_tensors(folder / STATE),
        labels=tuple(described.get("labels", ())),
        origin=str(given if folder == shipped.WEIGHTS / given else given.absolute()),
    )


def read_described(path: Path) -> dict[str, Any]:
    """The recipe, the seed and the sizes, as ``save`` wrote them."""
    described = read_json(path)
    recipe, sizes = described.get("recipe"), described.get("sizes")
    whole = isinstance(recipe, dict) and isinstance(recipe.get("model"), dict)
    labels = described.get("labels", [])
    named = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    sized = isinstance(sizes, dict) and all(isinstance(x, int | list) for x in sizes.values())
    if not whole or not sized or not named or not isinstance(described.get("seed"), int):
        raise CheckpointError(f"{path} does not hold a recipe with its model, a seed and sizes")
    return described


def read_weights(
    folder: Path, described: Mapping[str, Any], wanted: Iterable[str]
) -> dict[str, Tensor]:
    """A checkpoint's weights; of the ``wanted`` those that it shares come from the other one."""
    own = read_tensors(folder / WEIGHTS)
    if "shared" not in described:
        return own
    theirs = read_tensors(share.check(described["shared"], folder, WEIGHTS))
    return {name: theirs[name] for name in wanted if name in theirs} | own


def read_progress(path: Path) -> Progress:
    """Where training stands; what another version added is an error, not a guess."""
    found = read_json(path)
    known = {field.name for field in fields(Progress)}
    rows = found.get("history", [])
    if found.keys() - known or not all(isinstance(row, dict) for row in rows):
        raise CheckpointError(f"{path} was not written by this version; it should hold {known}")
    return Progress(**found)


def locate(folder: Path) -> Path:
    """Where the checkpoint's files are: ``folder``, its ``checkpoint``, or what a kill left.

    A name that is no folder here may be that of a network that came with the package.
    """
    places = [folder / "checkpoint", *([folder] if folder.name else [])]
    for place in [*places, *(old_of(place) for place in places)]:
        if (place / MANIFEST).is_file() or (place / RECIPE).is_file():
            return place
    if str(folder) in shipped.names():
        return shipped.WEIGHTS / folder
    why = f"no {MANIFEST}" if folder.is_dir() else "there is no such folder"
    how = f"train one with `mnemic train RECIPE --out {folder if folder.name else 'DIR'}`"
    if (folder / "config.json").is_file():
        why, how = "a Hugging Face folder", f"`mnemic train RECIPE --start {folder}` begins with it"
    came = f"one that came with mnemic: {listed(shipped.names())}"
    raise CheckpointError(f"no checkpoint in {str(folder)!r} ({why}); {how}, or use {came}")


def check_foreign(run: Path) -> None:
    """What a run would replace has to be a checkpoint, not something of somebody else's."""
    for place in places_of(run):
        ours = (place / MANIFEST).is_file() or (place / RECIPE).is_file()
        if place.exists() and not ours and (not place.is_dir() or any(place.iterdir())):
            raise CheckpointError(
                f"{place} is no checkpoint of mnemic, and a run would replace it; move it away, or "
                "give another --out"
            )


def remove(run: Path) -> None:
    """The checkpoint of a run that another takes the place of."""
    for place in places_of(run):
        shutil.rmtree(place, ignore_errors=True)


def places_of(run: Path) -> tuple[Path, Path]:
    """Where a run has its checkpoint, and what a kill may have left of it."""
    return run / "checkpoint", old_of(run / "checkpoint")


def check(folder: Path) -> None:
    """Compare every file with the manifest."""
    manifest = read_json(folder / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise CheckpointError(
            f"{folder / MANIFEST} has format {manifest.get('format')!r}; this version reads "
            f"{FORMAT}: use the mnemic that wrote it ({manifest.get('mnemic')!r})"
        )
    files = manifest.get("files")
    if not isinstance(files, dict) or not {RECIPE, WEIGHTS, TOKENIZER} <= files.keys():
        raise CheckpointError(f"{folder / MANIFEST} does not list the checkpoint's files")
    for name, expected in files.items():
        path = folder / Path(name).name
        if not path.is_file():
            raise CheckpointError(f"{path} is missing")
        if digest(path) != expected:
            raise CheckpointError(
                f"{path} was changed or cut short after it was saved (its SHA-256 is not the "
                "manifest's); restore it from a copy, or train again with --fresh"
            )


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Every parameter and stored buffer once, by its first name; tied weights are not repeated."""
    stored = network.state_dict()
    names = [name for name, _ in network.named_parameters()]
    names += [name for name, _ in network.named_buffers() if name in stored]
    return {name: stored[name].detach().cpu().contiguous() for name in names}


def fill(network: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Put weights into a network, strictly: every name and shape must agree."""
    wanted = weights_of(network)
    for name in [*wanted, *weights]:
        if name not in weights:
            raise CheckpointError(f"{path} has no weight {name!r}, which its recipe needs")
        if name not in wanted:
            raise CheckpointError(f"{path} has a weight {name!r}, which its recipe does not know")
        if weights[name].shape != wanted[name].shape:
            came, due = tuple(weights[name].shape), tuple(wanted[name].shape)
            raise CheckpointError(f"{path}: {name!r} has shape {came}, its recipe wants {due}")
    network.load_state_dict(dict(weights), strict=False)
