"""Run reversible blocks without storing their activations: the backward pass rebuilds them.

A block has ``forward(sublayer, x, mask, buckets)`` for its sublayers "attention" and "feed"; it
returns what to add to the stream that the sublayer does not read, and the buckets that attention
drew, if it draws any.

Shapes: b batch, n tokens, d width, h heads, r rounds of hashing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call

SEED_LIMIT = 2**62


class Streams(NamedTuple):
    """The two streams of states between reversible blocks."""

    first: Tensor  # b n d
    second: Tensor  # b n d


@dataclass(frozen=True, kw_only=True)
class ReversibleRun:
    """What is the same in the forward and the backward pass of some blocks."""

    blocks: Sequence[nn.Module]
    mask: Any  # of the attention
    seed: int | None  # of the dropout in training
    device: torch.device
    autocast: Mapping[str, Any]  # arguments of the autocast context of the forward pass

    @classmethod
    def start(cls, blocks: Sequence[nn.Module], mask: Any, device: torch.device) -> "ReversibleRun":
        """Note the precision, and in training draw a seed from the global generator."""
        is_training = any(block.training for block in blocks)
        seed = int(torch.randint(SEED_LIMIT, ())) if is_training else None
        # Without the cache: weights that are cast without gradients must not be used with them.
        autocast = {
            "device_type": device.type,
            "dtype": torch.get_autocast_dtype(device.type),
            "enabled": torch.is_autocast_enabled(device.type),
            "cache_enabled": False,
        }
        return cls(blocks=blocks, mask=mask, seed=seed, device=device, autocast=autocast)

    def parameters(self) -> list[Tensor]:
        """List the weights of all blocks."""
        return [weight for block in self.blocks for weight in block.parameters()]

    def compute_update(
        self, number: int, sublayer: str, x: Tensor, weights: Mapping[str, Tensor], buckets: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Run a sublayer of block ``number`` with these weights and its part of the randomness."""
        with torch.autocast(**self.autocast), self.seed_generators(2 * number + (sublayer == "feed")):
            return functional_call(self.blocks[number], dict(weights), (sublayer, x, self.mask, buckets))

    @contextmanager
    def seed_generators(self, offset: int) -> Iterator[None]:
        """Seed the global generators for a while, so that dropout can be repeated."""
        if self.seed is None:
            yield
            return
        is_cuda = self.device.type == "cuda"
        with torch.random.fork_rng(devices=[self.device] if is_cuda else []):
            torch.default_generator.manual_seed(self.seed + offset)
            if is_cuda:
                index = torch.cuda.current_device() if self.device.index is None else self.device.index
                torch.cuda.default_generators[index].manual_seed(self.seed + offset)
            yield

    def advance(
        self, number: int, streams: Streams, weights: Mapping[str, Tensor], buckets: Tensor | None = None
    ) -> tuple[Streams, Tensor | None]:
        """Run a block: y₁ = x₁ + attention(x₂), y₂ = x₂ + feed(y₁)."""
        update, buckets = self.compute_update(number, "attention", streams.second, weights, buckets)
        first = streams.first + update
        update, _ = self.compute_update(number, "feed", first, weights)
        return Streams(first, streams.second + update), buckets


def run_reversible(blocks: Sequence[nn.Module], x: Tensor, mask: Any) -> Streams:
    """Run blocks on two streams that both begin with ``x`` b n d.

    Only the last states are stored for the backward pass and, of attention that draws random
    buckets, those: in states that were rebuilt with rounding errors a vector on the border of two
    buckets may change sides.
    """
    run = ReversibleRun.start(blocks, mask, x.device)
    return Streams(*uncompiled_rebuild()(run, x, x, *run.parameters()))


@cache
def uncompiled_rebuild() -> Callable[..., Any]:
    """Wrap the function of autograd so that it is never compiled."""
    return torch.compiler.disable(RebuildFunction.apply)


class RebuildFunction(torch.autograd.Function):
    """Reversible blocks (Gomez et al. 2017, algorithm 1) as one function of autograd."""

    @staticmethod
    def forward(ctx: Any, run: ReversibleRun, first: Tensor, second: Tensor, *parameters: Tensor) -> Any:
        streams, all_buckets = Streams(first, second), []
        for number, weights in enumerate(group_weights(run, parameters)):
            streams, buckets = run.advance(number, streams, weights)
            all_buckets.append(buckets)
        ctx.run, ctx.num_parameters = run, len(parameters)
        ctx.save_for_backward(*streams, *parameters, *all_buckets)
        return tuple(streams)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        run, saved = ctx.run, ctx.saved_tensors
        streams, gradient, end = Streams(*saved[:2]), Streams(*gradients), 2 + ctx.num_parameters
        all_weights, all_buckets = group_weights(run, saved[2:end]), saved[end:]
        parameter_gradients: list[Tensor | None] = []
        for number in reversed(range(len(run.blocks))):
            weights = all_weights[number]
            update, second, of_feed = repeat_update(run, number, "feed", streams.first, weights, gradient.second)
            streams = streams._replace(second=streams.second - update)
            gradient = gradient._replace(first=gradient.first + second)
            update, first, of_attention = repeat_update(
                run, number, "attention", streams.second, weights, gradient.first, all_buckets[number]
            )
            streams = streams._replace(first=streams.first - update)
            gradient = gradient._replace(second=gradient.second + first)
            parameter_gradients[:0] = [a if b is None else b for a, b in zip(of_feed, of_attention, strict=True)]
        return None, *gradient, *parameter_gradients


def group_weights(run: ReversibleRun, parameters: Sequence[Tensor]) -> list[dict[str, Tensor]]:
    """Group the weights of all blocks by block, with their names."""
    remaining = iter(parameters)
    return [{name: next(remaining) for name, _ in block.named_parameters()} for block in run.blocks]


def repeat_update(
    run: ReversibleRun, number: int, sublayer: str, x: Tensor, weights: Mapping[str, Tensor], gradient: Tensor,
    buckets: Tensor | None = None,
) -> tuple[Tensor, Tensor, list[Tensor | None]]:  # fmt: skip
    """Repeat a sublayer; return its update, the gradient of ``x``, and those of the weights."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        update, _ = run.compute_update(number, sublayer, x, weights, buckets)
    inputs = [x, *(weight for weight in weights.values() if weight.requires_grad)]
    gradients = iter(torch.autograd.grad(update, inputs, gradient.to(update.dtype), allow_unused=True))
    x_gradient = next(gradients)
    return update.detach(), x_gradient, [next(gradients) if w.requires_grad else None for w in weights.values()]
