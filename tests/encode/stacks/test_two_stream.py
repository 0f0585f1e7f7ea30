"""Two-stream attention: parity with transformers, what each stream sees, and its twins.

Shapes: b batch, n tokens, m tokens of a memory, d width, h heads.
"""

from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode.stacks import FactorizationOrder, StackContext
from mnemic.encode.stacks.decoder import DecoderStack
from mnemic.encode.stacks.two_stream import SEEN_BY_ALL, TwoStreamStack
from mnemic.encode.transformer import TransformerEncoder
from mnemic.recipe import ConfigError

D, HEADS, VOCAB = 16, 4, 20
EMBEDDINGS = {"kind": "sum", "norm": False, "positions": {"kind": "none"}}


def make_stack(seed: int = 0, **options: Any) -> TwoStreamStack:
    torch.manual_seed(seed)
    stack = TwoStreamStack(D, heads=HEADS, **options).double().eval()
    for weight in stack.parameters():
        weight.data.add_(0.3 * torch.randn_like(weight))
    return stack


def random_states(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def order_of(*ranks: int, queries: list[int]) -> FactorizationOrder:
    return FactorizationOrder(torch.tensor([ranks]), torch.tensor([queries]))


def full_mask(x: Tensor) -> Tensor:
    return torch.ones(x.shape[:2], dtype=torch.bool)


# Parity with transformers -----------------------------------------------------------------------


@cache
def transformers_model() -> Any:
    """Make a random XLNet of transformers, with the same scale for every weight."""
    from transformers import XLNetConfig, XLNetLMHeadModel

    config = XLNetConfig(
        vocab_size=VOCAB, d_model=D, n_layer=3, n_head=HEADS, d_inner=24, dropout=0.0, mem_len=5, use_mems_eval=True
    )
    torch.manual_seed(3)
    model = XLNetLMHeadModel(config)
    for weight in model.parameters():
        weight.data.normal_(0, 0.3)
    return model.eval()


def copied_encoder(model: Any) -> TransformerEncoder:
    """Make our encoder with the weights of an XLNet."""
    encoder = TransformerEncoder(
        D, VOCAB, embeddings=EMBEDDINGS, stack={"kind": "two-stream", "depth": 3, "inner": 24, "heads": HEADS}
    ).eval()
    trunk = model.transformer
    weights = {"embeddings.tokens": trunk.word_embedding.weight, "stack.query_start": trunk.mask_emb.flatten()}
    for number, layer in enumerate(trunk.layer):
        attention, feed = layer.rel_attn, layer.ff
        projections = {"query": attention.q, "key": attention.k, "value": attention.v}
        block = {f"attention.project.{name}.weight": w.flatten(1).T for name, w in projections.items()}
        block |= {
            "attention.project.out.weight": attention.o.flatten(1),
            "attention.distance.weight": attention.r.flatten(1).T,
            "attention.content_bias": attention.r_w_bias.unsqueeze(1),
            "attention.distance_bias": attention.r_r_bias.unsqueeze(1),
            "segments.bias": attention.r_s_bias.unsqueeze(1),
            "segments.vectors": attention.seg_embed,
            "around_attention.norm.weight": attention.layer_norm.weight,
            "around_attention.norm.bias": attention.layer_norm.bias,
            "feed.widen.weight": feed.layer_1.weight,
            "feed.widen.bias": feed.layer_1.bias,
            "feed.narrow.weight": feed.layer_2.weight,
            "feed.narrow.bias": feed.layer_2.bias,
            "around_feed.norm.weight": feed.layer_norm.weight,
            "around_feed.norm.bias": feed.layer_norm.bias,
        }
        weights |= {f"stack.blocks.{number}.{name}": weight for name, weight in block.items()}
    encoder.load_state_dict(weights)
    return encoder


@torch.no_grad()
def test_both_streams_and_the_memory_are_those_of_transformers() -> None:
    """Segments, padding, a memory, unasked tokens seen by all, ranked tokens that are not asked."""
    model, generator = transformers_model(), torch.Generator().manual_seed(0)
    encoder = copied_encoder(model)
    tokens = torch.randint(VOCAB, (2, 12), generator=generator)
    earlier = tokens.roll(3, 1)[:, :7]
    segments = (torch.arange(12) > 6).long().expand(2, -1)
    mask = torch.arange(12) < torch.tensor([[12], [9]])
    ranks = torch.stack([torch.randperm(12, generator=generator) for _ in range(2)])
    ranks[:, [1, 4, 8, 10]] = SEEN_BY_ALL
    is_target = torch.zeros(2, 12, dtype=torch.bool)
    is_target[0, [2, 3, 9]] = is_target[1, [0, 5, 6]] = True
    queries = is_target.nonzero()[:, 1].view(2, 3)

    # Hide by rank, as the authors' code does; ranked tokens that are not asked see themselves.
    limits = torch.where(is_target | (ranks == SEEN_BY_ALL), ranks, ranks + 1).unsqueeze(2)
    limits = torch.where((ranks == SEEN_BY_ALL).unsqueeze(2), torch.zeros_like(limits), limits)
    hidden = (limits <= ranks.unsqueeze(1)) & (ranks != SEEN_BY_ALL).unsqueeze(1)
    target_mapping = nn.functional.one_hot(queries, 12).float()
    mems = model.transformer(earlier).mems
    expected = model.transformer(
        tokens, attention_mask=mask.float(), mems=mems, perm_mask=hidden.float(), token_type_ids=segments,
        target_mapping=target_mapping, output_hidden_states=True,
    )  # fmt: skip
    assert mems[0].shape == (5, 2, D)

    memory_layers = list(encoder.iterate_layers(earlier, full_mask(earlier)))[:-1]
    context = StackContext(tuple(layer[:, -5:] for layer in memory_layers), torch.ones(2, 5, dtype=torch.bool))
    for ours, theirs in zip(context.layers, mems, strict=True):
        torch.testing.assert_close(ours, theirs.transpose(0, 1), atol=1e-4, rtol=0)
    x = encoder.embeddings(tokens, mask)
    states, contents = encoder.stack.predict(x, mask, FactorizationOrder(ranks, queries), context, segments=segments)
    torch.testing.assert_close(states[is_target].view(2, 3, D), expected.last_hidden_state, atol=1e-4, rtol=0)
    assert (states[~is_target] == 0).all()
    for ours, theirs in zip(contents, expected.hidden_states[::2], strict=True):
        torch.testing.assert_close(ours[mask], theirs[mask], atol=1e-4, rtol=0)

    content = encoder(tokens, mask, context, segments=segments)
    plain = model.transformer(tokens, attention_mask=mask.float(), mems=mems, token_type_ids=segments)
    torch.testing.assert_close(content[mask], plain.last_hidden_state[mask], atol=1e-4, rtol=0)


# What each stream sees -----------------------------------------------------------------------


def find_influences(stack: TwoStreamStack, order: FactorizationOrder, length: int) -> dict[int, set[int]]:
    """Find which tokens each query depends on, by changing one token after another."""
    x, queries = random_states(1, length), order.queries[0].tolist()
    states, _ = stack.predict(x, full_mask(x), order)
    influences: dict[int, set[int]] = {query: set() for query in queries}
    for token in range(length):
        changed = x.clone()
        changed[:, token] += 1
        new_states, _ = stack.predict(changed, full_mask(x), order)
        for query in queries:
            if not torch.equal(states[0, query], new_states[0, query]):
                influences[query].add(token)
    return influences


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_order_of_the_paper(norm: str) -> None:
    """The example 3 → 2 → 4 → 1: each token is predicted from those before it, in any depth."""
    stack = make_stack(depth=3, norm=norm)
    influences = find_influences(stack, order_of(3, 1, 0, 2, queries=[0, 1, 2, 3]), 4)
    assert {query + 1: {token + 1 for token in tokens} for query, tokens in influences.items()} == {
        3: set(), 2: {3}, 4: {3, 2}, 1: {3, 2, 4},
    }  # fmt: skip


def test_no_query_sees_its_own_token_or_later_ones() -> None:
    """Random orders; tokens that are not asked are seen by all and see no asked one."""
    stack, generator = make_stack(depth=2), torch.Generator().manual_seed(0)
    for _ in range(3):
        ranks = torch.randperm(9, generator=generator)
        ranks[torch.randperm(9, generator=generator)[:3]] = SEEN_BY_ALL
        queries = [token for token in range(9) if ranks[token] != SEEN_BY_ALL]
        influences = find_influences(stack, order_of(*ranks.tolist(), queries=queries), 9)
        for query in queries:
            assert influences[query] == {token for token in range(9) if ranks[token] < ranks[query]}


def test_contents_see_themselves_and_what_is_before() -> None:
    stack, x = make_stack(depth=2), random_states(1, 4)
    order = order_of(3, 1, 0, SEEN_BY_ALL, queries=[0])
    *_, before = stack.predict(x, full_mask(x), order)[1]
    seen = {0: {0, 1, 2, 3}, 1: {1, 2, 3}, 2: {2, 3}, 3: {3}}
    for token in range(4):
        changed = x.clone()
        changed[:, token] += 1
        *_, after = stack.predict(changed, full_mask(x), order)[1]
        assert {row for row in range(4) if not torch.equal(before[0, row], after[0, row])} == {
            row for row, tokens in seen.items() if token in tokens
        }


def test_the_order_of_the_text_is_a_causal_transformer_xl() -> None:
    """The content stream equals a decoder's layers with the same weights, memory and all."""
    stack = make_stack(depth=2, norm="pre", epsilon=1e-5)
    for block in stack.blocks:
        block.segments.vectors.data.zero_()
    decoder = DecoderStack(
        D, depth=2, norm="pre", cross=False, attention={"kind": "transformer-xl", "heads": HEADS}
    ).double()  # fmt: skip
    weights = {name: weight for name, weight in stack.state_dict().items() if name in decoder.state_dict()}
    decoder.load_state_dict(weights)
    x, memory = random_states(2, 6), random_states(2, 3, seed=2)
    context = StackContext((memory, memory + 1), torch.ones(2, 3, dtype=torch.bool))
    order = FactorizationOrder(torch.arange(6).expand(2, -1), torch.full((2, 1), 6))
    states, contents = stack.predict(x, full_mask(x), order, context)
    torch.testing.assert_close(stack.norm(contents[-1]), decoder(x, full_mask(x), context=context).states)
    assert (states == 0).all()


def test_asked_places_cost_nothing_else() -> None:
    """Fewer queries give the same states at those that are left, and padding changes nothing."""
    stack, x = make_stack(), random_states(1, 7)
    ranks = (3, 1, 0, SEEN_BY_ALL, 4, 2, 5)
    everything, _ = stack.predict(x, full_mask(x), order_of(*ranks, queries=[0, 1, 2, 4, 5, 6]))
    some, _ = stack.predict(x, full_mask(x), order_of(*ranks, queries=[1, 4, 7, 7]))
    torch.testing.assert_close(some[:, [1, 4]], everything[:, [1, 4]])
    assert (some[:, [0, 2, 3, 5, 6]] == 0).all()
    padded = torch.cat([x, random_states(1, 2, seed=5)], 1)
    mask = torch.arange(9).unsqueeze(0) < 7
    with_padding, _ = stack.predict(padded, mask, order_of(*ranks, 0, 1, queries=[1, 4]))
    torch.testing.assert_close(with_padding[:, :7], some)


def test_segments_are_relative() -> None:
    """Only whether two tokens are in the same segment counts, not in which."""
    stack, x = make_stack(), random_states(1, 6)
    segments = torch.tensor([[0, 0, 1, 1, 1, 0]])
    states = stack(x, full_mask(x), segments=segments)
    torch.testing.assert_close(stack(x, full_mask(x), segments=1 - segments), states)
    assert not torch.allclose(stack(x, full_mask(x)), states)
    torch.testing.assert_close(stack(x, full_mask(x)), stack(x, full_mask(x), segments=torch.ones_like(segments)))


def test_every_weight_learns_from_the_query_stream() -> None:
    encoder = TransformerEncoder(D, VOCAB, embeddings=EMBEDDINGS, stack={"kind": "two-stream"})
    tokens = torch.randint(VOCAB, (2, 8), generator=torch.Generator().manual_seed(0))
    ranks = torch.randperm(8, generator=torch.Generator().manual_seed(1)).expand(2, -1)
    order = FactorizationOrder(ranks, torch.arange(8).expand(2, -1))
    segments = torch.arange(8).expand(2, -1) // 4
    encoder(tokens, tokens >= 0, order=order, segments=segments).square().sum().backward()
    without_gradient = [name for name, weight in encoder.named_parameters() if weight.grad is None]
    assert not without_gradient
    other = TransformerEncoder(D, VOCAB)
    with pytest.raises(ConfigError, match=r"set model\.encode\.stack\.kind=two-stream"):
        other(tokens, tokens >= 0, order=order)
