"""List the options of a recipe from the signatures of its constructors."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeAlias

from mnemic.recipe import Recipe, join_words, kind_name, kind_of, parameters_of, select_kinds, type_hints_of, type_name

# Arguments that the code that builds a part passes itself, so that a recipe does not set them.
MODEL_FACTS = {"width", "vocab", "max_length", "tables", "words", "hops", "spelled", "unseen", "classes"}
MODEL_FACTS |= {"channels", "side", "regions"}  # of pictures
MODEL_FACTS |= {"cross"}  # whether a stack attends to a source
SEGMENT_FACTS = {"encode", "memory", "respond", "mass", "segments"}  # the modules that are wrapped
GENERATOR_FACTS = {"encode_spec", "detector"}  # what it is a smaller one of
TOKENIZER_FACTS = {"texts", "extra"}  # of a vocabulary that is learned
LAYER_FACTS = {"layer", "depth", "is_causal", "is_cross"}  # of an attention's layer
FEED_FACTS = {"width", "inner", "activation"}
HIDDEN_FACTS = {
    "tokenizer": TOKENIZER_FACTS, "attention": MODEL_FACTS | LAYER_FACTS, "feed": FEED_FACTS,
    "cross_attention": MODEL_FACTS | LAYER_FACTS,
}  # fmt: skip
OBJECTIVE_FACTS = {"teachers", "network", "shards", "batch"}
OPTIMIZER_FACTS = {"parameters", "rate", "runs"}
Spec: TypeAlias = Mapping[str, Any]  # a part of a recipe
Constructors: TypeAlias = Mapping[str, Callable[..., Any]]  # by kind
NESTED_PARTS = {"optimizer", "schedule", "clip"}  # parts of [train] with rows of their own


def list_options(recipe: Recipe) -> list[dict[str, Any]]:
    """List the options of the kinds in ``recipe``: type, default and current value."""
    from mnemic import data, encode, memory, objectives, respond
    from mnemic.encode.masked_layer import MaskedLayer
    from mnemic.encode.pictures import PICTURE_ENCODERS
    from mnemic.models.build_pictures import looks_at_pictures
    from mnemic.models.replaced_token_model import TokenGenerator
    from mnemic.models.segment_model import SegmentModel
    from mnemic.models.segment_text_model import SegmentTextModel
    from mnemic.train.loop import TrainSettings
    from mnemic.train.optim import clipping, optimizers, schedules
    from mnemic.train.teacher import TeacherSettings

    model = recipe.get("model", {})
    part_options: list[dict[str, Any]] = []
    if "segments" in model:
        is_text_model = kind_of(respond.RESPONSES, model["respond"]).reads_segments
        segment_class = SegmentTextModel if is_text_model else SegmentModel
        part_options += list_part_options("model.segments", segment_class, model["segments"], SEGMENT_FACTS, {})
    if "mass" in model:
        part_options += list_part_options("model.mass", MaskedLayer, model["mass"], MODEL_FACTS, {})
    if "generator" in model:
        hidden = MODEL_FACTS | GENERATOR_FACTS
        part_options += list_part_options("model.generator", TokenGenerator, model["generator"], hidden, {})
    settings = vars(TrainSettings()) | recipe.get("train", {})
    # With a memory, an encoder makes one vector per text; without one, or with a memory that is
    # carried from segment to segment, one per token.
    has_slots = "memory" in model and "segments" not in model
    encoders = select_kinds(encode.ENCODERS, reads_texts=has_slots)
    if looks_at_pictures(model):
        encoders = PICTURE_ENCODERS
    return [
        build_option_row("model.width", int, model),
        build_option_row("model.init_from", str, model),
        build_option_row("model.init_vectors", str, model),
        *list_kind_options("model.encode", encoders, model.get("encode", {}), MODEL_FACTS),
        *list_kind_options("model.ask", encode.ENCODERS, model.get("ask", {}), MODEL_FACTS),
        *list_kind_options("model.fuse", encode.FUSIONS, model.get("fuse", {}), MODEL_FACTS),
        *list_kind_options("model.memory", memory.MEMORIES, model.get("memory", {}), MODEL_FACTS - {"hops"}),
        *list_kind_options("model.respond", respond.RESPONSES, model.get("respond", {}), MODEL_FACTS),
        *part_options,
        *list_kind_options("data", data.DATASETS, recipe.get("data", {}), set()),
        *list_kind_options("objective", objectives.OBJECTIVES, recipe.get("objective", {}), OBJECTIVE_FACTS),
        *list_part_options("teacher", TeacherSettings, recipe.get("teacher", {}), set(), {}),
        *list_part_options("train", TrainSettings, recipe.get("train", {}), NESTED_PARTS, vars(TrainSettings())),
        *list_kind_options("train.optimizer", optimizers.OPTIMIZERS, settings["optimizer"], OPTIMIZER_FACTS),
        *list_kind_options("train.schedule", schedules.SCHEDULES, settings["schedule"], set()),
        *list_kind_options("train.clip", clipping.CLIPS, settings["clip"], set()),
    ]


def nested_tables() -> dict[str, Constructors]:
    """Map the options that are parts with kinds of their own to their constructors."""
    from mnemic import encode
    from mnemic.data.corpora.formats import FORMATS
    from mnemic.data.text_tasks.splits import TOKENIZER_BUILDERS
    from mnemic.data.views.draw import VIEWS
    from mnemic.encode.stacks.block import FEED_FORWARDS
    from mnemic.memory.parts import controller, hop_update, match
    from mnemic.objectives.distillation import soft_labels, soft_ranking
    from mnemic.objectives.pretraining.masking import MASKINGS

    return {
        "update": hop_update.UPDATES, "match": match.MATCHES, "controller": controller.CONTROLLERS,
        "recurrent": encode.RECURRENTS, "embeddings": encode.EMBEDDINGS,
        "decoder_embeddings": encode.EMBEDDINGS, "positions": encode.POSITIONS,
        "stack": encode.STACKS, "decoder": encode.DECODERS, "attention": encode.ATTENTIONS,
        "cross_attention": encode.ATTENTIONS, "feed": FEED_FORWARDS,
        "tokenizer": TOKENIZER_BUILDERS, "format": FORMATS, "masking": MASKINGS,
        "hard": soft_labels.HARD_LOSSES | soft_ranking.HARD_LOSSES, "views": VIEWS,
    }  # fmt: skip


def nested_sections() -> dict[str, Callable[..., Any]]:
    """Map the options that are sections without a kind to their constructors."""
    from mnemic.data.text_tasks.augment_questions import Augmentation
    from mnemic.encode.transformer import TransformerEncoder

    return {"augment": Augmentation, "source": TransformerEncoder}


def share_tables() -> dict[str, Iterable[str]]:
    """Map the options that are tables of numbers to what these are the shares of."""
    from mnemic.data.pictures.tasks import TASKS
    from mnemic.objectives.pretraining.views import VIEWS

    return {"ratios": TASKS, "views": VIEWS}


def list_kind_options(
    name: str, constructors: Constructors, spec: Spec, hidden: set[str], default: Spec | None = None
) -> Iterator[dict[str, Any]]:
    """List the kinds of a part, then the options of its current kind.

    ``hidden`` are arguments that a recipe does not set.
    """
    default_field = {} if default is None else {"default": kind_name(default)}
    yield ({"option": f"{name}.kind", "takes": join_words(constructors)} | value_field("kind", spec) | default_field)
    part_spec = spec or default or {}
    if kind_name(part_spec) in constructors:
        yield from list_part_options(name, kind_of(constructors, part_spec), part_spec, hidden, {})


def list_part_options(
    name: str, constructor: Callable[..., Any], spec: Spec, hidden: set[str], defaults: Spec
) -> Iterator[dict[str, Any]]:
    """List the options of a part; nested parts come last, with their own options."""
    parameters = {key: parameter for key, parameter in parameters_of(constructor).items() if key not in hidden}
    hints, defaults = type_hints_of(constructor), {**factory_defaults_of(constructor), **defaults}
    number_types = (float, Mapping[str, float])  # the weight of a loss, or shares
    inner = {key: table for key, table in nested_tables().items() if hints.get(key) not in number_types}
    sections, shares = nested_sections(), share_tables()
    required = {key for key, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
    for key, parameter in parameters.items():
        if key in sections and hints[key] == Mapping[str, Any]:
            yield from list_part_options(f"{name}.{key}", sections[key], spec.get(key, {}), set(), {})
        elif key in shares and hints[key] == Mapping[str, float]:
            yield from (build_option_row(f"{name}.{key}.{share}", float, spec.get(key, {})) for share in shares[key])
        elif key not in inner:
            option_row = build_option_row(f"{name}.{key}", hints[key], spec)
            yield option_row | ({} if key in required else {"default": defaults.get(key, parameter.default)})
    for key in sorted(parameters.keys() & inner.keys()):
        hidden = HIDDEN_FACTS.get(key, MODEL_FACTS)
        default = defaults.get(key, None if key in required else parameters[key].default)
        is_causal = (
            key == "stack" and kind_name(default or {}) in inner["decoder"]
        )  # a causal encoder takes decoders only
        table = inner["decoder" if is_causal else key]
        yield from list_kind_options(f"{name}.{key}", table, spec.get(key, {}), hidden, default)


def factory_defaults_of(constructor: Callable[..., Any]) -> dict[str, Any]:
    """Look up the defaults that a dataclass creates per instance."""
    dataclass_fields = fields(constructor) if is_dataclass(constructor) else ()
    return {field.name: field.default_factory() for field in dataclass_fields if field.default_factory is not MISSING}


def build_option_row(option: str, annotation: Any, spec: Spec) -> dict[str, Any]:
    """Describe an option: its name, type, and value if the recipe sets it."""
    return {"option": option, "takes": type_name(annotation)} | value_field(option.split(".")[-1], spec)


def value_field(key: str, spec: Spec) -> dict[str, Any]:
    """Return the value that the recipe sets, or nothing for the default."""
    return {"value": spec[key]} if key in spec else {}
