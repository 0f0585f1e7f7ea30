"""Initialize a network at random or from trained weights; check recipes.

``model.init_from`` names a folder whose encoder is copied into a new network;
``model.init_parts`` adds its memory or its response: training in stages, from weights alone. The
folder is only read when a run starts: a checkpoint needs no other folder.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import RECIPE, build_for_weights, find_checkpoint, load_weights, read_metadata, weights_of
from mnemic.checkpoint.seq2seq_folder import is_seq2seq_folder, load_seq2seq
from mnemic.data import DATASETS
from mnemic.data.contract import Sizes
from mnemic.data.knowledge.dataset import KnowledgeFolder
from mnemic.encode import ENCODERS
from mnemic.encode.huggingface.read import CONFIG_FILE, load_encoder
from mnemic.encode.huggingface.shape import encoder_options, shape_from_config
from mnemic.files import read_json
from mnemic.memory import MEMORIES
from mnemic.models import build_model, build_on_meta, check_memory
from mnemic.objectives import OBJECTIVES
from mnemic.recipe import (
    ConfigError,
    Recipe,
    build,
    join_words,
    kind_name,
    kind_of,
    merge_recipes,
    override,
    parameters_of,
    select_kinds,
)
from mnemic.respond import RESPONSES
from mnemic.train.freeze import find_parts
from mnemic.train.phases import Phase
from mnemic.train.sampler import make_generator
from mnemic.train.start.check_pictures import check_pictures
from mnemic.train.start.seq2seq import fit_start_weights, list_seq2seq_settings

COPYABLE_PARTS = ("encode", "mass", "memory", "respond")  # from ``model.init_from``
LAYER_PREFIX = "encode.stack.blocks."  # of the weights of an encoder's layers


def build_network(model: dict[str, Any], sizes: Sizes, seed: int) -> Any:
    """Build a network with random weights from a seed; the global generator is unchanged."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(make_generator(seed, "weights").initial_seed())
        return build_model(model, sizes)


def initialize_network(model: dict[str, Any], sizes: Sizes, seed: int) -> Any:
    """Build a network and copy the parts of ``model.init_from``, if the recipe names one."""
    network, parts = build_network(model, sizes, seed), model.get("init_parts", ["encode"])
    if not isinstance(parts, list) or not parts or not {*parts} <= {*COPYABLE_PARTS}:
        raise ConfigError(f"model.init_parts is a list of some of {join_words(COPYABLE_PARTS)}, not {parts!r}")
    if "init_from" not in model:
        if "init_parts" in model:
            raise ConfigError("model.init_parts is for a network that starts from another: add --start DIR")
        return network
    if not isinstance(model["init_from"], str) or not model["init_from"]:
        raise ConfigError(f"model.init_from is a folder with weights, not {model['init_from']!r}")
    copy_parts(network, parts, Path(model["init_from"]).expanduser())
    return network


def start_recipe_from(recipe: Recipe, folder: Path) -> Recipe:
    """Set a recipe's encoder, tokenizer and initial weights to those of a folder.

    The folder is a checkpoint or a Hugging Face folder. The recipe's width and ``model.encode``
    become those of the folder, except for dropout, and so does a decoder. The recipe's
    ``[pretrained]`` table overrides all that: trained weights need a smaller learning rate than
    random ones, and a student may have fewer layers.
    """
    settings = list_seq2seq_settings(recipe, folder) or list_encoder_settings(folder)
    for name in ("encode", "respond"):
        if spec := settings.get(f"model.{name}"):
            settings[f"model.{name}"] = copy_dropout(spec, recipe["model"].get(name, {}))
    pretrained = recipe.get("pretrained", {})
    recipe = {key: value for key, value in recipe.items() if key != "pretrained"}
    for key, value in settings.items():
        recipe = override(recipe, key, value)
    return merge_recipes(recipe, pretrained)


def list_encoder_settings(folder: Path) -> dict[str, Any]:
    """List the settings of a recipe that starts from an encoder alone, by dotted key."""
    if (folder / CONFIG_FILE).is_file():
        shape = shape_from_config(read_json(folder / CONFIG_FILE), folder / CONFIG_FILE)
        checkpoint_folder, width = folder, shape.width
        encode: Any = {"kind": "transformer", **encoder_options(shape)}
    else:
        checkpoint_folder = find_start_checkpoint(folder)
        model = read_metadata(checkpoint_folder / RECIPE)["recipe"]["model"]
        width, encode = model["width"], model["encode"]
        if kind_of(ENCODERS, encode).reads_texts:
            raise ConfigError(
                f"{folder} holds a network whose encoder is of kind {kind_name(encode)!r}, which reads"
                " the sentences of stories; --start takes one that reads tokens, such as a BERT"
            )
    settings = {"model.width": width, "model.encode": encode, "model.init_from": str(folder)}
    return settings | {"data.tokenizer": {"kind": "stored", "folder": str(checkpoint_folder)}}


def copy_dropout(encoder: Mapping[str, Any], dropout_source: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the dropout settings of ``dropout_source`` into the settings of an encoder.

    Only keys that both have are copied.
    """
    merged = dict(encoder)
    for key in encoder.keys() & dropout_source.keys():
        if key == "dropout":
            merged[key] = dropout_source[key]
        elif isinstance(encoder[key], Mapping) and isinstance(dropout_source[key], Mapping):
            merged[key] = copy_dropout(encoder[key], dropout_source[key])
    return merged


def find_start_checkpoint(folder: Path) -> Path:
    """Find the checkpoint that a run starts from."""
    try:
        return find_checkpoint(folder)
    except CheckpointError:
        problem = "has neither" if folder.is_dir() else "is no folder: there is neither"
        raise CheckpointError(
            f"cannot start from {str(folder)!r}, which {problem} the checkpoint of a run nor the "
            f"{CONFIG_FILE} of a Hugging Face folder"
        ) from None


def copy_parts(network: nn.Module, parts: Sequence[str], folder: Path) -> None:
    """Copy the weights of some parts from ``folder``; every name and shape must agree.

    An encoder with fewer layers gets some, evenly spaced (see ``space_layers``).
    """
    network_weights = weights_of(network)
    start_weights = fit_start_weights(read_start_weights(folder), network_weights)
    start_weights = space_layers(start_weights, count_layers(network_weights))
    for part_name in parts:
        for owner, names in (("this network", network_weights), (str(folder), start_weights)):
            if not any(part_of(name) == part_name for name in names):
                raise ConfigError(f"model.init_parts names {part_name!r}, which {owner} does not have")
    copied = {name: weight for name, weight in start_weights.items() if part_of(name) in parts}
    unchanged = {name: weight for name, weight in network_weights.items() if part_of(name) not in parts}
    load_weights(network, unchanged | copied, folder)


def space_layers(weights: Mapping[str, Tensor], num_layers: int) -> dict[str, Tensor]:
    """Select ``num_layers`` layers of an encoder, and number them anew.

    Of k times as many, each k-th one, the last one included: the layers that ``layers`` compares
    with (Sun et al. 2019, arXiv:1908.09355, "PKD-skip"). Without as many, all are kept.

    >>> weights = {f"{LAYER_PREFIX}{number}.bias": torch.tensor(number) for number in range(4)}
    >>> {name.split(".")[3]: int(weight) for name, weight in space_layers(weights, 2).items()}
    {'0': 1, '1': 3}
    """
    num_there = count_layers(weights)
    if not 0 < num_layers < num_there:
        return dict(weights)
    numbers = {str((index + 1) * num_there // num_layers - 1): str(index) for index in range(num_layers)}
    selected = {}
    for name, weight in weights.items():
        if not name.startswith(LAYER_PREFIX):
            selected[name] = weight
            continue
        number, _, rest = name.removeprefix(LAYER_PREFIX).partition(".")
        if number in numbers:
            selected[f"{LAYER_PREFIX}{numbers[number]}.{rest}"] = weight
    return selected


def count_layers(names: Iterable[str]) -> int:
    """Count the layers of the encoder whose weights have these names."""
    layer_names = (name.removeprefix(LAYER_PREFIX) for name in names if name.startswith(LAYER_PREFIX))
    return len({name.partition(".")[0] for name in layer_names})


def part_of(name: str) -> str:
    """The part of a network that a weight belongs to, such as ``encode``."""
    return name.partition(".")[0]


def read_start_weights(folder: Path) -> dict[str, Tensor]:
    """Read the weights of the network in a folder, under mnemic's names.

    The folder is a run, a checkpoint, or a Hugging Face folder, which has a ``config.json``.
    """
    if is_seq2seq_folder(folder):
        return weights_of(load_seq2seq(folder).network)
    if (folder / CONFIG_FILE).is_file():
        weights = weights_of(load_encoder(folder).encoder)
        return {f"encode.{name}": weight for name, weight in weights.items()}
    checkpoint_folder = find_start_checkpoint(folder)
    if not (checkpoint_folder / RECIPE).is_file():
        raise CheckpointError(f"{checkpoint_folder} holds no network: no {RECIPE}")
    with torch.random.fork_rng(devices=[]):
        return build_for_weights(checkpoint_folder, read_metadata(checkpoint_folder / RECIPE))[1]


def check_kinds(recipe: Recipe) -> None:
    """Raise an error if the kinds of data, model, response and objective do not fit."""
    model, data = recipe["model"], recipe["data"]
    data_kind, name = kind_of(DATASETS, data), kind_name(data)
    has_memory, has_segments = "memory" in model, "segments" in model
    check_pictures(model, data)
    objectives = [merge_recipes(recipe, phase)["objective"] for phase in recipe.get("phases") or [{}]]
    for objective in objectives:
        check_layout(objective, data)
        check_generator(objective, model)
    if data_kind.layout == "segments":
        if not has_segments:
            raise ConfigError(f"data of kind {name!r} is read in segments: add model.segments, as in recipe bert-mass")
        check_quote_losses(model, recipe["objective"])
        return
    if has_segments and not data_kind.reads_segments:
        known = join_words(select_kinds(DATASETS, layout="segments") | select_kinds(DATASETS, reads_segments=True))
        raise ConfigError(f"model.segments reads in segments: data.kind is {known}, not {name!r}")
    check_memory_slots(model, data)
    check_memory_length(model, data)
    if has_segments:
        check_segment_windows(data)
    elif data_kind.layout != "pictures" and (data_kind.response is not None) == has_memory:
        raise ConfigError(
            f"data of kind {name!r} is read in windows, without a memory: leave model.memory out"
            if has_memory
            else f"data of kind {name!r} needs a memory: add model.memory, such as memn2n"
        )
    if data_kind.response is not None:
        check_response(model["respond"], data)
        for objective in objectives:
            check_objective(objective, data)


def check_response(respond: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise an error unless a response has the methods that the data needs."""
    needed = kind_of(DATASETS, data).response
    response = kind_of(RESPONSES, respond)
    if needed in (kind_name(respond), response.replaces):
        return
    if not {*response.methods} & {*RESPONSES[needed].methods}:
        raise ConfigError(
            f"model.respond.kind is {kind_name(respond)!r}, but data of kind {kind_name(data)!r} needs {needed!r}"
        )


def check_layout(objective: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise an error unless an objective fits the layout of the data."""
    layout, needed = kind_of(DATASETS, data).layout, getattr(kind_of(OBJECTIVES, objective), "fits_layout", None)
    if needed not in (None, layout):
        known = join_words(select_kinds(DATASETS, layout=needed))
        raise ConfigError(
            f"objective.kind is {kind_name(objective)!r}, which reads texts in {needed}: data.kind is {known}, "
            f"not {kind_name(data)!r}"
        )


def check_generator(objective: Mapping[str, Any], model: Mapping[str, Any]) -> None:
    """Raise an error unless objective and network both have a generator, or neither."""
    if ("generator" in model) != (kind_name(objective) in select_kinds(OBJECTIVES, needs_generator=True)):
        known = join_words(select_kinds(OBJECTIVES, needs_generator=True))
        raise ConfigError(
            f"model.generator and an objective of kind {known} need each other, as in recipe electra-pretrain; "
            f"here objective.kind is {kind_name(objective)!r}"
        )


def check_objective(objective: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise an error unless an objective, or the one that it replaces, fits the data."""
    if wrapped := getattr(kind_of(OBJECTIVES, objective), "wraps", None):
        check_objective(objective.get(wrapped, {}), data)
        return
    if getattr(kind_of(OBJECTIVES, objective), "fits_layout", None):
        return  # it uses no targets
    fitting = kind_of(DATASETS, data).fitting_objectives(data)
    replacements = (kind for name in fitting for kind in select_kinds(OBJECTIVES, replaces=name))
    if kind_name(objective) not in (*fitting, *replacements):
        raise ConfigError(
            f"objective.kind is {kind_name(objective)!r}, but data of kind {kind_name(data)!r} needs "
            f"{' or '.join(map(repr, fitting))}"
        )


def check_quote_losses(model: Mapping[str, Any], objective: Mapping[str, Any]) -> None:
    """Raise an error if a response without words has losses that need words."""
    if kind_of(RESPONSES, model["respond"]).generates_words:
        return
    known = select_kinds(OBJECTIVES, trains_without_words=True)
    if kind_name(objective) not in known:
        raise ConfigError(
            f"a response of kind 'quotes' generates no words: objective.kind is {' or '.join(map(repr, known))}, "
            f"not {kind_name(objective)!r}"
        )
    loss = build(OBJECTIVES, objective)
    if active := [name for name, weight in loss.weights.items() if weight and name not in loss.wordless_losses]:
        raise ConfigError(
            f"a response of kind 'quotes' generates no words: set objective.{active[0]}=0, or "
            "model.respond.kind=predictor"
        )


def check_memory_slots(model: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise an error if a memory has fewer slots than the data selects per question.

    Otherwise the best of the selected slots would be overwritten.
    """
    if not kind_of(DATASETS, data).has_knowledge_base or "memory" not in model:
        return
    parameters = parameters_of(kind_of(MEMORIES, model["memory"]))
    capacity = model["memory"].get("slots", parameters["slots"].default if "slots" in parameters else None)
    selected = data.get("slots", KnowledgeFolder.slots)
    if isinstance(capacity, int) and isinstance(selected, int) and selected > capacity:
        raise ConfigError(
            f"data.slots selects {selected} slots for a question, but the memory holds {capacity}: "
            f"set model.memory.slots={selected}, too"
        )


def check_memory_length(model: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise an error if an encoder carries states between texts that do not go on."""
    encode = model["encode"]
    if not isinstance(encode, Mapping) or not encode.get("memory_length"):
        return
    if not data.get("stream") and "segments" not in model:
        raise ConfigError(
            "model.encode.memory_length carries states from each segment of a text to the next: set data.stream=true "
            "(kind language-modeling), add model.segments (documents), or set model.encode.memory_length=0"
        )


def check_segment_windows(data: Mapping[str, Any]) -> None:
    """Raise an error if segments overlap or leave out tokens: a memory reads each once."""
    if data.get("overlap") != 0 or data.get("truncation", "windows") != "windows":
        raise ConfigError(
            "model.segments reads a text in segments that do not overlap, all of it: set "
            'data.overlap=0, and leave data.truncation out or "windows"'
        )


def rebuild_network(model: dict[str, Any], sizes: Sizes, network: nn.Module) -> Any:
    """Build the network of a phase's model with the weights of another network."""
    rebuilt = build_network(model, sizes, 0)
    load_weights(rebuilt, weights_of(network), Path("the phase before"))
    return rebuilt


def check_phases(phases: Sequence[Phase], recipe: Recipe, sizes: Sizes) -> None:
    """Raise an error if a phase freezes unknown parts or changes the weights' shapes.

    Or if this computer's memory cannot hold the weights.
    """
    network = build_on_meta(partial(build_model, recipe["model"], sizes))
    check_memory(network)
    shapes = {name: weight.shape for name, weight in network.named_parameters()}
    for phase in phases:
        find_parts(network, phase.settings.frozen)
        if phase.settings.segments and kind_of(DATASETS, recipe["data"]).layout != "segments":
            known = join_words(select_kinds(DATASETS, layout="segments"))
            raise ConfigError(f"train.segments is for data of kind {known}; leave it out")
        if phase.recipe["model"] == recipe["model"]:
            continue
        weights = dict(build_on_meta(partial(build_model, phase.recipe["model"], sizes)).named_parameters())
        for name in sorted(shapes.keys() | weights.keys()):
            if name not in shapes or name not in weights or shapes[name] != weights[name].shape:
                raise ConfigError(
                    f"phases.{phase.number} changes the weight {name!r}; a phase may change how "
                    "weights are used, not their sizes (width, slots, hops, tying ...)"
                )
