"""Batches of long documents made by other processes, while this one trains on those before.

A batch depends on its draw alone, so who makes it changes nothing.
"""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from mnemic.data.long_context.batches import Batch, LongSet, sent
from mnemic.train.sampler import Draw

EACH = 2  # batches that a process is ahead

_documents: LongSet | None = None  # of a process that makes batches


class Ahead:
    """Processes that make batches for all phases of a run: begun when asked, ended by ``close``.

    ``documents`` are what all phases have in common; how long they are, each phase says.
    """

    def __init__(self, documents: LongSet) -> None:
        self.documents = documents.to("cpu")
        self.pool: ProcessPoolExecutor | None = None
        self.workers = 0

    def batches(self, documents: LongSet, draws: Iterator[Draw], workers: int) -> Iterator[Batch]:
        """The batches of ``draws``, in their order, where ``documents`` would have put them."""
        pool = self.started(workers)
        waiting: deque[Future[Any]] = deque()
        try:
            for rows, rolls, _ in draws:
                told = None if rolls is None else rolls.numpy()
                waiting.append(pool.submit(made, rows.numpy(), told, documents.segments))
                if len(waiting) >= EACH * workers:
                    yield received(waiting.popleft().result(), documents)
            while waiting:
                yield received(waiting.popleft().result(), documents)
        finally:
            for own in waiting:
                own.cancel()

    def started(self, workers: int) -> ProcessPoolExecutor:
        """So many processes; those of the phase before, if they are as many."""
        if self.pool is None or workers != self.workers:
            self.close()
            self.pool = ProcessPoolExecutor(
                workers, get_context("spawn"), initializer=begun, initargs=(self.documents,)
            )
            self.workers = workers
        return self.pool

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)
        self.pool = None


def received(batch: Any, documents: LongSet) -> Batch:
    return sent(tree_map(as_tensor, batch), documents.place)


def as_tensor(part: Any) -> Any:
    return torch.from_numpy(part) if isinstance(part, np.ndarray) else part


def begun(documents: LongSet) -> None:
    """A process is told once what it draws from, and ends with the one that it works for.

    Ctrl-C, or ``timeout``, asks a whole group of processes to end: this one is in none of them, so
    that the one that trains can finish its step and save.
    """
    global _documents
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    Thread(target=end_with, args=(parent_process(),), daemon=True).start()
    torch.set_num_threads(1)
    _documents = documents


def end_with(other: Any) -> None:
    """Leave as soon as ``other`` is no more, even if it was killed."""
    wait([other.sentinel])
    os._exit(1)


def made(rows: np.ndarray, rolls: np.ndarray | None, segments: int) -> Any:
    """One batch, its tensors as plain arrays."""
    assert _documents is not None
    told = None if rolls is None else torch.from_numpy(rolls)
    batch = _documents.upto(segments).batch(torch.from_numpy(rows), told)
    return tree_map(lambda part: part.numpy() if torch.is_tensor(part) else part, batch)
