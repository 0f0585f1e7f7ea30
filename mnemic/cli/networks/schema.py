"""What every part of a recipe takes, read from the signatures that the factory checks against."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from mnemic.recipe import Recipe, hints, listed, named, spoken

# Facts that are handed to a part by its maker, so that a recipe does not set them.
MODEL = {"width", "vocab", "longest", "tables", "words", "hops", "spelled", "unseen", "classes"}
MODEL |= {"cross"}  # whether a stack looks at a source
CARRIED = {"encode", "memory", "respond", "mass", "segments"}  # the parts that are wrapped
TEXTS = {"texts", "extra"}  # what a vocabulary is learnt from
OPTIMISER = {"parameters", "rate", "runs"}
NESTED = {"optimiser", "schedule", "clip"}  # parts of [train], which have rows of their own


def schema(recipe: Recipe) -> list[dict[str, Any]]:
    """One row an option of the kinds that ``recipe`` uses: what it takes, default, value here."""
    from mnemic.data import DATASETS
    from mnemic.encode import ENCODERS, FUSIONS, WHOLE
    from mnemic.encode.masked_layer import MaskedLayer
    from mnemic.memory import MEMORIES
    from mnemic.models.segment_model import Carrier
    from mnemic.models.segment_text_model import MemoryReader
    from mnemic.objectives import OBJECTIVES
    from mnemic.respond import FROM_MEMORY, RESPONSES
    from mnemic.train.loop import TrainSettings
    from mnemic.train.optim.clipping import CLIPS
    from mnemic.train.optim.optimizers import OPTIMISERS
    from mnemic.train.optim.schedules import SCHEDULES

    model = recipe.get("model", {})
    words = model.get("respond", {}).get("kind") in FROM_MEMORY
    carrier = Carrier if words else MemoryReader
    settings = vars(TrainSettings()) | recipe.get("train", {})
    # With a memory texts are encoded as a whole; without, or where it is carried, their tokens.
    memory = "memory" in model and "carry" not in model
    whole = {name: maker for name, maker in ENCODERS.items() if (name in WHOLE) == memory}
    return [
        row("model.width", int, model),
        row("model.start", str, model),
        *kind("model.encode", whole, model.get("encode", {}), MODEL),
        *kind("model.ask", ENCODERS, model.get("ask", {}), MODEL),
        *kind("model.fuse", FUSIONS, model.get("fuse", {}), MODEL),
        *kind("model.memory", MEMORIES, model.get("memory", {}), MODEL - {"hops"}),
        *kind("model.respond", RESPONSES, model.get("respond", {}), MODEL),
        *(part("model.carry", carrier, model["carry"], CARRIED, {}) if "carry" in model else ()),
        *(part("model.mass", MaskedLayer, model["mass"], MODEL, {}) if "mass" in model else ()),
        *kind("data", DATASETS, recipe.get("data", {}), set()),
        *kind("objective", OBJECTIVES, recipe.get("objective", {}), set()),
        *part("train", TrainSettings, recipe.get("train", {}), NESTED, vars(TrainSettings())),
        *kind("train.optimiser", OPTIMISERS, settings["optimiser"], OPTIMISER),
        *kind("train.schedule", SCHEDULES, settings["schedule"], set()),
        *kind("train.clip", CLIPS, settings["clip"], set()),
    ]


def inner_parts() -> dict[str, Mapping[str, Callable[..., Any]]]:
    """Options that are parts with kinds of their own, wherever a part takes them."""
    from mnemic.data.corpora.formats import FORMATS
    from mnemic.data.text_tasks.splits import VOCABULARIES
    from mnemic.encode import ATTENTIONS, DECODERS, EMBEDDINGS, POSITIONS, RECURRENTS, STACKS
    from mnemic.memory.parts.controller import CONTROLLERS
    from mnemic.memory.parts.hop_update import UPDATES
    from mnemic.memory.parts.match import MATCHES
    from mnemic.objectives.masking import MASKINGS

    return {
        "update": UPDATES,
        "match": MATCHES,
        "controller": CONTROLLERS,
        "recurrent": RECURRENTS,
        "embeddings": EMBEDDINGS,
        "positions": POSITIONS,
        "stack": STACKS,
        "decoder": DECODERS,
        "attention": ATTENTIONS,
        "tokenizer": VOCABULARIES,
        "format": FORMATS,
        "masking": MASKINGS,
    }


def kind(
    name: str,
    table: Mapping[str, Callable[..., Any]],
    spec: Mapping[str, Any],
    given: set[str],
    default: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """The rows of a part that has kinds: the kinds first, then what the chosen one takes."""
    left_out = {} if default is None else {"default": default["kind"]}
    yield {"option": f"{name}.kind", "takes": listed(table)} | value_of("kind", spec) | left_out
    chosen = spec or default or {}
    if chosen.get("kind") in table:
        yield from part(name, table[chosen["kind"]], chosen, given, {})


def part(
    name: str,
    maker: Callable[..., Any],
    spec: Mapping[str, Any],
    given: set[str],
    defaults: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """A row an option; those that are parts themselves come last, with all their rows."""
    own = {key: parameter for key, parameter in named(maker).items() if key not in given}
    inner, defaults = inner_parts(), {**made(maker), **defaults}
    for key, parameter in own.items():
        if key not in inner:
            found = row(f"{name}.{key}", hints(maker)[key], spec)
            needed = parameter.default is inspect.Parameter.empty
            yield found | ({} if needed else {"default": defaults.get(key, parameter.default)})
    for key in sorted(own.keys() & inner.keys()):
        given = TEXTS if key == "tokenizer" else MODEL
        default = defaults.get(key, own[key].default)
        only_back = key == "stack" and default["kind"] in inner["decoder"]  # of a causal encoder
        table = inner["decoder" if only_back else key]
        yield from kind(f"{name}.{key}", table, spec.get(key, {}), given, default)


def made(maker: Callable[..., Any]) -> dict[str, Any]:
    """The defaults that a dataclass makes anew for every instance."""
    own = fields(maker) if is_dataclass(maker) else ()
    return {one.name: one.default_factory() for one in own if one.default_factory is not MISSING}


def row(option: str, wanted: Any, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"option": option, "takes": spoken(wanted)} | value_of(option.split(".")[-1], spec)


def value_of(key: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing where the recipe leaves the default."""
    return {"value": spec[key]} if key in spec else {}
