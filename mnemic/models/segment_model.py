"""BERT-MASS: a network that reads a text in segments and carries a memory along.

It wraps any encoder of tokens. All segments of a batch are encoded at once, each by itself; only
the memory goes through the segments one after another.

Shapes: b documents, s segments, n tokens of a segment, p items of a segment (tokens or sentences),
m masked tokens of a segment, q tokens of a question, l probes of a segment, d width.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.masked_layer import MaskedLayer, MaskedPositions, find_masked_positions
from mnemic.memory import Reading
from mnemic.models.contract import BaseNetwork
from mnemic.models.copy import MaskedReads, collect_reads, stack_reads, token_ids_at
from mnemic.models.inputs import (
    IGNORE,
    BatchSizes,
    SegmentBatch,
    SegmentOutput,
    WriteProbe,
    any_per_sentence,
    measure_batch,
    pool_sentences,
)
from mnemic.models.scan_segments import SegmentInputs, SegmentStep, scan_segments
from mnemic.models.stream import read_stream_memory
from mnemic.recipe import ConfigError
from mnemic.respond.classes import masked_mean

ItemUnit = Literal["tokens", "sentences"]
SentencePooling = Literal["mean", "root"]
WritableTokens = Literal["controller", "masked"]
# No probes, one per segment with its write, or also with a read of some written items.
ProbeDetail = Literal["none", "written", "read"]


class EncodedSegments(NamedTuple):
    """The encoded segments of a batch, ready to be written one after another."""

    items: Tensor  # b s p d
    mask: Tensor  # b s p, True = a real item
    writable: Tensor | None  # b s p, True = may be written; None: all
    queries: Tensor | None  # b s m d, the states of masked tokens
    masked_positions: MaskedPositions | None  # of (b s) m


class SegmentModel(BaseNetwork):
    """Encode, masked attention, write, read and answer, with one memory for all segments.

    ``truncate``: the answer's gradient reaches the writes of the last ``truncate`` segments of each
    document (0: of all). ``carry_memory=False`` empties the memory before every segment, to measure
    what the same weights know without it. ``unit``: a slot is written from a token or a sentence.
    ``pool``: a sentence is the mean of its tokens, or their sum divided by the root of their
    number, which lets a controller tell long sentences, which say more, from short ones.
    ``tokens``: the controller selects among all tokens or among the masked ones only. ``query`` is
    the question's first state or the mean of all. ``write_probes`` items of each segment probe the
    write.

    An encoder with a memory length reads the segments in turn: each layer also attends to its own
    inputs of the segments before, which ``carry_memory=False`` hides. That is a memory by itself.
    """

    carries_memory = True  # of documents in segments, not of windows

    def __init__(
        self,
        encode: Any,
        memory: Any,
        respond: Any,
        mass: MaskedLayer | None = None,
        *,
        truncate: int = 0,
        carry_memory: bool = True,
        unit: ItemUnit = "tokens",
        pool: SentencePooling = "mean",
        tokens: WritableTokens = "controller",
        query: Literal["first", "mean"] = "mean",
        write_probes: int = 4,
    ) -> None:
        super().__init__()
        self.encode, self.memory, self.respond, self.mass = encode, memory, respond, mass
        self.truncate, self.carry_memory, self.unit, self.tokens = truncate, carry_memory, unit, tokens
        self.query, self.num_probes, self.pool = query, write_probes, pool
        self.copies = respond.can_copy
        if truncate < 0:
            raise ConfigError(f"model.segments.truncate is at least 0, which cuts nothing, not {truncate}")
        if write_probes < 0:
            raise ConfigError(f"model.segments.write_probes is at least 0, not {write_probes}")
        if self.copies and unit != "tokens":
            raise ConfigError("respond.copy takes words from slots: model.segments.unit is 'tokens'")

    def dummy_inputs(self, sizes: Mapping[str, Any]) -> SegmentBatch:
        """Make two documents of one segment of the greatest length, each with a question."""
        tokens = torch.ones(2, sizes["max_length"], dtype=torch.long)
        segments = tokens.unsqueeze(1)  # b 1 n
        batch = SegmentBatch(segments, segments > 0, segments > 0, tokens, tokens > 0, tokens, sentence_ids=segments)
        return batch._replace(sizes=BatchSizes(torch.arange(2), max_sentences=2))

    def forward(self, inputs: SegmentBatch, *, probes: ProbeDetail = "none") -> SegmentOutput:
        """Read whole documents and answer; ``probes`` adds the inputs of the write losses."""
        encoded = self.encode_segments(inputs)
        state = self.empty_memory(len(inputs.tokens), encoded.items[:, 0])
        state, reads, write_probes = self.write_segments(state, encoded, probes, inputs)
        masked_logits = None
        if encoded.queries is not None and encoded.masked_positions is not None:
            queries, is_masked = encoded.queries.flatten(0, 1), encoded.masked_positions.is_real  # (b s) m d
            read_states = queries.new_zeros(queries.shape) if reads is None else reads.states.flatten(0, 1)
            states = self.respond.add_found(queries[is_masked], read_states[is_masked])  # p d
            masked_logits = self.respond.vocabulary(states)  # p v
            if reads is not None and reads.copy_weights is not None:
                copy_weights, token_numbers = reads.copy_weights  # b s m a, b s a
                copy_ids = token_ids_at(inputs, token_numbers).unsqueeze(2).expand_as(copy_weights)
                copy_weights, copy_ids = (t.flatten(0, 1)[is_masked] for t in (copy_weights, copy_ids))  # p a
                masked_logits = self.respond.mix_copies(masked_logits, states, copy_weights.float(), copy_ids)
        return self.answer_question(state, inputs)._replace(
            masked_logits=masked_logits, write_probes=tuple(write_probes)
        )

    def empty_memory(self, batch: int, like: Tensor) -> Any:
        """Make an empty memory for items like ``like`` (b p d)."""
        return None if self.memory is None else self.memory.empty(batch, like.unsqueeze(2))

    def encode_segments(self, inputs: SegmentBatch) -> EncodedSegments:
        """Encode all segments of all documents at once; empty ones cost nothing."""
        batch, num_segments, length = inputs.tokens.shape
        sizes = measure_batch(inputs)
        mask, rows = inputs.mask.flatten(0, 1), sizes.segment_rows  # (b s) n, r
        if self.encode.memory_length:
            states = self.encode_in_turn(inputs).flatten(0, 1)[rows]  # r n d
        else:
            encode_kwargs = {"max_tokens": sizes.num_tokens} if self.encode.takes_max_tokens else {}
            states = self.encode(inputs.tokens.flatten(0, 1)[rows], mask[rows], **encode_kwargs)  # r n d
        states = states.to(self.encode.embeddings.tokens.dtype)  # the memory stays exact
        queries = positions = writable = None
        if inputs.prediction_mask is not None:
            positions = find_masked_positions(inputs.prediction_mask.flatten(0, 1))
            all_states = scatter_rows(states, rows, batch * num_segments)  # (b s) n d
            queries = self.select_masked(all_states, mask, positions).unflatten(0, (batch, num_segments))
        item_mask = inputs.text_mask.flatten(0, 1)
        if self.tokens == "masked":
            writable = (
                item_mask.new_zeros(item_mask.shape) if inputs.prediction_mask is None else inputs.prediction_mask
            )
            writable = writable.view(batch * num_segments, length)
        if self.unit == "sentences":
            states, item_mask, writable = self.pool_items(states, inputs, sizes, writable)
        all_states = scatter_rows(states, rows, batch * num_segments)  # (b s) p d
        shape = (batch, num_segments)
        items, item_mask = all_states.unflatten(0, shape), item_mask.unflatten(0, shape)
        writable = None if writable is None else writable.unflatten(0, shape)
        return EncodedSegments(items, item_mask, writable, queries, positions)

    def encode_in_turn(self, inputs: SegmentBatch) -> Tensor:
        """Encode each segment with the cached states of those before, b s n d."""
        context, states = None, []
        for segment in range(inputs.tokens.shape[1]):
            tokens, mask = inputs.tokens[:, segment], inputs.mask[:, segment]
            segment_states, context = self.encode.encode_segment(tokens, mask, context if self.carry_memory else None)
            states.append(segment_states)
        return torch.stack(states, 1)

    def read_cache(self, inputs: SegmentBatch) -> list[Reading]:
        """Return how much each segment attends to the cached states: the evidence.

        Weights are b k h n m, of k layers; the m states are the last ones of the segments before.
        """
        context, readings = None, []
        for segment in range(inputs.tokens.shape[1]):
            tokens, mask = inputs.tokens[:, segment], inputs.mask[:, segment]
            if context is not None:
                readings.append(read_stream_memory(self.encode, tokens, mask, context))
            _, context = self.encode.encode_segment(tokens, mask, context)
        return readings

    def select_masked(self, states: Tensor, mask: Tensor, positions: MaskedPositions) -> Tensor:
        """Select the states of masked tokens, after MASS if used: (b s) m d."""
        return positions.gather_rows(states) if self.mass is None else self.mass(states, mask, positions)

    def pool_items(
        self, states: Tensor, inputs: SegmentBatch, sizes: BatchSizes, writable: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Pool tokens into sentences; return states (r p d), item mask and writable mask."""
        if inputs.sentence_ids is None:
            raise ValueError("model.segments.unit = 'sentences' needs inputs with sentence_ids")
        sentence_ids, num_sentences = inputs.sentence_ids.flatten(0, 1), sizes.max_sentences
        item_mask = any_per_sentence(sentence_ids >= 0, sentence_ids, num_sentences)
        writable = None if writable is None else any_per_sentence(writable, sentence_ids, num_sentences)
        text_ids, root_scaled = sentence_ids[sizes.segment_rows], self.pool == "root"
        return pool_sentences(states, text_ids, num_sentences, root_scaled=root_scaled), item_mask, writable

    def write_segments(
        self, state: Any, encoded: EncodedSegments, probes: ProbeDetail = "none", inputs: SegmentBatch | None = None
    ) -> tuple[Any, MaskedReads | None, list[WriteProbe]]:
        """Continue from ``state``: read for masked tokens, then write, segment by segment.

        Returns the memory after the last segment, the reads of the masked tokens, and the probes;
        ``probes="read"`` needs the ``inputs``. A document that has ended keeps its memory
        unchanged. Writes with no read between them are merged if the memory allows it.
        """
        if self.memory is None:
            return None, None, []
        reads: list[MaskedReads] = []
        write_probes: list[WriteProbe] = []
        if not self.memory.is_cut_sensitive and encoded.queries is None and probes != "read":
            encoded = merge_segments(encoded) if self.carry_memory and not self.truncate else encoded
        for segment, step in enumerate(self.scan(state, encoded)):
            if step.reading is not None:
                reads.append(collect_reads(step.reading, step.state_before, copies=self.copies))
            if probes != "none":
                write_probes.append(WriteProbe(step.state_before, step.written, encoded.mask[:, segment]))
            if probes == "read" and inputs is not None:
                write_probes[-1] = self.probe_write(write_probes[-1], encoded.items[:, segment], inputs, segment)
            state = step.state
        return state, stack_reads(reads) if reads else None, write_probes

    def scan(self, state: Any, encoded: EncodedSegments) -> Iterator[SegmentStep]:
        """Iterate over the reads and writes of all segments, starting from ``state``."""
        inputs = SegmentInputs(encoded.items, encoded.mask, encoded.writable, encoded.queries)
        return scan_segments(self.memory, state, inputs, truncate=self.truncate, carry_memory=self.carry_memory)

    def probe_write(self, probe: WriteProbe, items: Tensor, inputs: SegmentBatch, segment: int) -> WriteProbe:
        """Query the memory with the items of a segment that were written most strongly."""
        written = probe.written
        amount = written.slot_writes.detach().sum(-1)  # b p
        num_probes = min(self.num_probes, amount.shape[1])
        if not num_probes:
            return probe
        amounts, item_indices = amount.topk(num_probes, dim=1)  # b l
        queries = items.gather(1, item_indices.unsqueeze(-1).expand(-1, -1, items.shape[-1]))
        reading = self.read(written.state, queries)
        weights = written.weights.gather(1, item_indices.unsqueeze(-1).expand(-1, -1, written.weights.shape[-1]))
        is_stored = (amounts > 0) & (weights.sum(-1) > 0)
        slots = torch.where(is_stored, weights.argmax(-1), -1)
        targets = token_ids_of_items(inputs, segment, item_indices, self.unit).masked_fill(
            ~is_stored.unsqueeze(-1), IGNORE
        )
        logits = None
        if self.respond.generates_words:
            logits = self.respond.vocabulary(self.respond.norm(reading.found.to(items.dtype)))
        return probe._replace(reading=reading, slots=slots, logits=logits, targets=targets)

    def answer_question(self, state: Any, inputs: SegmentBatch) -> SegmentOutput:
        """Answer the question from memory alone."""
        query, reading, initial_state = self.read_question(state, inputs)
        if not self.respond.generates_words:
            no_logits = query[..., :0]
            return SegmentOutput(no_logits, no_logits[:, :0], no_logits[:, 0], reading, state, None, ())
        return SegmentOutput(
            logits=self.respond.vocabulary(initial_state),
            rest_logits=self.respond.score_rest(initial_state.squeeze(1), inputs.answer_ids),
            nsp_logits=self.respond.follows(self.respond.add_found(query, reading.found)),
            reading=reading,
            state=state,
            masked_logits=None,
            write_probes=(),
        )

    def read_question(self, state: Any, inputs: SegmentBatch) -> tuple[Tensor, Reading, Tensor]:
        """Read the memory with the question; return query, reading and initial decoder state.

        Query and state are b 1 d; ``respond.start_decoding`` takes the state, for
        ``mnemic.respond.generate``.
        """
        # Texts are segment 0, questions 1.
        encode_kwargs = {"segments": torch.ones_like(inputs.question)} if self.encode.segments > 1 else {}
        states = self.encode(inputs.question, inputs.question_mask, **encode_kwargs)  # b q d
        mean = masked_mean(states, inputs.question_mask)
        query = (states[:, 0] if self.query == "first" and states.shape[1] else mean).unsqueeze(1)
        reading = self.read(state, query)
        return query, reading, self.respond.initial_state(query, reading, states, inputs.question_mask)

    def embed_texts(self, tokens: Tensor, mask: Tensor, text_mask: Tensor) -> Tensor:
        """Embed each text as one unit vector, b d: the mean of its tokens' states.

        With MASS, every token is masked by itself first. All arguments are b n.
        """
        positions = find_masked_positions(text_mask)
        states = self.select_masked(self.encode(tokens, mask), mask, positions)
        return nn.functional.normalize(masked_mean(states, positions.is_real), dim=-1)

    def read(self, state: Any, query: Tensor) -> Reading:
        """Read the memory with ``query`` (b m d); without a memory, return zeros."""
        if self.memory is None:
            no_weights = query.new_zeros(len(query), 1, 1, query.shape[1], 0)
            return Reading(torch.zeros_like(query), no_weights, no_weights)
        return self.memory.read(state, query.unsqueeze(2))


def scatter_rows(values: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    """Scatter rows (r …) into ``num_rows`` rows, zeros elsewhere."""
    return values.new_zeros(num_rows, *values.shape[1:]).index_copy(0, rows, values)


def merge_segments(encoded: EncodedSegments) -> EncodedSegments:
    """Merge all segments into one, so that memory is written once; drop the queries."""

    def flatten_segments(values: Tensor) -> Tensor:
        return values.flatten(1, 2).unsqueeze(1)  # b 1 (s p) …

    writable = None if encoded.writable is None else flatten_segments(encoded.writable)
    return EncodedSegments(flatten_segments(encoded.items), flatten_segments(encoded.mask), writable, None, None)


def token_ids_of_items(inputs: SegmentBatch, segment: int, item_indices: Tensor, unit: ItemUnit) -> Tensor:
    """Look up the token ids of some items of a segment.

    ``item_indices`` b l; the result is b l j, padded with IGNORE.
    """
    ids, text_mask = inputs.tokens[:, segment], inputs.text_mask[:, segment]  # b n
    if unit == "tokens" or inputs.sentence_ids is None:
        return ids.gather(1, item_indices).masked_fill(~text_mask.gather(1, item_indices), IGNORE).unsqueeze(-1)
    is_item_token = (inputs.sentence_ids[:, segment].unsqueeze(1) == item_indices.unsqueeze(2)) & text_mask.unsqueeze(1)
    return ids.unsqueeze(1).masked_fill(~is_item_token, IGNORE)  # b l n
