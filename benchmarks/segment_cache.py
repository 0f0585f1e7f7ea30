"""Answer from documents of millions of tokens with a cache of encoded segments.

A segment model encodes each segment by itself, so a segment that occurs again, in any document, has
the same units; only the memory depends on earlier segments. If long documents are drawn from a few
books, almost nothing is left to encode. Worker processes make the documents and send digests of
their segments, with the segments they have not sent before. One process holds the encoded units of
every network, and its memories.

Shapes: b documents, s segments, n tokens, r segments that are not empty, p units of a segment, u
all cached units, d width.
"""

import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from mnemic.data.long_context.batches import LongDataset, move_batch
from mnemic.evaluate.long_context import find_correct_answers
from mnemic.models.contract import unwrap_network
from mnemic.models.inputs import BatchSizes, SegmentBatch, measure_batch
from mnemic.models.segment_model import EncodedSegments, SegmentModel

SegmentArray = np.ndarray  # one segment, 3 n: tokens, sentences, mask
MAX_SEGMENTS = 16_384  # encoded together; a GPU's kernel refuses more than 65,535


class SegmentDigests(NamedTuple):
    """The digests of segments, and the segments with new digests."""

    digests: Sequence[Sequence[bytes]]  # per document, of its segments that are not empty
    new_segments: Mapping[bytes, SegmentArray]


def digest_segments(inputs: SegmentBatch, known: Container[bytes] = ()) -> SegmentDigests:
    """Compute digests of segments on the CPU without masked tokens."""
    if inputs.prediction_mask is not None:
        raise ValueError("masked tokens differ each time; use SegmentModel.encode_segments")
    assert inputs.sentence_ids is not None
    arrays = torch.stack([inputs.tokens, inputs.sentence_ids, inputs.mask.long()], 2)  # b s 3 n
    rows = arrays.to(torch.int32).numpy()
    digests: list[list[bytes]] = [[] for _ in rows]
    new_segments: dict[bytes, SegmentArray] = {}
    for flat_row in measure_batch(inputs).segment_rows.tolist():
        document, segment = divmod(flat_row, rows.shape[1])
        row = rows[document, segment]
        digest = blake2b(row.tobytes(), digest_size=16).digest()
        digests[document].append(digest)
        if digest not in known:
            new_segments[digest] = row
    return SegmentDigests(digests, new_segments)


class SegmentCache:
    """A cache of the units that ``SegmentModel.encode_segments`` makes, per model.

    Padding comes after the units. If no memory depends on how a text is cut, all segments of a
    document are returned as one.
    """

    def __init__(self, models: Sequence[SegmentModel]) -> None:
        self.models = models
        self.joins_segments = all(model.memory is not None and not model.memory.is_cut_sensitive for model in models)
        self.units_of_segment: dict[bytes, tuple[int, int]] = {}  # digest → first unit, count
        self.units: list[Tensor] = []  # per model, u d, on its device; the first is padding
        self.num_units = 1

    def __call__(self, inputs: SegmentBatch) -> list[EncodedSegments]:
        return self.look_up(digest_segments(inputs, self.units_of_segment))

    def look_up(self, segments: SegmentDigests) -> list[EncodedSegments]:
        """Return the encoded segments of documents; encode those that are new."""
        new_segments = [
            (digest, row) for digest, row in segments.new_segments.items() if digest not in self.units_of_segment
        ]
        for first in range(0, len(new_segments), MAX_SEGMENTS):
            digests, rows = zip(*new_segments[first : first + MAX_SEGMENTS])
            self.encode_new(digests, np.stack(rows))
        if not self.units:
            raise ValueError("all segments are empty, and nothing is known yet")
        unit_ranges = [[self.units_of_segment[digest] for digest in document] for document in segments.digests]
        rows = [
            [list_unit_rows(ranges)] if self.joins_segments else [list_unit_rows([unit_range]) for unit_range in ranges]
            for ranges in unit_ranges
        ]
        max_segments = max(map(len, rows))
        max_units = max((len(segment_rows) for document_rows in rows for segment_rows in document_rows), default=0)
        index = np.zeros((len(rows), max_segments, max(max_units, 1)), dtype=np.int64)  # b s p
        for document_number, document_rows in enumerate(rows):
            for segment, segment_rows in enumerate(document_rows):
                index[document_number, segment, : len(segment_rows)] = segment_rows
        unit_rows = torch.from_numpy(index).to(self.units[0].device)
        return [EncodedSegments(units[unit_rows], unit_rows > 0, None, None, None) for units in self.units]

    def encode_new(self, digests: Sequence[bytes], rows: np.ndarray) -> None:
        """Encode new segments, r 3 n, and add their units to the cache."""
        device = next(self.models[0].parameters()).device
        tokens, sentences, mask = torch.from_numpy(rows).long().to(device).unsqueeze(2).unbind(1)
        no_tokens = tokens[:, 0, :0]  # r 0
        segment_rows = torch.arange(len(rows), device=device)
        sizes = BatchSizes(segment_rows, int(rows[:, 1].max()) + 1, int(rows[:, 2].sum()))
        inputs = SegmentBatch(tokens, mask > 0, sentences >= 0, no_tokens, no_tokens > 0, no_tokens)
        inputs = inputs._replace(sentence_ids=sentences, sizes=sizes)
        encoded = [model.encode_segments(inputs) for model in self.models]
        unit_mask = encoded[0].mask[:, 0]  # r p, the same for all models
        first_unit = self.num_units
        for digest, size in zip(digests, unit_mask.sum(1).tolist()):
            self.units_of_segment[digest] = self.num_units, size
            self.num_units += size
        new_units = [segments.items[:, 0][unit_mask] for segments in encoded]
        buffers = self.units or [units.new_zeros(1, units.shape[-1]) for units in new_units]
        self.units = [append_units(buffer, units, first_unit) for buffer, units in zip(buffers, new_units)]


def append_units(buffer: Tensor, units: Tensor, begin: int) -> Tensor:
    """Put units into a buffer (u d) from ``begin`` on; double its size if full."""
    end = begin + len(units)
    if end > len(buffer):
        larger_buffer = buffer.new_zeros(max(2 * len(buffer), end), buffer.shape[-1])
        larger_buffer[: len(buffer)] = buffer
        buffer = larger_buffer
    buffer[begin:end] = units
    return buffer


def list_unit_rows(unit_ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    """List the rows of all units of some segments."""
    first, size = np.array(unit_ranges, dtype=np.int64).reshape(-1, 2).T
    begins = np.repeat(first - (size.cumsum() - size), size)
    return begins + np.arange(len(begins))


WorkerDigests = tuple[int, SegmentDigests]  # worker number, digests


class DigestStream(IterableDataset[WorkerDigests]):
    """A stream of segment digests; each worker has some of the ``rows``."""

    def __init__(self, documents: LongDataset, rows: Sequence[int], segments_per_batch: int) -> None:
        self.documents, self.rows, self.segments_per_batch = documents, rows, segments_per_batch

    def __iter__(self) -> Iterator[WorkerDigests]:
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        known_digests: set[bytes] = set()
        for batch in self.documents.stream(self.rows[number::count], self.segments_per_batch):
            digests = digest_segments(batch.inputs, known_digests)
            known_digests |= digests.new_segments.keys()
            yield number, digests


def gather_rounds(worker_digests: Iterator[WorkerDigests], num_workers: int) -> Iterator[list[SegmentDigests | None]]:
    """Gather the next digests of all workers; None for a worker that has ended."""
    round_digests: list[SegmentDigests | None] = [None] * num_workers
    last_worker = -1
    for worker, digests in worker_digests:
        if worker <= last_worker:
            yield round_digests
            round_digests = [None] * num_workers
        round_digests[worker], last_worker = digests, worker
    if last_worker >= 0:
        yield round_digests


def return_unchanged(batch: Any) -> Any:
    """Return a batch unchanged; by default arrays become tensors, each with its own file."""
    return batch


@torch.no_grad()
def find_wrong_with_cache(
    networks: Sequence[nn.Module],
    dataset: LongDataset,
    rows: Sequence[int],
    segments_per_batch: int,
    *,
    num_workers: int = 1,
) -> list[Tensor]:
    """Find the wrong answers of networks, with cached segments; the dataset is on the CPU.

    The result is that of ``find_wrong_answers_per_network``; networks stay in their mode.
    """
    models = [unwrap_network(network) for network in networks]
    cache = SegmentCache(models)
    states: list[Any] = [None] * len(models)
    num_workers = min(num_workers, len(rows))
    num_documents = [len(rows[number::num_workers]) for number in range(num_workers)]
    loader = DataLoader(
        DigestStream(dataset, rows, segments_per_batch),
        batch_size=None,
        num_workers=num_workers,
        prefetch_factor=4,
        collate_fn=return_unchanged,
    )
    num_rounds = -(-dataset.segments // segments_per_batch)
    for done, worker_digests in enumerate(gather_rounds(iter(loader), num_workers)):
        if done % max(num_rounds // 20, 1) == 0:
            print(f"round {done} of about {num_rounds}", file=sys.stderr, flush=True)
        digests: list[Sequence[bytes]] = []
        new_segments: dict[bytes, Any] = {}
        for count, segments in zip(num_documents, worker_digests):
            digests += [[]] * count if segments is None else segments.digests
            new_segments |= {} if segments is None else segments.new_segments
        for number, encoded in enumerate(cache.look_up(SegmentDigests(digests, new_segments))):
            model = models[number]
            if states[number] is None:
                states[number] = model.empty_memory(len(rows), encoded.items[:, 0])
            states[number], _, _ = model.write_segments(states[number], encoded)
    order = [position for number in range(num_workers) for position in range(number, len(rows), num_workers)]
    documents = [dataset.draw_document(rows[position]) for position in order]
    batch = dataset.assemble_batch(documents, [[] for _ in documents])
    batch = move_batch(batch, next(networks[0].parameters()).device)
    original_order = torch.tensor(order).argsort()
    outputs = [model.answer_question(state, batch.inputs) for model, state in zip(models, states)]
    return [~find_correct_answers(output, batch.answers).cpu()[original_order] for output in outputs]
