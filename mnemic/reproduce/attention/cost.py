"""Measure time and memory of a forward and backward pass of a stack, by length.

The stacks are measured in turns by one process, so that a busy machine slows all alike; each has
its time relative to the baseline in the same turns. Memory is what the forward pass keeps for the
backward pass, each storage once and without the weights; on a GPU also the peak.

Shapes: b batch (1), n tokens, d width.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import log
from statistics import linear_regression, median
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.encode.stacks import STACKS
from mnemic.recipe import build
from mnemic.reproduce.attention.columns import build_stack_spec
from mnemic.reproduce.attention.rows import BASELINE, AttentionRow
from mnemic.reproduce.attention.scale import CostSettings, Scale
from mnemic.train.sampler import make_generator

FIRST_OF_SLOPE = 2048  # tokens; below it the slope is that of the overhead
MIB = 2**20


class PassCost(NamedTuple):
    """The cost of one forward and backward pass."""

    seconds: float
    saved_bytes: int  # kept for the backward pass
    peak_bytes: int | None  # of the GPU's memory, without the weights; None on a CPU


Cell = dict[str, Any]  # the cost of a row at a length, as JSON


def build_cost_stack(row: AttentionRow, scale: Scale, length: int, depth: int, device: str) -> Any:
    """Build the encoder stack of a row, of the width of the cost settings."""
    spec = build_stack_spec(row, replace(scale, depth=depth, dropout=0.0), length)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(make_generator(0, "weights").initial_seed())
        return build(STACKS, spec, width=scale.cost_settings.width).to(device)


def measure_pass(stack: Any, width: int, length: int, device: str) -> PassCost:
    """Measure one training pass over a random text."""
    x = torch.randn(1, length, width, device=device, requires_grad=True)  # b n d
    mask = torch.ones(1, length, dtype=torch.bool, device=device)  # b n
    saved, weights = dict[int, int](), {weight.untyped_storage().data_ptr() for weight in stack.parameters()}
    on_gpu = device.startswith("cuda")

    def record_storage(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    before = 0
    if on_gpu:
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    start = time.perf_counter()
    with (
        torch.autocast("cuda", torch.bfloat16, enabled=on_gpu),
        torch.autograd.graph.saved_tensors_hooks(record_storage, lambda tensor: tensor),
    ):
        states = stack(x, mask)
    states.float().sum().backward()
    if on_gpu:
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated(device) - before if on_gpu else None
    stack.zero_grad(set_to_none=True)
    return PassCost(seconds, sum(saved.values()), peak)


def measure_length(
    rows: Mapping[str, AttentionRow],
    scale: Scale,
    length: int,
    device: str,
    earlier: Mapping[str, Sequence[Cell]],
    cells: dict[str, Cell],
) -> Iterator[str]:
    """Measure rows in turns at one length into ``cells``; yield a row's name before each pass.

    ``earlier`` has the cells of each row at shorter lengths: a pass that would be over budget is
    left out, with the reason. The median of several passes is not that of the first, slow one.
    """
    settings = scale.cost_settings
    stacks: dict[str, Any] = {}
    passes: dict[str, list[PassCost]] = {name: [] for name in rows}
    for name, row in rows.items():
        if reason := find_budget_reason(earlier.get(name, ()), length, settings):
            cells[name] = {"tokens": length, "reason": reason}
        else:
            stacks[name] = build_cost_stack(row, scale, length, settings.depth, device)
    for turn in range(settings.repeats):
        for name in list(stacks):
            if turn and sum(cost.seconds for cost in passes[name]) >= settings.max_seconds:
                continue  # a long pass needs no second one
            yield name
            try:
                passes[name].append(measure_pass(stacks[name], settings.width, length, device))
                cells[name] = summarize_passes(length, passes[name])
            except torch.OutOfMemoryError:
                cells[name] = {"tokens": length, "reason": "more memory than the device has"}
                del stacks[name]
    baseline = cells.get(BASELINE, {}).get("seconds")
    for cell in cells.values():
        if baseline and "seconds" in cell:
            cell["ratio"] = round(cell["seconds"] / baseline, 3)


def find_budget_reason(earlier: Sequence[Cell], length: int, settings: CostSettings) -> str:
    """Say why a pass of this length is left out; empty if it is within the budgets.

    A cost is predicted from the growth between the last two lengths, at most with the square.
    """
    measured = [cell for cell in earlier if "seconds" in cell and cell["tokens"] < length]
    if not earlier or not measured:
        return str(earlier[-1]["reason"]) if earlier and "reason" in earlier[-1] else ""
    if "reason" in earlier[-1]:
        return str(earlier[-1]["reason"])
    seconds = predict_cost([(cell["tokens"], cell["seconds"]) for cell in measured], length)
    gigabytes = predict_cost([(cell["tokens"], cell["saved_mib"]) for cell in measured], length) * MIB / 1e9
    if seconds > settings.max_seconds:
        return f"about {seconds:.0f} s a pass at {length:,} tokens, over {settings.max_seconds:g} s"
    if gigabytes > settings.max_gb:
        return f"about {gigabytes:.0f} GB at {length:,} tokens, over {settings.max_gb:g} GB"
    return ""


def predict_cost(points: Sequence[tuple[int, float]], length: int) -> float:
    """Predict a cost at ``length`` from those at shorter lengths, in rising order."""
    last_length, last = points[-1]
    growth = 2.0
    if len(points) > 1 and points[-2][1] > 0 < last:
        growth = log(last / points[-2][1]) / log(last_length / points[-2][0])
    return last * (length / last_length) ** min(max(growth, 1.0), 2.0)


def summarize_passes(length: int, passes: Sequence[PassCost]) -> Cell:
    """Summarize the passes of a row at a length: medians, as JSON."""
    cell: Cell = {
        "tokens": length,
        "seconds": round(median(cost.seconds for cost in passes), 6),
        "saved_mib": round(passes[-1].saved_bytes / MIB, 3),
        "passes": len(passes),
    }
    peaks = [cost.peak_bytes for cost in passes if cost.peak_bytes is not None]
    return cell | ({"peak_mib": round(max(peaks) / MIB, 3)} if peaks else {})


def measure_depths(row: AttentionRow, scale: Scale, device: str) -> dict[str, float]:
    """Measure the MiB that a pass keeps with several numbers of layers, by their number."""
    settings = scale.cost_settings
    length = min(settings.depth_length, max(settings.lengths))
    saved = {}
    for depth in settings.depths:
        stack = build_cost_stack(row, scale, length, depth, device)
        saved[str(depth)] = round(measure_pass(stack, settings.width, length, device).saved_bytes / MIB, 3)
    return saved


def fit_slope(cells: Sequence[Cell], key: str) -> float | None:
    """Fit the power of the length by which a cost grows; None with fewer than two long lengths."""
    points = [(cell["tokens"], cell[key]) for cell in cells if cell["tokens"] >= FIRST_OF_SLOPE and cell.get(key)]
    if len(points) < 2:
        return None
    return round(linear_regression(*zip(*((log(tokens), log(cost)) for tokens, cost in points))).slope, 3)
