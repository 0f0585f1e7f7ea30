"""Build the network that a recipe's ``[model]`` describes, and check that its parts fit."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from mnemic.encode import ENCODERS, FUSIONS, WHOLE, TransformerEncoder
from mnemic.encode.masked_layer import MaskedLayer
from mnemic.encode.segmenter import SEGMENTERS
from mnemic.memory import CONTROLLED, MEMORIES
from mnemic.models.inputs import Segments
from mnemic.models.memory_network import Inputs, Network
from mnemic.models.segment_model import Carrier
from mnemic.models.segment_text_model import MemoryReader
from mnemic.models.text_model import Reader, Windows
from mnemic.recipe import ConfigError, build, fill, fits, listed, named
from mnemic.respond import FROM_MEMORY, RESPONSES, WITHOUT_MEMORY

PARTS = ("width", "encode", "respond")
# What only some networks have.
EXTRA = ("memory", "ask", "fuse", "segment", "start", "takes", "carry", "mass")
ALONE = ("ask", "fuse", "segment")  # parts of networks that carry no memory across segments
CARRIED = (*FROM_MEMORY, "classes", "spans", "tags")  # responses of networks that do


def assemble(model: Mapping[str, Any], sizes: Mapping[str, Any]) -> Any:
    """Make the network a recipe's ``[model]`` describes; ``sizes`` are facts of the data.

    A ``Network``, or without a ``memory`` a ``Reader``; with ``carry`` a ``Carrier``, or, where it
    answers with classes, tags or spans, a ``MemoryReader``.
    """
    check_model(model)
    given = {"width": model["width"], **sizes}
    if "carry" in model:
        return carrying(model, given)
    return with_memory(model, given) if "memory" in model else without_memory(model, given)


def without_memory(model: Mapping[str, Any], given: dict[str, Any]) -> Reader:
    """I over tokens and R over their states."""
    kinds = {kind: maker for kind, maker in ENCODERS.items() if kind not in WHOLE}
    encode = build(kinds, model["encode"], **given)
    kind = model["respond"].get("kind")
    if kind == "next" and looks_ahead(model["encode"]):
        raise ConfigError(
            'model.respond.kind = "next" asks for words that this encoder has already read: '
            'model.encode.kind is "causal", or "recurrent" with directions = "forward"'
        )
    if kind in RESPONSES and kind not in WITHOUT_MEMORY:
        known = listed(WITHOUT_MEMORY)
        raise ConfigError(
            f"a response of kind {kind!r} needs a memory: add model.memory, or respond with {known}"
        )
    given["words"] = encode.embeddings.tokens  # for responses that share them
    respond = build(RESPONSES, model["respond"], **given)
    told_apart = isinstance(encode, TransformerEncoder) and encode.segments > 1
    return Reader(encode, respond, segments=told_apart)


def looks_ahead(encode: Mapping[str, Any]) -> bool:
    """Whether a state knows of the tokens behind it."""
    directions = encode.get("recurrent", {}).get("directions", "forward")
    return encode["kind"] != "causal" and (encode["kind"], directions) != ("recurrent", "forward")


def with_memory(model: Mapping[str, Any], given: dict[str, Any]) -> Network:
    """All four parts; those that share weights get each other's."""
    memory = build(MEMORIES, numbered(model["memory"], given), **given)
    kinds = {kind: ENCODERS[kind] for kind in WHOLE}
    encode = build(kinds, model["encode"], tables=memory.tables, **given)
    if given.get("unseen") and "unseen" not in named(type(encode)):
        raise ConfigError(
            "data.unseen gives ids to words that training never met; model.encode.kind is then "
            "'context' or 'exact', which can read them, or set data.unseen=0"
        )
    if model["memory"].get("tied"):
        memory.words = encode.words  # whose vectors are keys
    kinds = {kind: maker for kind, maker in RESPONSES.items() if kind not in WITHOUT_MEMORY}
    respond = build(kinds, model["respond"], **given)
    if respond.tied:
        if not memory.ties:
            raise ConfigError(
                "respond.tied = true needs a memory whose last table holds its values, such as "
                "memn2n with tying = 'adjacent'; set model.respond.tied=false"
            )
        respond.table = encode.tables[-1]
    given["words"] = encode.words  # the word vectors, for parts that share them
    ask = build(ENCODERS, model["ask"], **given) if "ask" in model else None
    fuse = build(FUSIONS, model["fuse"], **given) if "fuse" in model else None
    if fuse is not None and "segment" in model:
        raise ConfigError("model.segment and model.fuse do not go together; leave one of them out")
    segment = build(SEGMENTERS, model["segment"], **given) if "segment" in model else None
    return Network(encode, memory, respond, ask=ask, fuse=fuse, segment=segment)


def numbered(memory: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The memory's options, with words that keys are tied to as the ids that the data gave them."""
    return {**memory, "tied": given["tied_words"]} if "tied_words" in given else memory


def carrying(model: Mapping[str, Any], given: dict[str, Any]) -> Carrier | MemoryReader:
    """A network that reads in segments: an encoder of tokens, wrapped; its word vectors shared.

    It answers with words from memory alone, or of the text itself with classes, tags or spans.
    """
    if wrong := [key for key in ALONE if key in model]:
        raise ConfigError(f"model.carry and model.{wrong[0]} do not go together; leave one out")
    kinds = {kind: maker for kind, maker in ENCODERS.items() if kind not in WHOLE}
    encode = build(kinds, model["encode"], **given)
    kinds = {kind: MEMORIES[kind] for kind in CONTROLLED}
    memory = build(kinds, model["memory"], **given) if "memory" in model else None
    given["words"] = encode.embeddings.tokens
    kinds = {kind: RESPONSES[kind] for kind in CARRIED}
    parts = {"encode": encode, "memory": memory, "respond": build(kinds, model["respond"], **given)}
    if model["respond"]["kind"] not in FROM_MEMORY:
        if memory is None or "mass" in model:
            raise ConfigError(
                f"model.carry with model.respond.kind = {model['respond']['kind']!r} needs "
                "model.memory, and takes no model.mass"
            )
        parts["segments"] = isinstance(encode, TransformerEncoder) and encode.segments > 1
        return fill(MemoryReader, model["carry"], name="carry", **parts)
    if "mass" in model:
        parts["mass"] = fill(MaskedLayer, model["mass"], name="mass", **given)
    return fill(Carrier, model["carry"], name="carry", **parts)


@torch.no_grad()
def check_parts(network: nn.Module, sizes: Mapping[str, int]) -> None:
    """Let a new network read a little, so that parts that do not fit are noticed at once."""
    longest = 3 if isinstance(network, Network) else sizes["longest"]
    words = torch.ones(2, longest, dtype=torch.long)
    inputs: Any = Windows(words, words > 0, words, words > 0)
    if isinstance(network, MemoryReader):
        inputs = inputs._replace(documents=torch.tensor([[0, 1]]))
    if isinstance(network, Reader) and "said" in named(type(network.respond).forward):
        inputs = inputs._replace(said=words)
    if isinstance(network, Carrier):
        each = words.unsqueeze(1)  # b 1 n
        inputs = Segments(each, each > 0, each > 0, words, words > 0, words, sentences=each)
    elif isinstance(network, Network):
        inputs = Inputs(words, words > 0, torch.tensor([[0, 1]]), torch.tensor([[1]]))
    try:
        network.eval()(inputs)
    except (RuntimeError, IndexError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"the parts of [model] do not fit together: {reason}") from None


def check_model(model: Mapping[str, Any]) -> None:
    """All parts are there and nothing else is; the width, which no part checks, is a width."""
    if unknown := [key for key in model if key not in PARTS + EXTRA]:
        takes = listed(PARTS + EXTRA)
        raise ConfigError(f"[model] does not take {unknown[0]!r}; it takes {takes}")
    if missing := [key for key in PARTS if key not in model]:
        raise ConfigError(f"[model] needs {listed(missing)}")
    if not fits(model["width"], int) or model["width"] < 1:
        raise ConfigError(f"model.width is a whole number from 1 on, not {model['width']!r}")
