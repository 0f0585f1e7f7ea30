"""Read a text of any length into a memory that can be kept, asked, edited and read on.

What is remembered is a value: tensors, and where in the text each slot came from. It holds no copy
of the text; evidence is offsets, which quote it as it was given.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mnemic.data.long.hide import Piece, cut
from mnemic.data.long.tensors import Asked, Document, filled, framed_by
from mnemic.learn.checkpoint import Checkpoint, weights_of
from mnemic.memory.bert_mass import Blended
from mnemic.memory.keeps import Chosen
from mnemic.network.carrier import Carrier
from mnemic.network.segments import Segments
from mnemic.objectives.bert_mass import origins
from mnemic.respond.generate import greedy
from mnemic.text.split import ends_of

AT_ONCE = 64  # segments that are encoded together
LONGEST = 8  # tokens of an answer
STATES: dict[str, Any] = {"bert-mass": Blended, "keeps": Chosen}


class MemoryFileError(ValueError):
    """A memory cannot be read or does not belong to this network; the message says why."""


class Source(NamedTuple):
    """A stretch of what was read, and how much of the answer's reading came from it."""

    start: int  # in characters, of all texts that were read, one after another
    end: int
    weight: float


@dataclass(frozen=True)
class Recollection:
    """An answer from memory alone, with where it was read."""

    text: str
    probability: float
    evidence: tuple[Source, ...]  # most read first
    tokens: int  # all that were ever read: nothing is cut off


@dataclass(frozen=True)
class Remembered:
    """What a network remembers of what it has read; every change makes a new one."""

    kind: str  # of the memory
    model: str  # whose it is: another network could not read it
    state: Any
    spans: Tensor  # u 2, where each unit that was read stands in the text
    characters: int
    tokens: int

    def save(self, path: str | Path) -> None:
        """One file of plain tensors, written beside its place and renamed."""
        path = Path(path)
        parts = {f"state.{name}": part for name, part in self.state._asdict().items()}
        parts |= {"spans": self.spans}
        told = {
            name: str(getattr(self, name)) for name in ("kind", "model", "characters", "tokens")
        }
        beside = path.with_name(f".{path.name}.new")
        save_file({name: part.contiguous() for name, part in parts.items()}, beside, metadata=told)
        beside.replace(path)

    def forget(self, model: Checkpoint, start: int, end: int) -> "Remembered":
        """Clear every slot that a unit within ``text[start:end]`` went into; the controller too.

        Exact forgetting is reading again without it: what other tokens knew of it is still there.
        """
        inside = (self.spans[:, 0] < end) & (self.spans[:, 1] > start)
        numbers = inside.nonzero().flatten()
        if not len(numbers):
            return self
        first, last = int(numbers.min()), int(numbers.max()) + 1
        memory = carrier_of(model).memory
        return replace(self, state=memory.forget(self.state, first, last))


def remember(model: Checkpoint, text: str, before: Remembered | None = None) -> Remembered:
    """Read ``text``, all of it; with ``before``, after what is already remembered."""
    network, words = carrier_of(model), model.tokenizer
    own = fingerprint(network)
    if before is not None and before.model != own:
        raise MemoryFileError("this memory was written by another network; read the text again")
    state = network.empty(1, like(network)) if before is None else before.state
    pieces, spans = units(text, words, network.unit, model.sizes["longest"] - 2)
    segments = cut(pieces, model.sizes["longest"] - 2)
    state = read_on(network, model, state, segments)
    shift = 0 if before is None else before.characters
    where = torch.tensor(spans, dtype=torch.long).view(-1, 2) + shift
    earlier = where[:0] if before is None else before.spans
    tokens = sum(len(piece.ids) for piece in pieces) + (0 if before is None else before.tokens)
    kind = model.recipe["model"]["memory"]["kind"]
    spans_of_all = torch.cat([earlier, where])
    return Remembered(kind, own, state, spans_of_all, shift + len(text), tokens)


@torch.no_grad()
def read_on(
    network: Carrier, model: Checkpoint, state: Any, segments: Iterator[list[Piece]]
) -> Any:
    """The memory after some more segments, a few at a time."""
    network.eval()
    while part := list(islice(segments, AT_ONCE)):
        if not any(part):
            break
        inputs = segments_of(model, part)
        state, _, _ = network.carry(state, network.encoded(inputs))
    return state


@torch.no_grad()
def recollect(
    model: Checkpoint, memory: Remembered, question: str, *, most: int = 5
) -> Recollection:
    """Answer from memory alone; the evidence says which stretches of the text it read."""
    network, words = carrier_of(model), model.tokenizer
    if memory.model != fingerprint(network):
        raise MemoryFileError("this memory was written by another network; read the text again")
    if not question.strip():
        raise ValueError("the question is empty; ask for example 'Where is Mary?'")
    network.eval()
    inputs = segments_of(model, [[]], question)
    _, reading, begin = network.asked(memory.state, inputs)
    start = torch.tensor([words.cls])  # type: ignore[attr-defined]
    end = words.sep  # type: ignore[attr-defined]
    saying = network.respond.saying(begin.squeeze(1))
    said = greedy(network.respond.step, saying, start, end=end, most=LONGEST)
    text = words.decode([word for word in said.words[0, 0].tolist() if word != end])
    found = evidence(memory, reading.weights)[:most]
    return Recollection(text, float(said.scores[0, 0].exp()), tuple(found), memory.tokens)


def evidence(memory: Remembered, weights: Tensor) -> list[Source]:
    """How much was read of each unit, most first: ``weights`` b k h m s times the slots' shares."""
    sources, shares = origins(memory.state)  # 1 s r
    read = weights.mean((1, 2, 3))[0]  # s
    found: dict[int, float] = {}
    for slot, (numbers, parts) in enumerate(zip(sources[0].tolist(), shares[0].tolist())):
        for number, part in zip(numbers, parts):
            if number >= 0 and part > 0:
                found[number] = found.get(number, 0.0) + float(read[slot]) * part
    ranked = sorted(found.items(), key=lambda one: -one[1])
    spans = memory.spans.tolist()
    return [Source(spans[number][0], spans[number][1], weight) for number, weight in ranked]


def load_memory(path: str | Path) -> Remembered:
    """What ``save`` wrote."""
    if not Path(path).is_file():
        raise MemoryFileError(f"there is no memory {str(path)!r}; write one with its save")
    try:
        with safe_open(path, "pt") as file:
            told = file.metadata() or {}
            parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise MemoryFileError(f"{path} is no memory: {error}") from None
    if told.get("kind") not in STATES:
        raise MemoryFileError(f"{path} holds no memory of a kind known here: {told.get('kind')!r}")
    form = STATES[told["kind"]]
    state = form(**{name: parts[f"state.{name}"] for name in form._fields})
    counts = (int(told["characters"]), int(told["tokens"]))
    return Remembered(told["kind"], told["model"], state, parts["spans"], *counts)


def units(text: str, words: Any, unit: str, room: int) -> tuple[list[Piece], list[tuple[int, int]]]:
    """A text's sentences in tokens, and where each unit, token or sentence, stands in it."""
    encoded = words.encode(text, special=False)
    ids, offsets = np.array(encoded.ids, dtype=np.int32), encoded.offsets
    begins = np.array([start for start, _ in offsets], dtype=np.int64)
    cuts = [0, *np.searchsorted(begins, ends_of(text)).tolist(), len(ids)]
    pieces, spans = [], []
    for first, end in pairwise(cuts):
        for start in range(first, end, room):
            stop = min(start + room, end)
            pieces.append(Piece(ids[start:stop]))
            spans.append((offsets[start][0], offsets[stop - 1][1]))
    return pieces, (list(offsets) if unit == "tokens" else spans)


def segments_of(model: Checkpoint, part: Sequence[list[Piece]], question: str = "") -> Segments:
    """Some segments of one document, and a question."""
    words: Any = model.tokenizer
    asked = framed_by(np.array(words.encode(question, special=False).ids, dtype=np.int64), words)
    none = np.zeros(0, dtype=np.int64)
    document = Document(iter(()), Asked((), none, none, frozenset(), 0))
    found = filled([document], [list(part)], words, model.sizes["longest"])
    tokens, sentences, _ = (torch.from_numpy(one) for one in found)
    inside = sentences >= 0
    query = torch.from_numpy(asked).long().unsqueeze(0)
    edge = (tokens == words.cls) | (tokens == words.sep)
    empty = query[:, :0]
    return Segments(
        tokens, inside | edge, inside, query, query >= 0, empty, sentences=sentences
    )  # fmt: skip


def carrier_of(model: Checkpoint) -> Carrier:
    if not isinstance(model.network, Carrier) or model.network.memory is None:
        raise ValueError(
            "this network carries no memory across segments; train one with the recipe bert-mass "
            "or keeps"
        )
    return model.network


def like(network: Carrier) -> Tensor:
    """A tensor of the kind that the network's states have, 1 0 d."""
    words = network.encode.embeddings.tokens
    return torch.zeros(1, 0, network.encode.width, dtype=words.dtype)


def fingerprint(network: Carrier) -> str:
    """The same for the same weights: what one network wrote, another cannot read."""
    whole = sha256()
    for name, weight in sorted(weights_of(network).items()):
        whole.update(name.encode())
        whole.update(weight.float().numpy().tobytes())
    return whole.hexdigest()
