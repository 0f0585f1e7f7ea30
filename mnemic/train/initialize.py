"""The network a run begins with: from dice, or with weights that are already there.

``model.start`` names a folder whose encoder a new network takes over, weight by weight, and with
``model.takes`` its memory or its response, too: training in stages, from weights alone. It is read
when a run begins and never again: a checkpoint needs no other folder.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import (
    RECIPE,
    fill,
    locate,
    read_described,
    read_weights,
    weights_of,
)
from mnemic.data import IN_TURN, LONG, RESPONSE_OF
from mnemic.data.contract import Sizes
from mnemic.data.knowledge.dataset import KnowledgeFolder
from mnemic.encode import WHOLE
from mnemic.encode.huggingface.read import CONFIG, load_encoder, read_json
from mnemic.encode.huggingface.shape import parts_of, shape_of_config
from mnemic.memory.kv_memnn import KeyValue
from mnemic.models import assemble, check_parts
from mnemic.objectives import OBJECTIVES
from mnemic.recipe import ConfigError, Recipe, build, listed, merge, named, override
from mnemic.train.freeze import fixed_parts
from mnemic.train.phases import Phase
from mnemic.train.sampler import dice_of

TAKEN = ("encode", "mass", "memory", "respond")  # what a network may take over from another
LAYERS = "encode.stack.blocks."  # before the names of the weights of an encoder's layers


def new_network(model: dict[str, Any], sizes: Sizes, seed: int) -> Any:
    """A network with the weights of a seed; the global dice are left as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(dice_of(seed, "weights").initial_seed())
        return assemble(model, sizes)


def begun(model: dict[str, Any], sizes: Sizes, seed: int) -> Any:
    """As ``new_network``, with the parts of ``model.start`` where the recipe names one."""
    network, parts = new_network(model, sizes, seed), model.get("takes", ["encode"])
    if not isinstance(parts, list) or not parts or not {*parts} <= {*TAKEN}:
        raise ConfigError(f"model.takes is a list of some of {listed(TAKEN)}, not {parts!r}")
    if "start" not in model:
        if "takes" in model:
            raise ConfigError("model.takes is for a network that begins with another: --start DIR")
        return network
    if not isinstance(model["start"], str) or not model["start"]:
        raise ConfigError(f"model.start is a folder with weights, not {model['start']!r}")
    take_over(network, parts, Path(model["start"]).expanduser())
    return network


def with_start(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with the encoder and the tokenizer of a folder, which it begins with.

    Its width and its ``model.encode`` become those of the folder, a checkpoint of ours or a
    Hugging Face folder; what the recipe says of dropout stays. What its ``[started]`` says takes
    the place of the rest: weights that are already there want a smaller rate than those from dice.
    """
    if (folder / CONFIG).is_file():
        shape = shape_of_config(read_json(folder / CONFIG), folder / CONFIG)
        place, width = folder, shape.width
        encode: Any = {"kind": "transformer", **parts_of(shape)}
    else:
        place = start_of(folder)
        model = read_described(place / RECIPE)["recipe"]["model"]
        width, encode = model["width"], model["encode"]
        if encode.get("kind") in WHOLE:
            raise ConfigError(
                f"{folder} holds a network whose encoder is of kind {encode['kind']!r}, which reads"
                " the sentences of stories; --start takes one that reads tokens, such as a BERT"
            )
    encode = own_dropout(encode, recipe["model"].get("encode", {}))
    where = {"kind": "stored", "folder": str(place)}
    given = {"model.width": width, "model.encode": encode, "model.start": str(folder)}
    own = {key: value for key, value in recipe.items() if key != "started"}
    recipe = merge(own, recipe.get("started", {}))
    for key, value in (given | {"data.tokenizer": where}).items():
        recipe = override(recipe, key, value)
    return recipe


def own_dropout(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """A piece of recipe with another's dropout, wherever both say something of it."""
    found = dict(theirs)
    for key in theirs.keys() & ours.keys():
        if key == "dropout":
            found[key] = ours[key]
        elif isinstance(theirs[key], Mapping) and isinstance(ours[key], Mapping):
            found[key] = own_dropout(theirs[key], ours[key])
    return found


def start_of(folder: Path) -> Path:
    """Where the checkpoint is that a run begins with."""
    try:
        return locate(folder)
    except CheckpointError:
        what = "has neither" if folder.is_dir() else "is no folder: there is neither"
        raise CheckpointError(
            f"cannot start from {str(folder)!r}, which {what} the checkpoint of a run nor the "
            f"{CONFIG} of a Hugging Face folder"
        ) from None


def take_over(network: nn.Module, parts: Sequence[str], folder: Path) -> None:
    """Give some parts the weights of those in ``folder``; every name and shape must agree.

    An encoder of fewer layers takes the first ones.
    """
    wanted, given = weights_of(network), weights_in(folder)
    for part in parts:
        for which, names in (("this network", wanted), (str(folder), given)):
            if not any(part_of(name) == part for name in names):
                raise ConfigError(f"model.takes names {part!r}, which {which} does not have")
    taken = {
        name: weight
        for name, weight in given.items()
        if part_of(name) in parts and (name in wanted or not name.startswith(LAYERS))
    }
    kept = {name: weight for name, weight in wanted.items() if part_of(name) not in parts}
    fill(network, kept | taken, folder)


def part_of(name: str) -> str:
    """The part of a network that a weight belongs to."""
    return name.partition(".")[0]


def weights_in(folder: Path) -> dict[str, Tensor]:
    """The weights of the network in a folder, by the names ours have.

    A run or a checkpoint of ours, or a Hugging Face folder, which has a ``config.json`` and nothing
    but an encoder.
    """
    if (folder / CONFIG).is_file():
        own = weights_of(load_encoder(folder).encoder)
        return {f"encode.{name}": weight for name, weight in own.items()}
    place = start_of(folder)
    if not (place / RECIPE).is_file():
        raise CheckpointError(f"{place} holds no network: no {RECIPE}")
    described = read_described(place / RECIPE)
    network = assemble(described["recipe"]["model"], described["sizes"])
    return read_weights(place, described, weights_of(network))


def check_kinds(recipe: Recipe) -> None:
    """Whether data, response and objective are of the same kind."""
    model, data = recipe["model"], recipe["data"]
    kind, has_memory = data.get("kind"), "memory" in model
    carries = "carry" in model
    if kind in LONG and not carries:
        raise ConfigError(
            f"data of kind {kind!r} is read in segments: add model.carry, as in recipe bert-mass"
        )
    if carries and kind not in LONG + IN_TURN:
        known = listed(LONG + IN_TURN)
        raise ConfigError(f"model.carry reads in segments: data.kind is {known}, not {kind!r}")
    if kind in LONG:
        check_silent(model, recipe["objective"])
        return
    check_slots(model.get("memory"), data)
    if carries:
        check_in_turn(data)
    elif (kind in RESPONSE_OF) == has_memory:
        raise ConfigError(
            f"data of kind {kind!r} is read in windows, without a memory: leave model.memory out"
            if has_memory
            else f"data of kind {kind!r} needs a memory: add model.memory, such as memn2n"
        )
    if kind not in RESPONSE_OF:
        return
    respond = RESPONSE_OF[kind]
    asked = {"reading": "reading"}.get(kind, {"sequence": "next"}.get(respond, respond))
    if data.get("labels") == "numbers":
        asked = "numbers"
    for part, due in (("model.respond", respond), ("objective", asked)):
        own = model["respond"] if part == "model.respond" else recipe["objective"]
        if own.get("kind") != due:
            raise ConfigError(
                f"{part}.kind is {own.get('kind')!r}, but data of kind {kind!r} needs {due!r}"
            )


def check_silent(model: Mapping[str, Any], objective: Mapping[str, Any]) -> None:
    """Who says no words is not taught to."""
    if model["respond"].get("kind") != "quotes":
        return
    if objective.get("kind") != "bert-mass":
        raise ConfigError(
            "a response of kind 'quotes' says no words: objective.kind is 'bert-mass', not "
            f"{objective.get('kind')!r}"
        )
    weights = build(OBJECTIVES, objective).weights
    if due := [name for name, own in weights.items() if own and name not in ("ctrl", "read")]:
        raise ConfigError(
            f"a response of kind 'quotes' says no words: set objective.{due[0]}=0, or "
            "model.respond.kind=predictor"
        )


def check_slots(memory: Any, data: Mapping[str, Any]) -> None:
    """All slots that are selected for a question fit, or the best of them would be pushed out."""
    if not isinstance(memory, Mapping) or memory.get("kind") != "key-value":
        return
    held = memory.get("slots", named(KeyValue)["slots"].default)
    selected = data.get("slots", KnowledgeFolder.slots)
    if isinstance(held, int) and isinstance(selected, int) and selected > held:
        raise ConfigError(
            f"data.slots selects {selected} slots for a question, but the memory holds {held}: "
            f"set model.memory.slots={selected}, too"
        )


def check_in_turn(data: Mapping[str, Any]) -> None:
    """A memory reads each token once, and all of them."""
    if data.get("overlap") != 0 or data.get("truncation", "windows") != "windows":
        raise ConfigError(
            "model.carry reads a text in segments that do not overlap, all of it: set "
            'data.overlap=0, and leave data.truncation out or "windows"'
        )


def same_weights(model: dict[str, Any], sizes: Sizes, network: nn.Module) -> Any:
    """A network of a phase's own model with another's weights."""
    fresh = new_network(model, sizes, 0)
    fill(fresh, weights_of(network), Path("the phase before"))
    return fresh


def check_phases(plan: Sequence[Phase], recipe: Recipe, sizes: Sizes) -> None:
    """The parts fit; a phase may use the recipe's weights otherwise, but not other weights."""
    network = new_network(recipe["model"], sizes, 0)
    check_parts(network, sizes)
    for phase in plan:
        fixed_parts(network, phase.settings.fixed)
        if phase.settings.segments and recipe["data"].get("kind") not in LONG:
            raise ConfigError(f"train.segments is for data of kind {listed(LONG)}; leave it out")
        if phase.recipe["model"] == recipe["model"]:
            continue
        models = (recipe["model"], phase.recipe["model"])
        whole, own = (weights_of(new_network(model, sizes, 0)) for model in models)
        for name in sorted(whole.keys() | own.keys()):
            if name not in whole or name not in own or whole[name].shape != own[name].shape:
                raise ConfigError(
                    f"phases.{phase.number} changes the weight {name!r}; a phase may change how "
                    "weights are used, not their sizes (width, slots, hops, tying ...)"
                )
