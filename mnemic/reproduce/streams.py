"""Train several networks concurrently on one GPU, each on its own CUDA stream.

A step of a small network leaves most of a GPU idle. A training is a generator, so one thread can
advance many of them: the steps of one lane run while those of the others are being queued.
"""

import os
from collections.abc import Generator, Iterable
from itertools import islice
from typing import TypeVar

import torch

STEPS_PER_TURN = 32  # enough to fill a lane's queue while the other lanes take their turns

# More hardware queues than the default 8; read when CUDA starts.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")

T = TypeVar("T")


def interleave_trainings(
    trainings: Iterable[Generator[T, None, None]], *, lanes: int, device: torch.device
) -> Generator[T, None, None]:
    """Interleave training generators: advance up to ``lanes`` of them in turns, yield their steps.

    A training starts when a lane is free. The caller receives a step while that training's stream
    is current, so that reading a loss waits for that training alone.
    """
    pending = iter(trainings)
    on_gpu = device.type == "cuda"
    active = [(training, torch.cuda.Stream(device) if on_gpu else None) for training in islice(pending, lanes)]
    try:
        while active:
            remaining = []
            for training, stream in active:
                with torch.cuda.stream(stream):  # which does nothing without a stream
                    num_steps = 0
                    for step in islice(training, STEPS_PER_TURN):
                        num_steps += 1
                        yield step
                if num_steps == STEPS_PER_TURN:
                    remaining.append((training, stream))
                else:
                    remaining += [(training, stream) for training in islice(pending, 1)]
            active = remaining
    finally:
        for training, stream in active:
            with torch.cuda.stream(stream):
                training.close()  # so that it can save its progress
