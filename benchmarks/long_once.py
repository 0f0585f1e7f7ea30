"""Answers from documents of millions of tokens, whose segments are encoded once.

Processes of a CPU make the documents and tell their segments by digest; what they have not told
before comes along. One process holds what every network made of them, and its memories.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from mnemic.data.long.tensors import LongSet, sent
from mnemic.learn.recall import carrier_of, right
from mnemic.network.once import Digests, EncodedOnce, digests

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
        Stretches(documents, rows, at_once), batch_size=None, num_workers=workers, prefetch_factor=4
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
