"""The BP-Transformer: equal to dense attention over a tree built from its definition.

Shapes: b batch, n tokens, u all nodes, d width, h heads, c channels of one head.
"""

from typing import Any, NamedTuple

import pytest
import torch
from saved_bytes import fit_slope, measure_saved_bytes
from torch import Tensor, nn

from mnemic.encode.stacks import BinaryTreeDecoder, BinaryTreeStack, EncoderStack, tree_layout
from mnemic.encode.stacks.tree_layout import build_layout, make_layout
from mnemic.recipe import ConfigError

D = 8
CPU = torch.device("cpu")


class Edge(NamedTuple):
    """What a token sees: a node, and at which level, rank and side it is counted."""

    node: tuple[int, int]  # its level and its number there
    level: int
    rank: int
    is_past: bool


def tokens_of(node: tuple[int, int], length: int) -> set[int]:
    """List the tokens of a text that a node covers."""
    level, number = node
    return set(range(number << level, min((number + 1) << level, length)))


def find_edges(token: int, length: int, neighbors: int, is_causal: bool) -> list[Edge]:
    """Walk from a token to both sides, from fine to coarse levels, as the paper describes it."""
    edges = []
    for is_past in (True,) if is_causal else (True, False):
        covered = {token}
        for level in range(length.bit_length() + 1):
            for rank in range(neighbors):
                tokens = range(token - 1, -1, -1) if is_past else range(token + 1, length)
                uncovered = next((other for other in tokens if other not in covered), None)
                if uncovered is None:
                    break
                node = (level, uncovered >> level)
                if level and tokens_of(node, length) & covered:  # half covered: its uncovered child
                    node = (level - 1, uncovered >> (level - 1))
                edges.append(Edge(node, level, rank, is_past))
                covered |= tokens_of(node, length)
    return edges


def reference_tree(stack: Any, tokens: Tensor, is_causal: bool) -> tuple[Tensor, Tensor]:
    """Run dense attention over all nodes of one text; return its tokens (n d) and its root (d)."""
    length = len(tokens)
    nodes = [(level, number) for level in range(length.bit_length() + 1) for number in range(-(-length >> level))]
    nodes.append((length.bit_length() + 1, 0))  # the root, also of one token
    index = {node: number for number, node in enumerate(nodes)}
    x = torch.cat([tokens, tokens.new_zeros(len(nodes) - length, D)])
    for block in stack.blocks:
        attention = block.attention
        visible = torch.zeros(len(nodes), len(nodes), dtype=torch.bool)
        vectors = torch.zeros(len(nodes), len(nodes), D // attention.heads, dtype=x.dtype)
        for number, node in enumerate(nodes):
            if number >= length:
                visible[number, list(tokens_of(node, length))] = True
                continue
            visible[number, number] = True
            vectors[number, number] = attention.itself
            for edge in find_edges(number, length, attention.neighbors, is_causal):
                assert not visible[number, index[edge.node]]
                visible[number, index[edge.node]] = True
                side, level = 0 if edge.is_past else 1, min(edge.level, attention.max_level)
                vectors[number, index[edge.node]] = attention.edges[side, level, edge.rank]
        query, key, value = (
            (x @ linear.weight.T).view(len(nodes), attention.heads, -1)
            for linear in (attention.query, attention.key, attention.value)
        )
        scores = torch.einsum("ihc,jhc->hij", query, key) + torch.einsum("ihc,ijc->hij", query, vectors)
        weights = (scores / query.shape[-1] ** 0.5).masked_fill(~visible, float("-inf")).softmax(-1)
        mixed = torch.einsum("hij,jhc->ihc", weights, value).flatten(1) @ attention.out.weight.T
        x = block.around_attention.norm(x + mixed)
        x = block.around_feed.norm(x + block.feed.narrow(block.feed.widen(x).relu()))
    return x[:length], x[-1]


def randomize(stack: nn.Module) -> Any:
    """Give all weights random values in float64, also norms and biases."""
    torch.manual_seed(7)
    stack = stack.double().eval()
    with torch.no_grad():
        for weight in stack.parameters():
            weight.copy_(torch.randn_like(weight) * 0.5)
    return stack


def make_stack(neighbors: int, **options: Any) -> Any:
    return randomize(BinaryTreeStack(D, heads=2, neighbors=neighbors, max_level=2, inner=12, **options))


def make_decoder(neighbors: int) -> Any:
    return randomize(BinaryTreeDecoder(D, cross=False, heads=2, neighbors=neighbors, max_level=2, inner=12))


def random_states(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def full_mask(x: Tensor) -> Tensor:
    return torch.ones(x.shape[:2], dtype=torch.bool)


@pytest.mark.parametrize("neighbors", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 21, 33])
def test_trees_equal_dense_attention_over_all_nodes(neighbors: int, length: int) -> None:
    """Tokens, the root, and the causal tree."""
    stack, decoder, x = make_stack(neighbors), make_decoder(neighbors), random_states(1, length)
    tokens, root = reference_tree(stack, x[0], is_causal=False)
    torch.testing.assert_close(stack(x, full_mask(x))[0], tokens)
    stack.has_root = True
    torch.testing.assert_close(stack(x, full_mask(x))[0], root.expand(length, -1))
    causal_tokens, _ = reference_tree(decoder, x[0], is_causal=True)
    torch.testing.assert_close(decoder(x, full_mask(x)).states[0], causal_tokens)


def list_contexts(num_tokens: int, length: int, neighbors: int, is_causal: bool) -> list[list[int]]:
    """List the tokens that each token reaches by the layout's tables, with repetitions."""
    layout = make_layout(num_tokens, neighbors, is_causal, CPU)
    contexts = [[token] for token in range(length)]
    for window in layout.windows:
        for block, (nodes, starts) in enumerate(zip(window.nodes.tolist(), window.starts.tolist())):
            for row, is_edge in enumerate(window.is_edge.tolist()):
                token = block * len(window.is_edge) + row - window.front
                for column in range(len(nodes)):
                    if 0 <= token < length and is_edge[column] and starts[column] < length:
                        level = level_of(nodes[column], layout)
                        contexts[token] += tokens_of((level, starts[column] >> level), length)
    return contexts


def level_of(node: int, layout: tree_layout.TreeLayout) -> int:
    """Return the level of a node of the one sequence of all nodes."""
    ends = torch.tensor([layout.num_tokens, *layout.spans_per_level]).cumsum(0)
    return int((ends <= node).sum())


@pytest.mark.parametrize("neighbors", [1, 2, 3, 4, 16])
@pytest.mark.parametrize(("num_tokens", "length"), [(1, 1), (6, 6), (47, 47), (130, 130), (64, 37), (100, 65)])
def test_every_token_is_reached_exactly_once(neighbors: int, num_tokens: int, length: int) -> None:
    """Through tokens and spans; in a causal tree every past token and nothing later."""
    for token, context in enumerate(list_contexts(num_tokens, length, neighbors, is_causal=False)):
        assert sorted(context) == list(range(length)), token
    for token, context in enumerate(list_contexts(num_tokens, length, neighbors, is_causal=True)):
        assert sorted(context) == list(range(token + 1)), token


def test_a_known_context() -> None:
    """Of token 9 among 24 with two neighbors: 8, 7 | 6 (half of 6–7), 4–5 | 0–3."""
    past = [edge for edge in find_edges(9, 24, 2, is_causal=False) if edge.is_past]
    assert [(edge.node, edge.level, edge.rank) for edge in past] == [
        ((0, 8), 0, 0), ((0, 7), 0, 1), ((0, 6), 1, 0), ((1, 2), 1, 1), ((2, 0), 2, 0),
    ]  # fmt: skip
    later = [edge.node for edge in find_edges(9, 24, 2, is_causal=False) if not edge.is_past]
    assert later == [(0, 10), (0, 11), (1, 6), (1, 7), (2, 4), (2, 5)]


def test_edges_are_few() -> None:
    """Their number is about 2k·log₂(n/k), and the windows are not much wider."""
    layout = make_layout(4096, 8, False, CPU)
    visible = sum(int(window.is_edge.sum(1).max()) for window in layout.windows)
    assert visible <= 2 * 8 * 10 + 20
    assert sum(window.ranks.shape[1] for window in layout.windows) < 2 * visible


def test_many_neighbors_are_full_attention() -> None:
    """With zero vectors, exactly the layers of an encoder without biases."""
    stack, x = make_stack(16), random_states(2, 11)
    encoder = randomize(EncoderStack(D, inner=12, activation="relu", attention={"kind": "full", "heads": 2}))
    with torch.no_grad():
        for tree, block in zip(stack.blocks, encoder.blocks):
            tree.attention.itself.zero_()
            tree.attention.edges.zero_()
            for name in ("query", "key", "value", "out"):
                getattr(block.attention.project, name).weight.copy_(getattr(tree.attention, name).weight)
                getattr(block.attention.project, name).bias.zero_()
            block.feed.load_state_dict(tree.feed.state_dict())
            block.around_attention.load_state_dict(tree.around_attention.state_dict())
            block.around_feed.load_state_dict(tree.around_feed.state_dict())
    mask = torch.arange(11) < torch.tensor([[11], [6]])
    torch.testing.assert_close(stack(x, mask), encoder(x, mask))


@pytest.mark.parametrize("output", ["tokens", "root"])
def test_padding_anywhere_changes_nothing(output: str) -> None:
    """A text has the tree of its real tokens, whatever stands between or behind them."""
    stack, x = make_stack(1, output=output), random_states(4, 40)
    mask = torch.stack([torch.arange(40) < 13, torch.arange(40) % 3 == 0, torch.arange(40) >= 39, torch.zeros(40) > 0])
    states = stack(x, mask)
    for text, real in zip(x, mask):
        if real.any():
            alone = stack(text[None, real], full_mask(text[None, real]))
            torch.testing.assert_close(stack(text[None], real[None])[0, real], alone[0])
    torch.testing.assert_close(stack(torch.where(mask.unsqueeze(-1), x, x + 5), mask), states)
    torch.testing.assert_close(stack(x[1:2], mask[1:2]), states[1:2])
    assert (states[~mask] == 0).all()
    assert (states[mask] != 0).any(-1).all()


def test_a_text_of_padding_has_finite_gradients() -> None:
    stack, x = make_stack(1), random_states(2, 20).requires_grad_()
    (stack(x, torch.tensor([[True] * 20, [False] * 20])) * random_states(2, 20, seed=2)).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert (x.grad[1] == 0).all()
    weights = dict(stack.named_parameters())
    assert all(weight.grad.isfinite().all() and weight.grad.any() for weight in weights.values())
    edges = [weight.grad for name, weight in weights.items() if name.endswith("edges")]
    assert all((gradient != 0).any(-1).all() for gradient in edges)  # each level, side and rank


@pytest.mark.parametrize("neighbors", [1, 4])
def test_later_tokens_change_no_earlier_state(neighbors: int) -> None:
    decoder, x = make_decoder(neighbors), random_states(1, 40)
    before = decoder(x, full_mask(x)).states
    for token in range(1, 40):
        changed = torch.cat([x[:, :token], x[:, token:] + 1], 1)
        after = decoder(changed, full_mask(x)).states
        torch.testing.assert_close(before[:, :token], after[:, :token], atol=1e-12, rtol=0)
        assert (before[:, token:] != after[:, token:]).any(-1).all()


def test_token_by_token_gives_the_same_states_as_all_at_once() -> None:
    """One row has padding inside its prompt."""
    decoder, x = make_decoder(1), random_states(2, 19)
    mask = full_mask(x)
    mask[1, 2:7] = False
    expected = decoder(x, mask).states
    states, cache = [], decoder.empty_cache(x)
    for chunk, chunk_mask in zip(x.split([5, 1, 1, 3, 9], 1), mask.split([5, 1, 1, 3, 9], 1)):
        output = decoder(chunk, chunk_mask, cache)
        states.append(output.states)
        cache = output.cache
    torch.testing.assert_close(torch.cat(states, 1), expected)
    torch.testing.assert_close(decoder(x[1:, mask[1]], full_mask(x[1:, mask[1]])).states[0], expected[1, mask[1]])


@pytest.mark.parametrize("option", ["dropout", "attention_dropout"])
def test_dropout_acts_only_in_training(option: str) -> None:
    x = random_states(1, 9).float()
    for kind in (BinaryTreeStack(D, **{option: 0.5}), BinaryTreeDecoder(D, cross=False, **{option: 0.5})):
        stack: Any = kind
        outputs = [stack(x, full_mask(x)) for _ in range(2)]
        assert not torch.equal(*(getattr(output, "states", output) for output in outputs))
        stack.eval()
        outputs = [stack(x, full_mask(x)) for _ in range(2)]
        assert torch.equal(*(getattr(output, "states", output) for output in outputs))


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="at least 1 neighbor per level"):
        BinaryTreeStack(D, neighbors=0)
    with pytest.raises(ConfigError, match="max_level of -1"):
        BinaryTreeDecoder(D, cross=False, max_level=-1)
    with pytest.raises(ConfigError, match="width 8 does not divide into 3 heads"):
        BinaryTreeStack(D, heads=3)


@pytest.mark.parametrize("max_level", [0, 3])
def test_coarse_levels_share_their_vectors(max_level: int) -> None:
    decoder = BinaryTreeDecoder(D, cross=False, neighbors=2, max_level=max_level, depth=1)
    assert decoder.blocks[0].attention.edges.shape == (1, max_level + 1, 2, D // 4)
    assert decoder(random_states(1, 50).float(), torch.ones(1, 50).bool()).states.isfinite().all()


def test_iterate_layers_yields_each_layer() -> None:
    stack, x = make_stack(2, depth=3), random_states(2, 9)
    mask = torch.tensor([[True] * 9, [True, False] * 4 + [True]])
    layers = list(stack.iterate_layers(x, mask))
    assert len(layers) == 4
    assert torch.equal(layers[0], x)
    torch.testing.assert_close(layers[3][mask], stack(x, mask)[mask])


def test_a_context_a_source_or_a_mask_per_token_is_refused() -> None:
    stack, x = make_stack(2), random_states(1, 3)
    with pytest.raises(ConfigError, match="'binary-tree' have no context"):
        stack(x, full_mask(x), context=x)
    with pytest.raises(ConfigError, match="'binary-tree' take a mask b n"):
        stack(x, torch.ones(1, 3, 3).bool())
    with pytest.raises(ConfigError, match="no attention over a source"):
        BinaryTreeDecoder(D)


def test_layouts_are_built_once() -> None:
    build_layout.cache_clear()
    stack = BinaryTreeStack(D)
    with torch.inference_mode():
        for length in (1000, 1000, 1005, 1023):
            x = torch.randn(1, length, D)
            stack(x, full_mask(x))
    assert build_layout.cache_info().misses == 1
    assert build_layout.cache_info().maxsize == tree_layout.MAX_LAYOUTS
    x = torch.randn(1, 1000, D, requires_grad=True)
    stack(x, full_mask(x)).sum().backward()  # with the tables of inference mode


@pytest.mark.parametrize("is_causal", [False, True])
def test_saved_bytes_grow_almost_linearly(is_causal: bool) -> None:
    """By n·log(n): the slope is a little above 1."""
    stack = BinaryTreeDecoder(8, cross=False, heads=2, depth=1) if is_causal else BinaryTreeStack(8, heads=2, depth=1)
    lengths = [2048, 8192, 32768]

    def run(length: int) -> Tensor:
        x = torch.randn(1, length, 8)
        output: Any = stack(x, full_mask(x))
        return output.states if is_causal else output

    sizes = [measure_saved_bytes(lambda length=length: run(length)) for length in lengths]
    assert fit_slope(lengths, sizes) < 1.2
