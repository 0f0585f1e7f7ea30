"""Read texts of any length into a memory state, and answer questions from it.

A unit is what is written into the memory: a token or a sentence.

Shapes: b documents (1), s slots, r units per slot, k hops, h heads.
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

from mnemic.data.long_context.batches import LongDocument, LongExample, add_special_tokens, fill_arrays
from mnemic.data.long_context.hide import SentenceTokens, cut_segments
from mnemic.encode.precision import Precision, bfloat16_autocast
from mnemic.models.inputs import SegmentBatch
from mnemic.predict.extract_answer import extract_answer, quote_evidence
from mnemic.predict.memory_state import State, StateError, TextRecord, hash_weights, load_state_file, thin_snapshots
from mnemic.predict.results import MemoryAnswer
from mnemic.predict.slot_evidence import merge_evidence, rank_slots
from mnemic.recipe import kind_name
from mnemic.respond.generate import greedy_search
from mnemic.text.rules import find_paragraph_starts, find_sentence_ends

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

SEGMENTS_PER_BATCH = 64  # segments that are encoded together: changes memory use only
MAX_ANSWER_TOKENS = 8  # of a generated answer


def read_text(
    checkpoint: "Checkpoint",
    text: str,
    state: State | None = None,
    *,
    name: str | PathLike[str] = "",
    precision: Precision = "auto",
    on_progress: Callable[[int, int], None] = lambda seen, total: None,
) -> State:
    """Read a complete text into a memory state, after what ``state`` already holds.

    ``name`` records the text's origin, such as a path, so that evidence can be quoted from there.
    ``precision`` is one of ``mnemic.encode.prepare_for_inference``. ``on_progress`` is called after
    each batch of segments with the number of tokens read and of all tokens.
    """
    if not isinstance(text, str):
        raise ValueError(
            f"remember takes a text as a str, not {type(text).__name__}; of a file: Path(…).read_text(encoding='utf-8')"
        )
    if not isinstance(name, str | PathLike):
        raise ValueError(f"name is a str or a path, not {type(name).__name__}")
    network, max_tokens = require_memory_model(checkpoint), checkpoint.sizes["max_length"] - 2
    before = create_empty_state(checkpoint, network) if state is None else check_state(state, network)
    paragraphs = bool(checkpoint.recipe["data"].get("paragraphs"))
    pieces, spans = split_into_units(text, checkpoint.tokenizer, network.unit, max_tokens, paragraphs=paragraphs)
    num_tokens = sum(len(piece.ids) for piece in pieces)
    after = before
    for after in read_segments(checkpoint, network, before, cut_segments(pieces, max_tokens), precision):
        on_progress(after.seen - before.seen, num_tokens)
    offsets = torch.tensor(spans, dtype=torch.long).view(-1, 2) + before.characters
    return replace(
        after,
        spans=torch.cat([before.spans, offsets]),
        characters=before.characters + len(text),
        texts=(*before.texts, TextRecord.from_text(text, str(name))),
        total=before.total + num_tokens,
        origin=checkpoint.origin or before.origin,
    )


@torch.no_grad()
def answer_from_memory(
    checkpoint: "Checkpoint", state: State, question: str, *, text: str | None = None
) -> MemoryAnswer:
    """Answer a question from a memory state, with the text spans it read.

    A network that was not trained to generate words answers with evidence only. If the ``text``
    that was read is passed, the shipped reader extracts an answer from that evidence, unless it
    sees none. A generating network always generates words, however unrelated to the question, as
    long as a slot is filled. With an empty memory the answer has neither words nor evidence.
    """
    network, tokenizer = require_memory_model(checkpoint), checkpoint.tokenizer
    check_state(state, network)
    if not isinstance(question, str):
        raise ValueError(f"a question is a str, not {type(question).__name__}")
    if not question.strip():
        raise ValueError("the question is empty; ask for example 'Where is Mary?'")
    if not state.filled:
        return MemoryAnswer("", 0.0, (), (), state.seen, state.total)
    network.eval()
    inputs = build_segment_batch(checkpoint, [[]], question)
    memory = move_memory(state.memory, network)
    _, reading, answer_state = network.read_question(memory, inputs)
    sources, shares = state.memory.origins  # 1 s r
    slot_weights = reading.weights.mean((1, 2, 3))[0].cpu()  # b k h 1 s → s
    slots = rank_slots(slot_weights, sources[0], shares[0], state.spans.tolist())
    evidence = merge_evidence(slots)
    passages = None if text is None else quote_evidence(state, text, evidence)
    answer, probability = "", max((slot.weight for slot in slots), default=0.0)
    if can_generate(checkpoint):
        answer, probability = decode_answer(network, tokenizer, answer_state)
    elif passages is not None:
        answer, probability = extract_answer(question, passages)
    return MemoryAnswer(answer, probability, evidence, slots, state.seen, state.total)


def can_generate(checkpoint: "Checkpoint") -> bool:
    """Return whether a network was trained to generate words; else it only finds evidence."""
    return bool(checkpoint.recipe["objective"].get("pred", 1.0))


def decode_answer(network: Any, tokenizer: Any, answer_state: Tensor) -> tuple[str, float]:
    """Decode an answer greedily; return its text and its probability."""
    start_ids = torch.tensor([tokenizer.cls], device=answer_state.device)
    decoder_state = network.respond.start_decoding(answer_state.squeeze(1))
    sequences = greedy_search(
        network.respond.step, decoder_state, start_ids, end_id=tokenizer.sep, max_tokens=MAX_ANSWER_TOKENS
    )
    token_ids = [token_id for token_id in sequences.tokens[0, 0].tolist() if token_id != tokenizer.sep]
    return tokenizer.decode(token_ids), float(sequences.log_probabilities[0, 0].exp())


def load_state(checkpoint: "Checkpoint", path: str | Path) -> State:
    """Load a state that ``State.save`` wrote; refuse the state of another network."""
    return check_state(load_state_file(path), require_memory_model(checkpoint))


def create_empty_state(checkpoint: "Checkpoint", network: Any) -> State:
    """Create the state of a network that has read nothing."""
    token_embeddings = network.encode.embeddings.tokens
    template = torch.zeros(1, 0, network.encode.width, dtype=token_embeddings.dtype)
    return State(
        kind=kind_name(checkpoint.recipe["model"]["memory"]),
        network=hash_weights(network),
        memory=network.empty_memory(1, template),
        spans=torch.zeros(0, 2, dtype=torch.long),
        worth=torch.zeros(0),
        history=torch.zeros(0, network.memory.num_slots, dtype=torch.int32),
        origin=checkpoint.origin,
    )


@torch.no_grad()
def read_segments(
    checkpoint: "Checkpoint", network: Any, state: State, segments: Iterator[list[SentenceTokens]], precision: Precision
) -> Iterator[State]:
    """Write segments into a memory; yield the state after each encoded batch of segments."""
    network.eval()
    memory, salience, snapshots = move_memory(state.memory, network), [state.worth], [state.history]
    stride, num_segments, num_seen = state.stride, state.segments, state.seen
    while (segment_batch := list(islice(segments, SEGMENTS_PER_BATCH))) and any(segment_batch):
        inputs = build_segment_batch(checkpoint, segment_batch)
        with bfloat16_autocast(network.device, precision):
            encoded = network.encode_segments(inputs)
        for number, step in enumerate(network.scan(memory, encoded)):
            memory, num_segments = step.state, num_segments + 1
            if step.written.salience_logits is not None:
                salience.append(step.written.salience_logits[encoded.mask[:, number]].sigmoid().float().cpu())
            if num_segments % stride == 0:
                snapshots.append(find_largest_units(memory, network.memory.num_slots))
        num_seen += int(inputs.text_mask.sum())
        history, stride = thin_snapshots(torch.cat(snapshots), stride)
        snapshots, salience = [history], [torch.cat(salience)]
        yield replace(
            state, memory=move_memory(memory, None), worth=salience[0], history=history,
            stride=stride, segments=num_segments, seen=num_seen,
        )  # fmt: skip


def find_largest_units(memory: Any, num_slots: int) -> Tensor:
    """Find the unit with the largest share of each slot (1 s); -1 is none."""
    sources, shares = memory.origins  # 1 s r
    largest = sources.gather(-1, shares.argmax(-1, keepdim=True)).squeeze(-1).to("cpu", torch.int32)
    return torch.cat([largest, largest.new_full((1, num_slots - largest.shape[1]), -1)], 1)


def split_into_units(
    text: str, tokenizer: Any, unit_kind: str, max_tokens: int, *, paragraphs: bool = False
) -> tuple[list[SentenceTokens], list[tuple[int, int]]]:
    """Split a text into sentences of tokens, and locate its units (tokens or sentences).

    A sentence longer than ``max_tokens`` is cut. Returns the sentences and each unit's character
    offsets. With ``paragraphs`` the first sentence of a paragraph carries the paragraph's length.
    """
    encoded = tokenizer.encode(text, special=False)
    ids, offsets = np.array(encoded.ids, dtype=np.int32), encoded.offsets
    token_starts = np.array([start for start, _ in offsets], dtype=np.int64)
    sentence_bounds = [0, *np.searchsorted(token_starts, find_sentence_ends(text)).tolist(), len(ids)]
    paragraph_bounds = [0, *np.searchsorted(token_starts, find_paragraph_starts(text)).tolist(), len(ids)]
    paragraph_lengths = {first: end - first for first, end in pairwise(paragraph_bounds)} if paragraphs else {}
    pieces, spans = [], []
    for first, end in pairwise(sentence_bounds):
        for start in range(first, end, max_tokens):
            stop = min(start + max_tokens, end)
            pieces.append(SentenceTokens(ids[start:stop], paragraph_tokens=paragraph_lengths.get(start, 0)))
            spans.append((offsets[start][0], offsets[stop - 1][1]))
    return pieces, (list(offsets) if unit_kind == "tokens" else spans)


def build_segment_batch(
    checkpoint: "Checkpoint", segments: Sequence[list[SentenceTokens]], question: str = ""
) -> SegmentBatch:
    """Build a batch from segments of one document and a question, on the network's device."""
    tokenizer: Any = checkpoint.tokenizer
    question_ids = add_special_tokens(
        np.array(tokenizer.encode(question, special=False).ids, dtype=np.int64), tokenizer
    )
    max_tokens = checkpoint.network.encode.max_length
    if max_tokens is not None and len(question_ids) > max_tokens:
        raise ValueError(
            f"the question has {len(question_ids) - 2} tokens, and this network reads at most "
            f"{max_tokens - 2}; ask a shorter one"
        )
    no_ids = np.zeros(0, dtype=np.int64)
    document = LongDocument(iter(()), LongExample((), no_ids, no_ids, (), 0))
    arrays = fill_arrays([document], [list(segments)], tokenizer, checkpoint.sizes["max_length"])
    device = checkpoint.network.device
    tokens, sentences, _ = (torch.from_numpy(array).to(device) for array in arrays)
    in_text = sentences >= 0
    query = torch.from_numpy(question_ids).long().unsqueeze(0).to(device)
    is_special = (tokens == tokenizer.cls) | (tokens == tokenizer.sep)
    empty = query[:, :0]
    return SegmentBatch(
        tokens, in_text | is_special, in_text, query, query >= 0, empty, sentence_ids=sentences
    )  # fmt: skip


def require_memory_model(checkpoint: "Checkpoint") -> Any:
    """Return the checkpoint's network if it can read a text into a memory; else raise."""
    network = checkpoint.network
    if network.respond.source != "carried memory" or network.memory is None:
        raise ValueError(
            "this network reads no text into a memory that can be asked; bert-mass does, which "
            "comes with mnemic, and so does what recipes with model.segments and model.memory "
            "train, such as bert-mass-selective"
        )
    if network.tokens == "masked":
        raise ValueError(
            "this network stores masked words alone (model.segments.tokens = 'masked'), and a text "
            "that is read has none: train one with model.segments.tokens = 'controller'"
        )
    return network


def check_state(state: State, network: Any) -> State:
    """Return ``state`` if this network wrote it; else raise a StateError."""
    if not isinstance(state, State):
        raise StateError(
            f"expected a State, not {type(state).__name__}; load_state(PATH) reads one that was "
            "saved, remember(TEXT) makes one"
        )
    if state.network != hash_weights(network):
        origin = f", {state.origin}," if state.origin else ""
        raise StateError(
            f"this memory was written by another network{origin} or by this one before it was "
            "trained further, and can be read by no other; ask the one that wrote it, or read the "
            "text again (mnemic text read --fresh)"
        )
    return state


def move_memory(memory: Any, network: Any) -> Any:
    """Move the memory's tensors to the network's device, or to the CPU without a network."""
    device = torch.device("cpu") if network is None else network.device
    return tree_map(lambda tensor: tensor.to(device), memory)
