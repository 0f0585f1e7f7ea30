"""Read a text of any length into a state, go on with it, and answer from it alone.

Shapes: b documents (1), s slots, k hops, h heads, p units of a segment.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemic.data.long_context.batches import Asked, Document, filled, framed_by
from mnemic.data.long_context.hide import Piece, cut
from mnemic.encode.precision import Precision, rounding
from mnemic.models.inputs import Segments
from mnemic.models.segment_model import Carrier
from mnemic.predict.extract_answer import pointed, stretches
from mnemic.predict.memory_state import State, StateError, Text, fingerprint, read_state, thinned
from mnemic.predict.results import Recollected
from mnemic.predict.slot_evidence import evidence_of, slots_read
from mnemic.respond.generate import greedy
from mnemic.text.rules import breaks_of, ends_of

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

AT_ONCE = 64  # segments that are encoded together
LONGEST = 8  # tokens of an answer


def remember(
    checkpoint: "Checkpoint",
    text: str,
    state: State | None = None,
    *,
    name: str | PathLike[str] = "",
    precision: Precision = "auto",
    told: Callable[[int, int], None] = lambda seen, total: None,
) -> State:
    """Read ``text``, all of it; with ``state``, after what is already remembered.

    ``name`` says where it came from, such as a path, so that evidence can be quoted from there.
    Segments are encoded in a ``precision`` of ``mnemic.encode.for_inference``. ``told`` hears now
    and then how many of its tokens were read, and how many there are.
    """
    if not isinstance(text, str):
        raise ValueError(
            f"remember takes a text as a str, not {type(text).__name__}; of a file: "
            "Path(…).read_text(encoding='utf-8')"
        )
    if not isinstance(name, str | PathLike):
        raise ValueError(f"name is a str or a path, not {type(name).__name__}")
    network, room = carrier_of(checkpoint), checkpoint.sizes["longest"] - 2
    before = empty_state(checkpoint, network) if state is None else checked(state, network)
    paragraphs = bool(checkpoint.recipe["data"].get("paragraphs"))
    pieces, spans = units(text, checkpoint.tokenizer, network.unit, room, paragraphs=paragraphs)
    count = sum(len(piece.ids) for piece in pieces)
    after = before
    for after in read_on(checkpoint, network, before, cut(pieces, room), precision):
        told(after.seen - before.seen, count)
    where = torch.tensor(spans, dtype=torch.long).view(-1, 2) + before.characters
    return replace(
        after,
        spans=torch.cat([before.spans, where]),
        characters=before.characters + len(text),
        texts=(*before.texts, Text.of(text, str(name))),
        total=before.total + count,
        origin=checkpoint.origin or before.origin,
    )


@torch.no_grad()
def ask(
    checkpoint: "Checkpoint", state: State, question: str, *, text: str | None = None
) -> Recollected:
    """Answer from memory alone; the evidence says which stretches of the text it read.

    A network that was never taught to say words has none: its answer is what it read most. With
    the ``text`` that was read the shipped reader points at words in that, unless it sees no answer.
    As long as anything is kept, a network that speaks says something, however little that has to do
    with the question; of a memory that holds nothing the answer is empty: no words, no evidence.
    """
    network, words = carrier_of(checkpoint), checkpoint.tokenizer
    checked(state, network)
    if not isinstance(question, str):
        raise ValueError(f"a question is a str, not {type(question).__name__}")
    if not question.strip():
        raise ValueError("the question is empty; ask for example 'Where is Mary?'")
    if not state.filled:
        return Recollected("", 0.0, (), (), state.seen, state.total)
    network.eval()
    inputs = segments_of(checkpoint, [[]], question)
    memory = placed(state.memory, network)
    _, reading, begin = network.asked(memory, inputs)
    sources, shares = state.memory.origins  # 1 s r
    read = reading.weights.mean((1, 2, 3))[0].cpu()  # b k h 1 s → s
    slots = slots_read(read, sources[0], shares[0], state.spans.tolist())
    evidence = evidence_of(slots)
    told = None if text is None else stretches(state, text, evidence)
    answer, chance = "", max((own.weight for own in slots), default=0.0)
    if speaks(checkpoint):
        answer, chance = said(network, words, begin)
    elif told is not None:
        answer, chance = pointed(question, told)
    return Recollected(answer, chance, evidence, slots, state.seen, state.total)


def speaks(checkpoint: "Checkpoint") -> bool:
    """Whether a network was taught to say words; else it only finds."""
    return bool(checkpoint.recipe["objective"].get("pred", 1.0))


def said(network: Carrier, words: Any, begin: Tensor) -> tuple[str, float]:
    """The likeliest words, one after another, and how likely they are."""
    start = torch.tensor([words.cls], device=begin.device)
    saying = network.respond.saying(begin.squeeze(1))
    found = greedy(network.respond.step, saying, start, end=words.sep, most=LONGEST)
    told = [word for word in found.words[0, 0].tolist() if word != words.sep]
    return words.decode(told), float(found.scores[0, 0].exp())


def load_state(checkpoint: "Checkpoint", path: str | Path) -> State:
    """What ``State.save`` wrote; one of another network is refused."""
    return checked(read_state(path), carrier_of(checkpoint))


def empty_state(checkpoint: "Checkpoint", network: Carrier) -> State:
    """Before anything was read."""
    words = network.encode.embeddings.tokens
    like = torch.zeros(1, 0, network.encode.width, dtype=words.dtype)
    return State(
        kind=checkpoint.recipe["model"]["memory"]["kind"],
        network=fingerprint(network),
        memory=network.empty(1, like),
        spans=torch.zeros(0, 2, dtype=torch.long),
        worth=torch.zeros(0),
        history=torch.zeros(0, network.memory.slots, dtype=torch.int32),
        origin=checkpoint.origin,
    )


@torch.no_grad()
def read_on(
    checkpoint: "Checkpoint",
    network: Carrier,
    state: State,
    segments: Iterator[list[Piece]],
    precision: Precision,
) -> Iterator[State]:
    """The states after some more segments, a few of which are encoded at a time."""
    network.eval()
    memory, worth, looks = placed(state.memory, network), [state.worth], [state.history]
    stride, count, seen = state.stride, state.segments, state.seen
    while (part := list(islice(segments, AT_ONCE))) and any(part):
        inputs = segments_of(checkpoint, part)
        with rounding(device_of(network), precision):
            encoded = network.encoded(inputs)
        for number, step in enumerate(network.steps(memory, encoded)):
            memory, count = step.state, count + 1
            if step.written.stored is not None:
                worth.append(step.written.stored[encoded.seen[:, number]].sigmoid().float().cpu())
            if count % stride == 0:
                looks.append(held(memory, network.memory.slots))
        seen += int(inputs.inside.sum())
        every, stride = thinned(torch.cat(looks), stride)
        looks, worth = [every], [torch.cat(worth)]
        yield replace(
            state, memory=placed(memory, None), worth=worth[0], history=every,
            stride=stride, segments=count, seen=seen,
        )  # fmt: skip


def held(memory: Any, slots: int) -> Tensor:
    """The unit that each slot holds most of, 1 s; -1 = none."""
    sources, shares = memory.origins  # 1 s r
    most = sources.gather(-1, shares.argmax(-1, keepdim=True)).squeeze(-1).to("cpu", torch.int32)
    return torch.cat([most, most.new_full((1, slots - most.shape[1]), -1)], 1)


def units(
    text: str, words: Any, unit: str, room: int, *, paragraphs: bool = False
) -> tuple[list[Piece], list[tuple[int, int]]]:
    """A text's sentences in tokens, and where each unit, token or sentence, stands in it."""
    encoded = words.encode(text, special=False)
    ids, offsets = np.array(encoded.ids, dtype=np.int32), encoded.offsets
    begins = np.array([start for start, _ in offsets], dtype=np.int64)
    cuts = [0, *np.searchsorted(begins, ends_of(text)).tolist(), len(ids)]
    firsts = [0, *np.searchsorted(begins, breaks_of(text)).tolist(), len(ids)]
    opens = {first: end - first for first, end in pairwise(firsts)} if paragraphs else {}
    pieces, spans = [], []
    for first, end in pairwise(cuts):
        for start in range(first, end, room):
            stop = min(start + room, end)
            pieces.append(Piece(ids[start:stop], opens=opens.get(start, 0)))
            spans.append((offsets[start][0], offsets[stop - 1][1]))
    return pieces, (list(offsets) if unit == "tokens" else spans)


def segments_of(
    checkpoint: "Checkpoint", part: Sequence[list[Piece]], question: str = ""
) -> Segments:
    """Some segments of one document, and a question, where the network is."""
    words: Any = checkpoint.tokenizer
    asked = framed_by(np.array(words.encode(question, special=False).ids, dtype=np.int64), words)
    most = checkpoint.network.encode.longest
    if most is not None and len(asked) > most:
        raise ValueError(
            f"the question has {len(asked) - 2} tokens, and this network reads at most {most - 2}; "
            "ask a shorter one"
        )
    none = np.zeros(0, dtype=np.int64)
    document = Document(iter(()), Asked((), none, none, (), 0))
    found = filled([document], [list(part)], words, checkpoint.sizes["longest"])
    device = device_of(checkpoint.network)
    tokens, sentences, _ = (torch.from_numpy(one).to(device) for one in found)
    inside = sentences >= 0
    query = torch.from_numpy(asked).long().unsqueeze(0).to(device)
    edge = (tokens == words.cls) | (tokens == words.sep)
    empty = query[:, :0]
    return Segments(
        tokens, inside | edge, inside, query, query >= 0, empty, sentences=sentences
    )  # fmt: skip


def carrier_of(checkpoint: "Checkpoint") -> Carrier:
    network = checkpoint.network
    if not isinstance(network, Carrier) or network.memory is None:
        raise ValueError(
            "this network reads no text into a memory that can be asked; bert-mass does, which "
            "comes with mnemic, and so does what recipes with model.carry train, such as keeps"
        )
    if network.tokens == "masked":
        raise ValueError(
            "this network stores masked words alone (model.carry.tokens = 'masked'), and a text "
            "that is read has none: train one with model.carry.tokens = 'controller'"
        )
    return network


def checked(state: State, network: Carrier) -> State:
    if not isinstance(state, State):
        raise StateError(
            f"expected a State, not {type(state).__name__}; load_state(PATH) reads one that was "
            "saved, remember(TEXT) makes one"
        )
    if state.network != fingerprint(network):
        other = f", {state.origin}," if state.origin else ""
        raise StateError(
            f"this memory was written by another network{other} or by this one before it was "
            "trained further, and can be read by no other; ask the one that wrote it, or read the "
            "text again (mnemic read --fresh)"
        )
    return state


def placed(memory: Any, network: Carrier | None) -> Any:
    """The memory's tensors where the network is, or without one on the CPU."""
    device = torch.device("cpu") if network is None else device_of(network)
    return tree_map(lambda part: part.to(device), memory)


def device_of(network: Any) -> torch.device:
    return next(network.parameters()).device
