"""Build the network of a recipe's ``[model]`` and check that its parts fit."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from mnemic.encode import ENCODERS, FUSIONS, TEXT_KINDS, TransformerEncoder
from mnemic.encode.masked_layer import MaskedLayer
from mnemic.encode.segmenter import SEGMENTERS
from mnemic.memory import MEMORIES, SEGMENT_MEMORIES
from mnemic.models.inputs import SegmentBatch
from mnemic.models.memory_network import MemoryNetwork, StoryInputs
from mnemic.models.segment_model import SegmentModel
from mnemic.models.segment_text_model import SegmentTextModel
from mnemic.models.text_model import TextModel, WindowBatch
from mnemic.recipe import ConfigError, build, construct, join_words, matches_type, parameters_of
from mnemic.respond import FROM_MEMORY, RESPONSES, WITHOUT_MEMORY

REQUIRED_KEYS = ("width", "encode", "respond")
# Sections that only some networks have.
OPTIONAL_KEYS = ("memory", "ask", "fuse", "segmenter", "init_from", "init_parts", "segments", "mass")
# Sections of networks that carry no memory from segment to segment.
KEYS_WITHOUT_SEGMENTS = ("ask", "fuse", "segmenter")
# Responses of networks that carry one.
SEGMENT_RESPONSES = (*FROM_MEMORY, "classes", "spans", "tags")


def build_model(model: Mapping[str, Any], sizes: Mapping[str, Any]) -> Any:
    """Build the network that a recipe's ``[model]`` describes.

    A ``MemoryNetwork``, or without ``memory`` a ``TextModel``; with ``segments`` a
    ``SegmentModel``, or, if it answers with classes, tags or spans, a ``SegmentTextModel``.
    ``sizes`` are facts of the data, such as the size of the vocabulary.
    """
    check_model(model)
    context = {"width": model["width"], **sizes}
    if "segments" in model:
        return build_segment_model(model, context)
    return build_memory_network(model, context) if "memory" in model else build_text_model(model, context)


def build_text_model(model: Mapping[str, Any], context: dict[str, Any]) -> TextModel:
    """Build a network without a memory: I over tokens and R over their states."""
    constructors = {kind: constructor for kind, constructor in ENCODERS.items() if kind not in TEXT_KINDS}
    encode = build(constructors, model["encode"], **context)
    kind = model["respond"].get("kind")
    if kind == "next-token" and is_bidirectional(model["encode"]):
        raise ConfigError(
            'model.respond.kind = "next-token" asks for words that this encoder has already read: '
            'model.encode.kind is "causal", or "recurrent" with directions = "forward"'
        )
    if kind in RESPONSES and kind not in WITHOUT_MEMORY:
        supported_kinds = join_words(WITHOUT_MEMORY)
        raise ConfigError(
            f"a response of kind {kind!r} needs a memory: add model.memory, or respond with {supported_kinds}"
        )
    context["words"] = encode.embeddings.tokens  # for responses that share them
    respond = build(RESPONSES, model["respond"], **context)
    has_segment_embeddings = isinstance(encode, TransformerEncoder) and encode.segments > 1
    return TextModel(encode, respond, segments=has_segment_embeddings)


def is_bidirectional(encode: Mapping[str, Any]) -> bool:
    """Tell whether an encoder's states depend on later tokens."""
    directions = encode.get("recurrent", {}).get("directions", "forward")
    return encode["kind"] != "causal" and (encode["kind"], directions) != ("recurrent", "forward")


def build_memory_network(model: Mapping[str, Any], context: dict[str, Any]) -> MemoryNetwork:
    """Build a network with a memory; parts that share weights are tied here."""
    memory = build(MEMORIES, resolve_tied_words(model["memory"], context), **context)
    constructors = {kind: ENCODERS[kind] for kind in TEXT_KINDS}
    encode = build(constructors, model["encode"], tables=memory.num_tables, **context)
    if context.get("unseen") and "unseen" not in parameters_of(type(encode)):
        raise ConfigError(
            "data.unseen gives ids to words that training never met; model.encode.kind is then "
            "'context' or 'exact', which can read them, or set data.unseen=0"
        )
    if model["memory"].get("tied"):
        memory.words = encode.words  # word vectors that are keys
    constructors = {kind: constructor for kind, constructor in RESPONSES.items() if kind not in WITHOUT_MEMORY}
    respond = build(constructors, model["respond"], **context)
    if respond.tied:
        if not memory.ties_answers:
            raise ConfigError(
                "respond.tied = true needs a memory whose last table holds its values, such as "
                "memn2n with tying = 'adjacent'; set model.respond.tied=false"
            )
        respond.table = encode.tables[-1]
    context["words"] = encode.words  # the word vectors, for parts that share them
    ask = build(ENCODERS, model["ask"], **context) if "ask" in model else None
    fuse = build(FUSIONS, model["fuse"], **context) if "fuse" in model else None
    if fuse is not None and "segmenter" in model:
        raise ConfigError("model.segmenter and model.fuse do not go together; leave one of them out")
    segment = build(SEGMENTERS, model["segmenter"], **context) if "segmenter" in model else None
    return MemoryNetwork(encode, memory, respond, ask=ask, fuse=fuse, segment=segment)


def resolve_tied_words(memory: Mapping[str, Any], context: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace the words that a memory's keys are tied to by their ids."""
    return {**memory, "tied": context["tied_words"]} if "tied_words" in context else memory


def build_segment_model(model: Mapping[str, Any], context: dict[str, Any]) -> SegmentModel | SegmentTextModel:
    """Build a network that reads a text segment by segment and carries a memory along.

    It wraps an encoder of tokens, whose word vectors the response shares. It answers with words
    from memory alone, or with classes, tags or spans of the text.
    """
    if conflicting_keys := [key for key in KEYS_WITHOUT_SEGMENTS if key in model]:
        raise ConfigError(f"model.segments and model.{conflicting_keys[0]} do not go together; leave one out")
    constructors = {kind: constructor for kind, constructor in ENCODERS.items() if kind not in TEXT_KINDS}
    encode = build(constructors, model["encode"], **context)
    constructors = {kind: MEMORIES[kind] for kind in SEGMENT_MEMORIES}
    memory = build(constructors, model["memory"], **context) if "memory" in model else None
    context["words"] = encode.embeddings.tokens
    constructors = {kind: RESPONSES[kind] for kind in SEGMENT_RESPONSES}
    parts = {"encode": encode, "memory": memory, "respond": build(constructors, model["respond"], **context)}
    if model["respond"]["kind"] not in FROM_MEMORY:
        if memory is None or "mass" in model:
            raise ConfigError(
                f"model.segments with model.respond.kind = {model['respond']['kind']!r} needs "
                "model.memory, and takes no model.mass"
            )
        parts["segments"] = isinstance(encode, TransformerEncoder) and encode.segments > 1
        return construct(SegmentTextModel, model["segments"], name="segments", **parts)
    if "mass" in model:
        parts["mass"] = construct(MaskedLayer, model["mass"], name="mass", **context)
    return construct(SegmentModel, model["segments"], name="segments", **parts)


@torch.no_grad()
def check_parts_fit(network: nn.Module, sizes: Mapping[str, int]) -> None:
    """Run a new network on a tiny batch; raise if its parts do not fit."""
    length = 3 if isinstance(network, MemoryNetwork) else sizes["max_length"]
    tokens = torch.ones(2, length, dtype=torch.long)
    inputs: Any = WindowBatch(tokens, tokens > 0, tokens, tokens > 0)
    if isinstance(network, SegmentTextModel):
        inputs = inputs._replace(document_windows=torch.tensor([[0, 1]]))
    if isinstance(network, TextModel) and "decoder_tokens" in parameters_of(type(network.respond).forward):
        inputs = inputs._replace(decoder_tokens=tokens)
    if isinstance(network, SegmentModel):
        segments = tokens.unsqueeze(1)  # b 1 n
        inputs = SegmentBatch(segments, segments > 0, segments > 0, tokens, tokens > 0, tokens, sentence_ids=segments)
    elif isinstance(network, MemoryNetwork):
        inputs = StoryInputs(tokens, tokens > 0, torch.tensor([[0, 1]]), torch.tensor([[1]]))
    try:
        network.eval()(inputs)
    except (RuntimeError, IndexError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"the parts of [model] do not fit together: {reason}") from None


def check_model(model: Mapping[str, Any]) -> None:
    """Check that ``[model]`` has the required keys, no unknown ones, and a valid width."""
    if unknown_keys := [key for key in model if key not in REQUIRED_KEYS + OPTIONAL_KEYS]:
        allowed_keys = join_words(REQUIRED_KEYS + OPTIONAL_KEYS)
        raise ConfigError(f"[model] does not take {unknown_keys[0]!r}; it takes {allowed_keys}")
    if missing_keys := [key for key in REQUIRED_KEYS if key not in model]:
        raise ConfigError(f"[model] needs {join_words(missing_keys)}")
    if not matches_type(model["width"], int) or model["width"] < 1:
        raise ConfigError(f"model.width is a whole number from 1 on, not {model['width']!r}")
