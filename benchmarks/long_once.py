"""Answers from documents of millions of tokens, whose segments are encoded once.

A carrier encodes each segment by itself, so a segment that comes again, in any document, has the
same units; only the memory depends on what came before. Where long documents are drawn from a few
books, almost nothing is left to encode. Processes of a CPU make the documents and tell their
segments by digest; what they have not told before comes along. One process holds what every network
made of them, and its memories.

Shapes: b documents, s segments, n tokens, r segments that are not empty, p units of a segment, u
all units that are known, d width.
"""

import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from mnemic.data.long_context.batches import LongSet, sent
from mnemic.evaluate.long_context import carrier_of, right
from mnemic.models.inputs import Counted, Segments, counted
from mnemic.models.segment_model import Carrier, Encoded

Row = np.ndarray  # of one segment, 3 n: tokens, sentences, mask
MOST = 16_384  # segments that are encoded together; a GPU's kernel refuses more than 65,535


class Digests(NamedTuple):
    """Segments by their names, and those nobody has met yet."""

    names: Sequence[Sequence[bytes]]  # of each document, its segments that are not empty
    new: Mapping[bytes, Row]


def digests(inputs: Segments, known: Container[bytes] = ()) -> Digests:
    """The segments of inputs on the CPU, in which nothing is hidden."""
    if inputs.hidden is not None:
        raise ValueError("hidden tokens differ each time; use Carrier.encoded")
    assert inputs.sentences is not None
    parts = torch.stack([inputs.tokens, inputs.sentences, inputs.mask.long()], 2)  # b s 3 n
    rows = parts.to(torch.int32).numpy()
    names: list[list[bytes]] = [[] for _ in rows]
    new: dict[bytes, Row] = {}
    for place in counted(inputs).rows.tolist():
        document, segment = divmod(place, rows.shape[1])
        row = rows[document, segment]
        name = blake2b(row.tobytes(), digest_size=16).digest()
        names[document].append(name)
        if name not in known:
            new[name] = row
    return Digests(names, new)


class EncodedOnce:
    """The units of ``Carrier.encoded``, of each reader; those that are none behind the others.

    Where no memory cares how a text is cut, all segments are handed on as one.
    """

    def __init__(self, readers: Sequence[Carrier]) -> None:
        self.readers = readers
        self.joins = all(own.memory is not None and not own.memory.cuts for own in readers)
        self.places: dict[bytes, tuple[int, int]] = {}  # of a segment: its first unit, how many
        self.units: list[Tensor] = []  # of each reader, u d, where it is; the first unit is none
        self.filled = 1  # of them

    def __call__(self, inputs: Segments) -> list[Encoded]:
        return self.find(digests(inputs, self.places))

    def find(self, given: Digests) -> list[Encoded]:
        """As the documents were told, however they came here."""
        new = [own for own in given.new.items() if own[0] not in self.places]
        for first in range(0, len(new), MOST):
            names, rows = zip(*new[first : first + MOST])
            self.learn(names, np.stack(rows))
        if not self.units:
            raise ValueError("all segments are empty, and nothing is known yet")
        spots = [[self.places[name] for name in own] for own in given.names]
        rows = [
            [stretches(own)] if self.joins else [stretches([one]) for one in own] for own in spots
        ]
        count = max(map(len, rows))
        most = max((len(one) for own in rows for one in own), default=0)
        index = np.zeros((len(rows), count, max(most, 1)), dtype=np.int64)  # b s p
        for document, own in enumerate(rows):
            for segment, one in enumerate(own):
                index[document, segment, : len(one)] = one
        found = torch.from_numpy(index).to(self.units[0].device)
        return [Encoded(units[found], found > 0, None, None, None) for units in self.units]

    def learn(self, names: Sequence[bytes], rows: np.ndarray) -> None:
        """Encode segments that are new, r 3 n."""
        device = next(self.readers[0].parameters()).device
        tokens, sentences, mask = torch.from_numpy(rows).long().to(device).unsqueeze(2).unbind(1)
        none = tokens[:, 0, :0]  # r 0
        which = torch.arange(len(rows), device=device)
        known = Counted(which, int(rows[:, 1].max()) + 1, int(rows[:, 2].sum()))
        alone = Segments(tokens, mask > 0, sentences >= 0, none, none > 0, none)
        alone = alone._replace(sentences=sentences, counted=known)
        encoded = [reader.encoded(alone) for reader in self.readers]
        seen = encoded[0].seen[:, 0]  # r p, the same of all
        begin = self.filled
        for name, size in zip(names, seen.sum(1).tolist()):
            self.places[name] = self.filled, size
            self.filled += size
        new = [own.units[:, 0][seen] for own in encoded]
        held = self.units or [units.new_zeros(1, units.shape[-1]) for units in new]
        self.units = [put(old, own, begin) for old, own in zip(held, new)]


def put(held: Tensor, units: Tensor, begin: int) -> Tensor:
    """``held`` (u d) with units from ``begin`` on; its room doubles when it is used up."""
    end = begin + len(units)
    if end > len(held):
        room = held.new_zeros(max(2 * len(held), end), held.shape[-1])
        room[: len(held)] = held
        held = room
    held[begin:end] = units
    return held


def stretches(spots: Sequence[tuple[int, int]]) -> np.ndarray:
    """The numbers of all units of some segments, one after another."""
    first, size = np.array(spots, dtype=np.int64).reshape(-1, 2).T
    begins = np.repeat(first - (size.cumsum() - size), size)
    return begins + np.arange(len(begins))


Told = tuple[int, Digests]  # by which worker


class Stretches(IterableDataset[Told]):
    """Documents, ``at_once`` segments at a time; each worker has some of the ``rows``."""

    def __init__(self, documents: LongSet, rows: Sequence[int], at_once: int) -> None:
        self.documents, self.rows, self.at_once = documents, rows, at_once

    def __iter__(self) -> Iterator[Told]:
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        told: set[bytes] = set()
        for batch in self.documents.stream(self.rows[number::count], self.at_once):
            found = digests(batch.inputs, told)
            told |= found.new.keys()
            yield number, found


def rounds(told: Iterator[Told], workers: int) -> Iterator[list[Digests | None]]:
    """What all workers tell next; None of one that has ended."""
    found: list[Digests | None] = [None] * workers
    last = -1
    for number, own in told:
        if number <= last:
            yield found
            found = [None] * workers
        found[number], last = own, number
    if last >= 0:
        yield found


def as_it_is(told: Any) -> Any:
    """Else every array would become a tensor, with a file of its own to be sent through."""
    return told


@torch.no_grad()
def wrong_of_once(
    networks: Sequence[nn.Module],
    documents: LongSet,
    rows: Sequence[int],
    at_once: int,
    *,
    workers: int = 1,
) -> list[Tensor]:
    """As ``wrong_of_each``, of documents on the CPU; networks are asked as they are."""
    readers = [carrier_of(own) for own in networks]
    once = EncodedOnce(readers)
    states: list[Any] = [None] * len(readers)
    workers = min(workers, len(rows))
    sizes = [len(rows[number::workers]) for number in range(workers)]
    loader = DataLoader(
        Stretches(documents, rows, at_once),
        batch_size=None,
        num_workers=workers,
        prefetch_factor=4,
        collate_fn=as_it_is,
    )
    due = -(-documents.segments // at_once)
    for done, told in enumerate(rounds(iter(loader), workers)):
        if done % max(due // 20, 1) == 0:
            print(f"stretch {done} of about {due}", file=sys.stderr, flush=True)
        names: list[Sequence[bytes]] = []
        new: dict[bytes, Any] = {}
        for size, own in zip(sizes, told):
            names += [[]] * size if own is None else own.names
            new |= {} if own is None else own.new
        for number, encoded in enumerate(once.find(Digests(names, new))):
            reader = readers[number]
            if states[number] is None:
                states[number] = reader.empty(len(rows), encoded.units[:, 0])
            states[number], _, _ = reader.carry(states[number], encoded)
    order = [place for number in range(workers) for place in range(number, len(rows), workers)]
    asked = [documents.document(rows[place]) for place in order]
    batch = documents.assembled(asked, [[] for _ in asked], [0] * len(asked))
    batch = sent(batch, next(networks[0].parameters()).device)
    back = torch.tensor(order).argsort()
    said = [reader.answer(own, batch.inputs) for reader, own in zip(readers, states)]
    return [~right(own, batch.answers).cpu()[back] for own in said]
