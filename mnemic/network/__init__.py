"""Input → Generalization → Output → Response, joined in one ``forward``.

Shapes: u texts, w words, b batch, n inputs, m queries, s slots, d width.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode import ENCODERS, FUSIONS, WHOLE, TransformerEncoder
from mnemic.encode.masked_layer import MaskedLayer
from mnemic.encode.segment import SEGMENTERS
from mnemic.memory import CONTROLLED, MEMORIES, Reading, Written
from mnemic.memory.slots import slots_of
from mnemic.network.carrier import Carrier
from mnemic.network.memory_reader import MemoryReader
from mnemic.network.reader import Read as Read
from mnemic.network.reader import Reader as Reader
from mnemic.network.reader import Row as Row
from mnemic.network.reader import Windows as Windows
from mnemic.network.reader import take as take
from mnemic.network.segments import IGNORE as IGNORE
from mnemic.network.segments import Segments
from mnemic.recipe import ConfigError, build, fill, fits, listed, named
from mnemic.respond import FROM_MEMORY, RESPONSES, WITHOUT_MEMORY

PARTS = ("width", "encode", "respond")
# What only some networks have.
EXTRA = ("memory", "ask", "fuse", "segment", "start", "takes", "carry", "mass")
ALONE = ("ask", "fuse", "segment")  # parts of networks that carry no memory across segments
CARRIED = (*FROM_MEMORY, "classes", "spans", "tags")  # responses of networks that do


class Inputs(NamedTuple):
    """What a network reads. Each different text stands in ``texts`` once, however often it is used.

    So nothing is computed for padding, and stories that share sentences share the work.
    """

    texts: Tensor  # u w, word ids
    mask: Tensor  # u w, True = a real word
    story: Tensor  # b n, rows of texts in the order they were said; -1 = nothing there
    question: Tensor  # b m, rows of texts
    rolls: Tensor | None = None  # b r, uniform random numbers while training
    values: Tensor | None = None  # b n, rows of texts: what a slot gives, if not what finds it
    candidates: Tensor | None = None  # c, word ids: the only answers that are scored


class Output(NamedTuple):
    """Scores of the answers, and everything that shows how they came about."""

    scores: Tensor  # b m v
    reading: Reading
    written: Written
    segments: Tensor | None = None  # b n, how badly sentences can be told apart, while learning to


class Network(nn.Module):
    """The four parts. Every memory network of the library is this class with other parts.

    I is ``encode``, text by text; ``ask`` reads questions instead, where a network reads them in
    another way; ``fuse`` lets the sentences of a story know of each other. With ``segment`` a story
    is a stream of words outside training, and what is written are the segments it is cut into;
    ``written.weights`` still tell of sentences.
    """

    def __init__(
        self,
        encode: nn.Module,
        memory: Any,
        respond: nn.Module,
        *,
        ask: nn.Module | None = None,
        fuse: nn.Module | None = None,
        segment: Any = None,
    ) -> None:
        super().__init__()
        self.encode, self.ask, self.fuse, self.segment = encode, ask, fuse, segment
        self.memory = memory
        self.respond = respond

    @property
    def rolls(self) -> int:
        """How many uniform random numbers an example needs while training."""
        return self.memory.rolls

    def forward(self, inputs: Inputs, follow: Tensor | None = None) -> Output:
        """``follow`` (b m f): the sentences to be read, hop by hop, where reads are taught."""
        story, seen, query = self.input(inputs)
        segments = shares = None
        if self.segment is not None and self.training:
            segments = take(self.segment.lost(inputs.texts, inputs.mask), inputs.story.clamp(min=0))
            segments = segments * seen
        elif self.segment is not None:
            story, seen, shares = self.stream(inputs)
        empty = self.memory.empty(seen.shape[0], story)
        written = self.memory.write(empty, story, seen)
        if shares is not None:
            written = written._replace(weights=shares @ written.weights)
        slots = None if follow is None else slots_of(follow, written.weights)
        reading = self.memory.read(written.state, query, follow=slots, rolls=inputs.rolls)
        ranked = {} if inputs.candidates is None else {"candidates": inputs.candidates}
        scores = self.respond(query, reading, story, seen, **ranked)
        return Output(scores, reading, written, segments)

    def input(self, inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
        """I: the story's states (b n …), which of them are real (b n), the questions' (b m …)."""
        states = self.encode(inputs.texts, inputs.mask)  # u …
        rows, seen = inputs.story.clamp(min=0), inputs.story >= 0  # b n
        story = take(states, rows)
        if inputs.values is not None:  # the first table is of the key, the others of the value
            given = take(states, inputs.values.clamp(min=0))
            story = torch.cat([story[:, :, :1], given[:, :, 1:]], 2)
        if self.fuse is not None:
            story = self.fuse(story, seen, take(inputs.mask, rows))
        if self.ask is None:
            return story, seen, take(states, inputs.question)
        words, mask = (take(part, inputs.question) for part in (inputs.texts, inputs.mask))
        asked = self.ask(words.flatten(0, 1), mask.flatten(0, 1))  # (b m) …
        return story, seen, asked.unflatten(0, inputs.question.shape)

    def stream(self, inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
        """The states of a story's segments, which are real, and their shares of the sentences."""
        rows, seen = inputs.story.clamp(min=0), inputs.story >= 0  # b n
        words = take(inputs.mask, rows) & seen.unsqueeze(-1)
        cut = self.segment(take(inputs.texts, rows), words)
        states = self.encode(cut.texts.flatten(0, 1), cut.mask.flatten(0, 1))
        return states.unflatten(0, rows.shape), cut.mask.any(-1), cut.shares


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
