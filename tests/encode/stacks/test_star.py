"""The Star-Transformer: equal to loops over tokens, linear, and able to carry what is far off.

Shapes: b batch, n tokens, d width.
"""

import math
from typing import Any

import pytest
import torch
from saved_bytes import fit_slope, measure_saved_bytes
from torch import Tensor, nn

from mnemic.encode.stacks import StarStack
from mnemic.encode.stacks.star import StarBlock
from mnemic.recipe import ConfigError
from mnemic.respond.classes import ClassHead, masked_max

D = 8
VARIANTS = pytest.mark.parametrize("variant", ["paper", "published"])


def make_stack(variant: Any = "paper", width: int = D, **options: Any) -> StarStack:
    """Make a stack in float64 with random weights everywhere, also in norms."""
    torch.manual_seed(0)
    stack = StarStack(width, variant=variant, heads=2, **options).double()
    with torch.no_grad():
        for weight in stack.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    return stack


def random_states(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def attend(project: Any, query: Tensor, context: list[Tensor]) -> Tensor:
    """Attend from one vector to a list of vectors, one head at a time."""
    channels = len(query) // project.heads
    heads = []
    for head in range(project.heads):
        part = slice(head * channels, (head + 1) * channels)
        scores = [project.query(query)[part] @ project.key(x)[part] / math.sqrt(channels) for x in context]
        weights = torch.stack(scores).softmax(0)
        heads.append(sum(weight * project.value(x)[part] for weight, x in zip(weights, context)))
    return project.out(torch.cat(heads))


def reference_star(stack: StarStack, tokens: Tensor, is_published: bool) -> Tensor:
    """Run the stack on one text without padding, token by token (n d)."""
    embeddings = list(tokens)
    h, relay = list(tokens), sum(embeddings) / len(embeddings)
    for block in stack.blocks:
        normed = [block.norm(x) for x in h] if is_published else h
        updates = []
        for i in range(len(h)):
            neighbors = [normed[j] for j in (i - 1, i, i + 1) if 0 <= j < len(h)]
            updates.append(attend(block.ring.project, normed[i], [*neighbors, embeddings[i], relay]))
        if is_published:
            h = [nn.functional.leaky_relu(x) for x in updates]
            relay = nn.functional.leaky_relu(attend(block.star.project, relay, [relay, *h]))
        else:
            h = [block.norm(x.relu()) for x in updates]
            relay = block.relay_norm(attend(block.star.project, relay, [relay, *h]).relu())
    if is_published:
        return torch.stack([0.5 * (x + relay) for x in h])
    return torch.stack([x + stack.add_relay.weight @ relay for x in h])


@VARIANTS
@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_star_equals_loops_over_tokens(variant: Any, length: int) -> None:
    stack, x = make_stack(variant, depth=3), random_states(2, length, D)
    expected = torch.stack([reference_star(stack, text, variant == "published") for text in x])
    torch.testing.assert_close(stack(x, torch.ones(2, length).bool()), expected)


@VARIANTS
def test_padding_anywhere_changes_nothing(variant: Any) -> None:
    """Neighbors are the next real tokens, also across padding."""
    stack, x = make_stack(variant), random_states(3, 9, D)
    mask = torch.tensor([[1, 1, 0, 0, 1, 1, 0, 1, 0], [1] * 9, [0] * 9]).bool()
    x[1] = x[0]
    states = stack(x, mask)
    alone = stack(x[:1, mask[0]], torch.ones(1, 5).bool())
    torch.testing.assert_close(states[0, mask[0]], alone[0])
    assert (states[~mask] == 0).all()
    changed = torch.where(mask.unsqueeze(-1), x, x + 5)
    torch.testing.assert_close(stack(changed, mask), states)


def test_a_text_of_padding_has_finite_gradients() -> None:
    stack, x = make_stack(), random_states(2, 5, D).requires_grad_()
    (stack(x, torch.tensor([[True] * 5, [False] * 5])) * random_states(2, 5, D, seed=2)).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert (x.grad[1] == 0).all()
    assert all(weight.grad.isfinite().all() and weight.grad.any() for _, weight in without_key_biases(stack))


def without_key_biases(stack: nn.Module) -> list[tuple[str, Any]]:
    """List the weights; softmax ignores what the bias of a key adds to all scores."""
    return [(name, weight) for name, weight in stack.named_parameters() if not name.endswith("key.bias")]


def test_one_layer_reaches_the_neighbors_and_the_relay_the_rest() -> None:
    """Without the relay, a change goes one token further per layer."""
    stack, x = make_stack(depth=2), random_states(1, 9, D)
    changed = x.clone()
    changed[:, 0] += 1
    block, mask, relay = stack.blocks[0], torch.ones(1, 9).bool(), x[:, :1]
    assert isinstance(block, StarBlock)
    before, after = (block.ring(states, states, relay, mask) for states in (x, changed))
    assert (before != after).any(-1)[0].tolist() == [True, True] + [False] * 7
    assert (stack(x, mask) != stack(changed, mask)).any(-1).all()


def test_layers_are_yielded_without_the_relay() -> None:
    stack, x = make_stack(depth=2), random_states(2, 5, D)
    mask = torch.tensor([[True, False, True, True, True], [True] * 5])
    layers = list(stack.iterate_layers(x, mask))
    assert len(layers) == 3
    torch.testing.assert_close(layers[0], x)
    relay_part = (stack(x, mask) - layers[-1])[mask]
    torch.testing.assert_close(relay_part[0].expand(4, -1), relay_part[:4])  # the same for all tokens of a text


def test_max_pooling_gives_relay_and_maximum() -> None:
    """The class head on ``pool="max"`` sees P s + max H."""
    stack, x = make_stack(), random_states(2, 6, D)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    head = ClassHead(D, 3, pool="max").double().eval()
    states = stack(x, mask)
    *_, tokens = stack.iterate_layers(x, mask)
    relay = (states - tokens)[:, 0]
    pooled = torch.stack([tokens[0].amax(0), tokens[1, :4].amax(0)]) + relay
    torch.testing.assert_close(head(None, None, states, mask), head.out(head.inner(pooled).tanh()))
    assert (masked_max(states, torch.zeros_like(mask)) == 0).all()


def test_saved_bytes_grow_linearly() -> None:
    stack = StarStack(8, heads=2, depth=1)
    lengths = [2048, 8192, 32768]
    sizes = [measure_saved_bytes(lambda n=n: stack(torch.randn(1, n, 8), torch.ones(1, n).bool())) for n in lengths]
    assert fit_slope(lengths, sizes) < 1.05


def test_a_context_or_a_mask_per_token_is_refused() -> None:
    stack, x = make_stack(), random_states(1, 3, D)
    with pytest.raises(ConfigError, match="'star' have no context"):
        stack(x, torch.ones(1, 3).bool(), context=x)
    with pytest.raises(ConfigError, match="'star' take a mask b n"):
        stack(x, torch.ones(1, 3, 3).bool())


# Masked summation (section 5.1): add the numbers whose flag is 1.


def make_sums(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Make 24 texts of 50 tokens, each a flag and a number, and the sum of the flagged numbers."""
    numbers = torch.rand(24, 50, 1, generator=generator) * 2 - 1
    flags = (torch.rand(24, 50, 1, generator=generator) < 0.15).float()
    return torch.cat([flags, numbers], -1), (flags * numbers).sum(1)


def train_sums(stack: nn.Module, steps: int) -> float:
    """Learn the sum from the first token's state; return the error as a share of the variance."""
    network = nn.ModuleDict({"embed": nn.Linear(2, 16), "stack": stack, "out": nn.Linear(16, 1)})
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, steps)
    generator, mask = torch.Generator().manual_seed(0), torch.ones(24, 50).bool()
    errors = []
    for _ in range(steps):
        x, target = make_sums(generator)
        optimizer.zero_grad()
        loss = (network["out"](network["stack"](network["embed"](x), mask)[:, 0]) - target).square().mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        errors.append(loss.item() / target.var().item())
    return sum(errors[-10:]) / 10


class RingOnly(nn.Module):
    """Two layers of window 3 without a relay."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = StarStack(16).blocks

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        h = x
        for block in self.blocks:
            h = block.norm(block.ring(h, x, torch.zeros_like(x[:, :1]), mask).relu())
        return h


def test_the_relay_adds_up_what_a_window_cannot_see() -> None:
    """It is read at the first token: the window of two layers ends two tokens further on."""
    torch.manual_seed(0)
    assert train_sums(StarStack(16), 120) < 0.15
    assert train_sums(RingOnly(), 60) > 0.8
