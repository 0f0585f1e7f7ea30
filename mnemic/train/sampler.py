"""Sample the batches of each epoch, as a pure function of seed and epoch.

So a run can resume from any step without a saved generator, every process of a distributed run
samples the same batch, and a run samples the same alone as stacked with others.

Shapes: e steps of an epoch, b batch, r uniforms; with several runs a runs axis before b.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import torch
from torch import Tensor

from mnemic.recipe import ConfigError

MAX_LENGTH_CLASSES = 512  # resolution of the search for bucket bounds


class BatchIndices(NamedTuple):
    """The rows of one batch, and its uniform random numbers."""

    rows: Tensor  # (runs) b
    uniforms: Tensor | None  # (runs) b r; None if the network draws none
    max_length: int | None = None  # of the bucket; None: any

    def select_shard(self, index: int, count: int) -> "BatchIndices":
        """Select one of ``count`` shards: every ``count``-th example."""
        uniforms = None if self.uniforms is None else self.uniforms[..., index::count, :]
        return BatchIndices(self.rows[..., index::count], uniforms, self.max_length)


@dataclass(frozen=True, kw_only=True)
class BatchSampler:
    """Sample batches of rows for one run, or for several stacked runs.

    With ``replace`` rows are sampled with replacement (MemN2N); otherwise an epoch is a shuffle of
    the pool, without the last examples that fill no batch. With ``in_order`` the pool is cut into
    as many equal parts as a batch has rows, which are read side by side, the same in each epoch:
    row r of a batch goes on where row r of the batch before ended. ``weights`` say how often an
    epoch has each row: 2.5 is twice, and once more for another half of such rows in each epoch.
    With several buckets the examples of a batch have similar lengths, or are of one of ``groups``;
    the bucket of a step is the same for all runs.
    """

    pools: Sequence[Tensor]  # the rows of each run
    seeds: Sequence[int]
    batch_size: int
    phase: int = 0
    num_uniforms: int = 0
    replace: bool = False
    in_order: bool = False
    stacked: bool = False  # keep the runs axis
    device: torch.device | str = "cpu"
    lengths: Tensor | None = None  # of all examples, for buckets
    num_buckets: int = 1
    weights: Tensor | None = None  # of all examples: how often each is in an epoch; None: once
    groups: Tensor | None = None  # of all examples: those of a batch have the same; None: any

    def __post_init__(self) -> None:
        smallest_pool = min(map(self.count_samples, self.pools))
        if smallest_pool < self.batch_size:
            raise ConfigError(
                f"a batch of {self.batch_size} cannot be drawn from {smallest_pool} training "
                f"examples: lower it, say train.batch={max(smallest_pool // 4, 1)}, or get "
                "more of them"
            )
        if self.groups is not None and (self.in_order or self.lengths is not None):
            raise ConfigError("batches of one task each have no buckets of lengths: leave out train.buckets")
        if self.in_order and (self.replace or self.num_buckets > 1 or self.weights is not None):
            raise ConfigError(
                "a stream is read in order: leave out train.replace and train.buckets, or set data.stream=false"
            )
        if not self.stacked and len(self.pools) != 1:
            raise ValueError("several runs need a runs axis: stacked=True")

    @cached_property
    def length_buckets(self) -> "list[Bucket]":
        """The pools split into buckets; one that fills no batch is merged with another."""
        if self.groups is not None:
            return self.make_groups(self.groups)
        if self.lengths is None or self.num_buckets == 1:
            return [Bucket(None, self.pools, min(map(self.count_samples, self.pools)) // self.batch_size)]
        lengths = torch.cat([self.lengths[rows] for rows in self.pools])
        *lower_bounds, max_length = choose_bucket_bounds(lengths, self.num_buckets)
        buckets: list[Bucket] = []
        for min_length in [*reversed(lower_bounds), -1]:
            bucket = self.make_bucket(min_length, max_length)
            if bucket.steps:
                buckets.append(bucket)
                max_length = min_length
        if max_length > -1:  # the shortest are too few
            buckets.append(self.make_bucket(-1, buckets.pop().max_length or max_length))
        return buckets

    def make_groups(self, groups: Tensor) -> "list[Bucket]":
        """Make a bucket of each group; all have to fill a batch."""
        buckets = []
        for group in groups.unique().tolist():
            pools = [rows[groups[rows] == group] for rows in self.pools]
            count = min(map(self.count_samples, pools))
            if count < self.batch_size:
                raise ConfigError(f"a task has {count} training examples, less than a batch: lower train.batch")
            buckets.append(Bucket(None, pools, count // self.batch_size))
        return buckets

    def make_bucket(self, min_length: int, max_length: int) -> "Bucket":
        """Make the bucket of the lengths above ``min_length``, up to ``max_length``."""
        assert self.lengths is not None
        fits = (self.lengths > min_length) & (self.lengths <= max_length)  # of all examples
        pools = [rows[fits[rows]] for rows in self.pools]
        return Bucket(max_length, pools, min(map(self.count_samples, pools)) // self.batch_size)

    def count_samples(self, pool: Tensor) -> int:
        """Count the samples of a pool in an epoch."""
        if self.weights is None:
            return len(pool)
        weights, counts = self.weights[pool].unique(return_counts=True)
        return sum(round(weight * count) for weight, count in zip(weights.tolist(), counts.tolist()))

    @cached_property
    def steps_per_epoch(self) -> int:
        """The number of steps per epoch."""
        return sum(bucket.steps for bucket in self.length_buckets)

    def iterate_from(self, step: int) -> Iterator[BatchIndices]:
        """Iterate over batches from this step on, without end.

        A thread samples the next epoch meanwhile.
        """
        epoch, first = divmod(step, self.steps_per_epoch)
        with ThreadPoolExecutor(1) as executor:
            future = executor.submit(self.draw_epoch, epoch)
            while True:
                rows, uniforms, max_lengths = future.result()
                rows, uniforms = rows.to(self.device), uniforms.to(self.device)
                epoch += 1
                future = executor.submit(self.draw_epoch, epoch)
                for index in range(first, self.steps_per_epoch):
                    yield BatchIndices(rows[index], uniforms[index] if self.num_uniforms else None, max_lengths[index])
                first = 0

    def draw_epoch(self, epoch: int) -> tuple[Tensor, Tensor, list[int | None]]:
        """Sample one epoch: rows, uniforms, and the maximum length of each batch."""
        order = [index for index, bucket in enumerate(self.length_buckets) for _ in range(bucket.steps)]
        if len(self.length_buckets) > 1:
            # The order of buckets is the same for every run.
            generator = make_generator(0, "buckets", self.phase, "epoch", epoch)
            order = [order[i] for i in torch.randperm(len(order), generator=generator).tolist()]
        draws_by_run = [self.draw_run(run, epoch, order) for run in range(len(self.pools))]
        rows, uniforms = (torch.stack(tensors, 1) for tensors in zip(*draws_by_run))  # e runs b …
        max_lengths = [self.length_buckets[index].max_length for index in order]
        return (rows, uniforms, max_lengths) if self.stacked else (rows.squeeze(1), uniforms.squeeze(1), max_lengths)

    def draw_run(self, run: int, epoch: int, order: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Sample the rows and uniforms of one run in an epoch, with buckets in ``order``."""
        generator = make_generator(self.seeds[run], "phase", self.phase, "epoch", epoch)
        batches = [self.draw_batches(bucket, run, generator) for bucket in self.length_buckets]
        rows = torch.stack([next(batches[index]) for index in order])
        return rows, torch.rand(*rows.shape, self.num_uniforms, generator=generator)

    def draw_batches(self, bucket: "Bucket", run: int, generator: torch.Generator) -> Iterator[Tensor]:
        """Sample the batches of one bucket for an epoch."""
        pool, shape = bucket.pools[run], (bucket.steps, self.batch_size)
        if self.weights is not None:
            pool = self.repeat_rows(pool, generator)
        if self.replace:
            indices = torch.randint(len(pool), shape, generator=generator)
        elif self.in_order:
            indices = torch.arange(shape[0] * shape[1]).view(self.batch_size, -1).T
        else:
            indices = torch.randperm(len(pool), generator=generator)[: shape[0] * shape[1]].view(shape)
        return iter(pool[indices])

    def repeat_rows(self, pool: Tensor, generator: torch.Generator) -> Tensor:
        """Repeat each row as often as its weight; of a fraction, sample rows."""
        assert self.weights is not None
        weights = self.weights[pool]
        samples: list[Tensor] = []
        for weight in weights.unique().tolist():
            rows = pool[weights == weight]
            num_fraction = round(weight * len(rows)) - int(weight) * len(rows)
            samples += [rows] * int(weight)
            samples.append(rows[torch.randperm(len(rows), generator=generator)[:num_fraction]])
        return torch.cat(samples)


class Bucket(NamedTuple):
    """The examples of similar length, per run."""

    max_length: int | None  # None: any
    pools: Sequence[Tensor]  # the rows of each run
    steps: int  # batches per epoch


def choose_bucket_bounds(lengths: Tensor, num_buckets: int) -> list[int]:
    """Choose the upper bounds of buckets of lengths that minimize the total padding.

    Dynamic programming: ``cost[k]`` is the minimal sum of bounds over all examples up to length k,
    with one more bucket in each iteration. Lengths are rounded up to at most
    ``MAX_LENGTH_CLASSES`` different ones.
    """
    unit = max(-(-int(lengths.max()) // MAX_LENGTH_CLASSES), 1)
    counts = torch.bincount((lengths + unit - 1) // unit)
    num_shorter = counts.cumsum(0)  # examples of length k or less
    sizes = torch.arange(len(counts))
    cost, previous_bounds = sizes * num_shorter, []
    for _ in range(min(num_buckets, int((counts > 0).sum())) - 1):
        # One more bucket, from the previous bound j < k to the bound k.
        total_cost = cost[None, :] + sizes[:, None] * (num_shorter[:, None] - num_shorter[None, :])  # k j
        total_cost = total_cost.masked_fill(sizes[None, :] >= sizes[:, None], total_cost.max() + 1)
        cost, last = total_cost.min(1)
        previous_bounds.append(last)
    bounds = [len(counts) - 1]
    for last in reversed(previous_bounds):
        bounds.append(int(last[bounds[-1]]))
    return sorted({unit * bound for bound in bounds})


def make_generator(seed: int, *purpose: object) -> torch.Generator:
    """Make a random generator from a seed and a purpose; the same on every machine."""
    text = "/".join(str(word) for word in (seed, *purpose))
    number = int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1
    return torch.Generator().manual_seed(number)
