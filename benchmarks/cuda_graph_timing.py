"""Time work on a GPU as in training: recorded as a CUDA graph and replayed."""

from collections.abc import Callable

import torch
from torch import Tensor

Work = Callable[[], list[Tensor]]  # its outputs must be detached, or recording fails


def time_replay(work: Work, repeat: int) -> float:
    """Return the mean seconds of ``repeat`` replays."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    start.record()
    for _ in range(repeat):
        graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000 / repeat


def count_launches(work: Work) -> int:
    """Count the GPU kernels that some work launches."""
    work()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    return sum(event.count for event in profile.key_averages() if event.self_device_time_total > 0)


def relative_difference(tensors: list[Tensor], expected: list[Tensor]) -> float:
    """Return the largest difference, relative to the largest value of its tensor."""
    return max(
        ((tensor - reference).abs().max() / reference.abs().max()).item()
        for tensor, reference in zip(tensors, expected)
    )
