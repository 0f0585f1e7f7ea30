"""Prefetch batches of long documents in worker processes.

A batch depends on its indices and random numbers alone, so it is the same in any process.
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

from mnemic.data.long_context.batches import LongBatch, LongDataset, move_batch
from mnemic.train.sampler import BatchIndices

BATCHES_PER_WORKER = 2  # how far each worker is ahead

_documents: LongDataset | None = None  # set in worker processes


class Prefetcher:
    """Worker processes that make batches for all phases of a run, until ``close``.

    ``documents`` are shared by all phases; each phase sets their number of segments.
    """

    def __init__(self, documents: LongDataset) -> None:
        self.documents = documents.to("cpu")
        self.pool: ProcessPoolExecutor | None = None
        self.num_workers = 0

    def iterate_batches(
        self, documents: LongDataset, batch_indices: Iterator[BatchIndices], num_workers: int
    ) -> Iterator[LongBatch]:
        """Make the batches of ``batch_indices`` in order, on the device of ``documents``."""
        pool = self.start_pool(num_workers)
        pending: deque[Future[Any]] = deque()
        try:
            for rows, uniforms, _ in batch_indices:
                uniforms_array = None if uniforms is None else uniforms.numpy()
                pending.append(pool.submit(make_batch, rows.numpy(), uniforms_array, documents.segments))
                if len(pending) >= BATCHES_PER_WORKER * num_workers:
                    yield receive_batch(pending.popleft().result(), documents)
            while pending:
                yield receive_batch(pending.popleft().result(), documents)
        finally:
            for future in pending:
                future.cancel()

    def start_pool(self, num_workers: int) -> ProcessPoolExecutor:
        """Start the worker processes, or reuse those of the phase before."""
        if self.pool is None or num_workers != self.num_workers:
            self.close()
            self.pool = ProcessPoolExecutor(
                num_workers, get_context("spawn"), initializer=init_worker, initargs=(self.documents,)
            )
            self.num_workers = num_workers
        return self.pool

    def close(self) -> None:
        """Stop the worker processes."""
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)
        self.pool = None


def receive_batch(batch: Any, documents: LongDataset) -> LongBatch:
    """Turn a worker's arrays into tensors on the device of ``documents``."""
    tensors = tree_map(lambda leaf: torch.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf, batch)
    return move_batch(tensors, documents.batch_device)


def init_worker(documents: LongDataset) -> None:
    """Set up a worker process: its documents, and its end with the parent process.

    Ctrl-C and ``timeout`` signal a whole process group: a worker leaves that group, so that the
    training process can finish its step and save.
    """
    global _documents
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    Thread(target=exit_with_parent, args=(parent_process(),), daemon=True).start()
    torch.set_num_threads(1)
    _documents = documents


def exit_with_parent(parent: Any) -> None:
    """Exit as soon as the parent process ends, even if it was killed."""
    wait([parent.sentinel])
    os._exit(1)


def make_batch(rows: np.ndarray, uniforms: np.ndarray | None, segments: int) -> Any:
    """Make one batch in a worker process, with tensors as NumPy arrays."""
    assert _documents is not None
    uniforms_tensor = None if uniforms is None else torch.from_numpy(uniforms)
    batch = _documents.with_segments(segments).batch(torch.from_numpy(rows), uniforms_tensor)
    return tree_map(lambda leaf: leaf.numpy() if torch.is_tensor(leaf) else leaf, batch)
