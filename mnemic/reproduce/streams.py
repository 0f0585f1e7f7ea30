"""Several trainings side by side on one GPU: each has a stream of its own, and they take turns.

A step of a small network leaves most of a GPU idle. A training is a generator, so one thread can
advance many of them: the steps of one lane run while those of the others are being queued.
"""

import os
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import TypeVar

import torch

TURN = 32  # steps a lane takes at a time: enough in its queue while the other lanes have theirs

# More hardware queues than the default 8; read when CUDA starts.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")

T = TypeVar("T")


def side_by_side(
    trainings: Iterable[Generator[T, None, None]], *, lanes: int, device: torch.device
) -> Generator[T, None, None]:
    """Everything that the ``trainings`` yield, up to ``lanes`` of them in turns.

    A training begins when a lane is free. Whoever takes what is yielded stands on the stream of
    the training it came from, so that reading a loss waits for that training alone.
    """
    waiting = iter(trainings)
    going = [(training, new_stream(device)) for training in islice(waiting, lanes)]
    try:
        while going:
            still = []
            for training, stream in going:
                with on_stream(stream):
                    taken = 0
                    for step in islice(training, TURN):
                        taken += 1
                        yield step
                if taken == TURN:
                    still.append((training, stream))
                else:
                    still += [(new, stream) for new in islice(waiting, 1)]
            going = still
    finally:
        for training, stream in going:
            with on_stream(stream):
                training.close()  # stopped: each may save what it has


def new_stream(device: torch.device) -> torch.cuda.Stream | None:
    return torch.cuda.Stream(device) if device.type == "cuda" else None


def on_stream(stream: torch.cuda.Stream | None) -> AbstractContextManager[object]:
    return nullcontext() if stream is None else torch.cuda.stream(stream)
