"""Build the network of a recipe's ``[model]`` and check that its parts fit."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from mnemic.encode import ENCODERS, FUSIONS
from mnemic.encode.masked_layer import MaskedLayer
from mnemic.encode.segmenter import SEGMENTERS
from mnemic.memory import MEMORIES
from mnemic.models.build_pictures import build_picture_network, looks_at_pictures
from mnemic.models.evaluating import evaluating
from mnemic.models.measure import build_on_meta, check_memory
from mnemic.models.memory_network import MemoryNetwork
from mnemic.models.replaced_token_model import ReplacedTokenModel, TokenGenerator
from mnemic.models.segment_model import SegmentModel
from mnemic.models.segment_text_model import SegmentTextModel
from mnemic.models.text_model import TextModel
from mnemic.recipe import ConfigError, build, construct, join_words, kind_name, kind_of, matches_type, select_kinds
from mnemic.recipe.bounds import check_numbers
from mnemic.recipe.build import parameters_of
from mnemic.respond import RESPONSES

REQUIRED_KEYS = ("width", "encode", "respond")
# Sections that only some networks have.
OPTIONAL_KEYS = ("memory", "ask", "fuse", "segmenter", "init_from", "init_parts", "init_vectors", "segments", "mass",
                 "generator")  # fmt: skip
# Sections of networks that carry no memory from segment to segment.
KEYS_WITHOUT_SEGMENTS = ("ask", "fuse", "segmenter")


def build_model(model: Mapping[str, Any], sizes: Mapping[str, Any]) -> Any:
    """Build the network that a recipe's ``[model]`` describes.

    A ``MemoryNetwork``, or without ``memory`` a ``TextModel``; with ``segments`` a
    ``SegmentModel``, or, if it answers with classes, tags or spans, a ``SegmentTextModel``. With an
    encoder of pictures it is a ``PictureNetwork``.
    ``sizes`` are facts of the data, such as the size of the vocabulary.

    >>> recipe = mnemic.load_recipe("entnet", ["model.width=50"])
    >>> network = mnemic.build_model(recipe["model"], {"vocab": 30, "max_length": 8})
    >>> type(network).__name__, type(network.memory).__name__
    ('MemoryNetwork', 'EntNet')
    >>> sum(weight.numel() for weight in network.parameters())
    14920
    """
    check_model(model)
    context = {"width": model["width"], **sizes}
    if looks_at_pictures(model):
        return build_picture_network(model, context)
    if "segments" in model:
        return build_segment_model(model, context)
    return build_memory_network(model, context) if "memory" in model else build_text_model(model, context)


def build_text_model(model: Mapping[str, Any], context: dict[str, Any]) -> TextModel:
    """Build a network without a memory: I over tokens and R over their states.

    With ``generator`` it also has the network that replaces tokens.
    """
    encode = build(select_kinds(ENCODERS, reads_texts=False), model["encode"], **context)
    context["words"] = encode.embeddings.tokens  # for responses that share them
    kind = kind_name(model["respond"])
    if kind_of(RESPONSES, model["respond"]).source != "text":
        known = join_words(select_kinds(RESPONSES, source="text"))
        raise ConfigError(f"a response of kind {kind!r} needs a memory: add model.memory, or respond with {known}")
    respond = build(RESPONSES, model["respond"], **context)
    if respond.needs_causal and not encode.is_causal:
        raise ConfigError(
            f'model.respond.kind = "{kind}" asks for words that this encoder has already read: '
            'model.encode.kind is "causal", or "recurrent" with directions = "forward"'
        )
    if respond.needs_directions and not encode.separates_directions:
        raise ConfigError(
            f'model.respond.kind = "{kind}" asks for words that this encoder has already read: '
            'model.encode.kind is "elmo", without mix'
        )
    if "generator" not in model:
        return TextModel(encode, respond)
    parts = {"encode_spec": model["encode"], "detector": encode, **context}
    return ReplacedTokenModel(encode, respond, construct(TokenGenerator, model["generator"], name="generator", **parts))


def build_memory_network(model: Mapping[str, Any], context: dict[str, Any]) -> MemoryNetwork:
    """Build a network with a memory; parts that share weights are tied here."""
    memory_spec = model["memory"]
    if "tied_words" in context:  # the ids of the words that the memory's keys are tied to
        memory_spec = {**memory_spec, "tied": context["tied_words"]}
    memory = build(MEMORIES, memory_spec, **context)
    encoders = select_kinds(ENCODERS, reads_texts=True)
    encode = build(encoders, model["encode"], tables=memory.num_tables, **context)
    if context.get("unseen") and "unseen" not in parameters_of(type(encode)):
        raise ConfigError(
            "data.unseen gives ids to words that training never met; model.encode.kind is then "
            "'context' or 'exact', which can read them, or set data.unseen=0"
        )
    if memory_spec.get("tied"):
        memory.words = encode.words  # word vectors that are keys
    respond = build(select_kinds(RESPONSES, source="memory"), model["respond"], **context)
    if respond.tied:
        if not memory.ties_answers:
            raise ConfigError(
                "respond.tied = true needs a memory whose last table holds its values, such as "
                "memn2n with tying = 'adjacent'; set model.respond.tied=false"
            )
        respond.table = encode.tables[-1]
    context["words"] = encode.words  # the word vectors, for parts that share them
    if "fuse" in model and "segmenter" in model:
        raise ConfigError("model.segmenter and model.fuse do not go together; leave one of them out")
    ask, fuse, segment = (
        build(constructors, model[key], **context) if key in model else None
        for key, constructors in (("ask", ENCODERS), ("fuse", FUSIONS), ("segmenter", SEGMENTERS))
    )
    return MemoryNetwork(encode, memory, respond, ask=ask, fuse=fuse, segment=segment)


def build_segment_model(model: Mapping[str, Any], context: dict[str, Any]) -> SegmentModel | SegmentTextModel:
    """Build a network that reads a text segment by segment and carries a memory along.

    It wraps an encoder of tokens, whose word vectors the response shares. It answers with words
    from memory alone, or with classes, tags or spans of the text.
    """
    if conflicting_keys := [key for key in KEYS_WITHOUT_SEGMENTS if key in model]:
        raise ConfigError(f"model.segments and model.{conflicting_keys[0]} do not go together; leave one out")
    encode = build(select_kinds(ENCODERS, reads_texts=False), model["encode"], **context)
    memories = select_kinds(MEMORIES, carries_segments=True)
    memory = build(memories, model["memory"], **context) if "memory" in model else None
    if memory is not None and encode.memory_length:
        raise ConfigError(
            "model.encode.memory_length is a memory by itself, of cached states: leave out model.memory, "
            "or set model.encode.memory_length=0"
        )
    context["words"] = encode.embeddings.tokens
    responses = select_kinds(RESPONSES, source="carried memory") | select_kinds(RESPONSES, reads_segments=True)
    respond = build(responses, model["respond"], **context)
    parts = {"encode": encode, "memory": memory, "respond": respond}
    if respond.reads_segments:
        if memory is None or "mass" in model:
            raise ConfigError(
                f"model.segments with model.respond.kind = {kind_name(model['respond'])!r} needs "
                "model.memory, and takes no model.mass"
            )
        if getattr(respond, "relevance", None) is not None:
            raise ConfigError("model.respond.relevance and model.segments do not go together; leave one out")
        return construct(SegmentTextModel, model["segments"], name="segments", **parts)
    if "mass" in model:
        parts["mass"] = construct(MaskedLayer, model["mass"], name="mass", **context)
    return construct(SegmentModel, model["segments"], name="segments", **parts)


def check_model_parts(model: Mapping[str, Any], sizes: Mapping[str, Any]) -> Any:
    """Check that the parts of ``[model]`` fit; return a network without values.

    The network is on the meta device and takes no memory, unless a part fails there: then a real
    one shows whether the part is to blame. No random number of the caller's is drawn.
    """
    network = build_on_meta(partial(build_model, model, sizes))
    check_memory(network)
    with torch.random.fork_rng(devices=[]):
        try:
            with torch.device("meta"):
                run_on_dummy(network, sizes)
        except (RuntimeError, IndexError, ValueError):
            network = build_model(model, sizes)
            check_parts_fit(network, sizes)
    return network


def check_parts_fit(network: Any, sizes: Mapping[str, int]) -> None:
    """Run a new network on a tiny batch; raise if its parts do not fit."""
    try:
        run_on_dummy(network, sizes)
    except (RuntimeError, IndexError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"the parts of [model] do not fit together: {reason}") from None


@torch.no_grad()
def run_on_dummy(network: Any, sizes: Mapping[str, int]) -> None:
    """Run a network on its own tiny batch."""
    with evaluating(network):
        network(network.dummy_inputs(sizes))


def check_model(model: Mapping[str, Any]) -> None:
    """Check that ``[model]`` has the required keys, no unknown ones, and a valid width."""
    if unknown_keys := [key for key in model if key not in REQUIRED_KEYS + OPTIONAL_KEYS]:
        allowed_keys = join_words(REQUIRED_KEYS + OPTIONAL_KEYS)
        raise ConfigError(f"[model] does not take {unknown_keys[0]!r}; it takes {allowed_keys}")
    if missing_keys := [key for key in REQUIRED_KEYS if key not in model]:
        raise ConfigError(f"[model] needs {join_words(missing_keys)}")
    if "generator" in model and ("memory" in model or "segments" in model):
        raise ConfigError("model.generator is for a network without a memory; leave out model.memory and segments")
    if not matches_type(model["width"], int) or model["width"] < 1:
        raise ConfigError(f"model.width is a whole number from 1 on, not {model['width']!r}")
    check_numbers(model["width"], "model.width")
