"""External attention: two learned memories that all texts share.

Shapes: b batch, n tokens, d width, h heads, s slots.
"""

from typing import Any

import pytest
import torch
from saved_bytes import LargestTensor, fit_slope, measure_saved_bytes
from torch import Tensor, nn

from mnemic.encode.attention import ExternalAttention
from mnemic.encode.packed import PackedMask
from mnemic.encode.stacks import DecoderStack, EncoderStack, StackContext
from mnemic.encode.transformer import TransformerEncoder
from mnemic.recipe import ConfigError

D, HEADS, SLOTS = 8, 2, 5


def make_attention(**options: Any) -> ExternalAttention:
    torch.manual_seed(0)
    return ExternalAttention(D, heads=HEADS, slots=SLOTS, **options).double().eval()


def random_states(*shape: int) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def length_mask(lengths: list[int], n: int) -> Tensor:
    return (torch.arange(n) < torch.tensor(lengths)[:, None])[:, None, None]


def reference_weights(attention: ExternalAttention, x: Tensor) -> Tensor:
    """The weights of a text, step by step as in the authors' code but without ε: h n s."""
    size = D // HEADS
    heads = []
    for h in range(attention.heads):
        states = attention.widen(x)[:, h * size : (h + 1) * size]  # n c
        scores = states @ attention.memory_keys.weight.T  # n s
        over_tokens = torch.stack([column.exp() / column.exp().sum() for column in scores.T], 1)
        heads.append(torch.stack([row / row.sum() for row in over_tokens]))
    return torch.stack(heads)


def test_it_equals_a_plain_loop() -> None:
    """Each text by itself: padding is hidden before the softmax over tokens."""
    attention, x, lengths = make_attention(), random_states(3, 7), [7, 4, 1]
    assert attention.heads == 4 * HEADS
    mask = length_mask(lengths, 7)
    weights, output = attention.attention_weights(x, x, mask), attention(x, x, mask)
    for text, length in enumerate(lengths):
        expected = reference_weights(attention, x[text, :length])
        torch.testing.assert_close(weights[text, :, :length], expected)
        mixed = (expected @ attention.memory_values.weight.T).transpose(0, 1).flatten(1)
        torch.testing.assert_close(output[text, :length], attention.out(mixed))
        assert (weights[text, :, length:] == 0).all()
        assert (output[text, length:] == 0).all()


def test_weights_of_a_token_sum_to_one() -> None:
    """And a token alone reads all slots alike, since it is all of each slot's softmax."""
    attention, x = make_attention(), random_states(2, 6)
    mask = length_mask([6, 1], 6)
    weights = attention.attention_weights(x, x, mask)
    torch.testing.assert_close(weights.sum(-1), mask[:, 0].expand(2, attention.heads, 6).double())
    torch.testing.assert_close(weights[1, :, 0], torch.full_like(weights[1, :, 0], 1 / SLOTS))


def test_extreme_scores_stay_finite() -> None:
    """Without logarithms a row of tiny weights would be 0 / 0."""
    attention, x = make_attention(), 1e4 * random_states(1, 6)
    weights = attention.attention_weights(x, x, length_mask([6], 6))
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_texts_share_one_memory_and_do_not_mix() -> None:
    attention, x = make_attention(), random_states(2, 6)
    mask = length_mask([6, 6], 6)
    alone = attention(x[:1], x[:1], mask[:1])
    torch.testing.assert_close(attention(x, x, mask)[:1], alone)
    assert attention.memory_keys.weight.shape == (SLOTS, D // HEADS)


def test_without_normalization_it_is_a_network_of_two_layers() -> None:
    """Linear from the widened input to the output, at each token alone."""
    attention, x = make_attention(norm="none"), random_states(2, 6)
    layers = nn.Sequential(nn.Unflatten(-1, (attention.heads, -1)), attention.memory_keys, attention.memory_values)
    expected = attention.out(layers(attention.widen(x)).flatten(2))
    torch.testing.assert_close(attention(x, x, length_mask([6, 6], 6)), expected)


def test_a_softmax_over_slots_sees_no_other_token() -> None:
    attention, x = make_attention(norm="softmax"), random_states(1, 6)
    mask = length_mask([6], 6)
    alone = torch.cat([attention(token, token, mask[..., :1]) for token in x.split(1, 1)], 1)
    torch.testing.assert_close(attention(x, x, mask), alone)
    double = make_attention()
    changed = torch.cat([x[:, :5], x[:, 5:] + 1], 1)
    assert (double(x, x, mask) != double(changed, changed, mask))[:, :5].any(-1).all()


def test_memory_grows_with_the_length() -> None:
    sizes, saved = [2048, 8192, 32768], []
    attention = ExternalAttention(4, heads=1, slots=4, expansion=1)
    for n in sizes:
        x = torch.randn(1, n, 4)
        with LargestTensor() as largest:
            saved.append(measure_saved_bytes(attention, x, x, torch.ones(1, 1, 1, n, dtype=torch.bool)))
        assert largest.num_bytes < n**2
    assert fit_slope(sizes, saved) < 1.05


def test_a_tiny_model_learns_which_word_is_frequent() -> None:
    """The softmax over tokens counts: a text is about the word that most of its tokens are."""
    torch.manual_seed(0)
    words, attention, out = nn.Embedding(6, D), ExternalAttention(D, heads=HEADS, slots=8), nn.Linear(D, 2)
    optimizer = torch.optim.Adam([*words.parameters(), *attention.parameters(), *out.parameters()], lr=0.03)
    for _ in range(100):
        tokens = torch.randint(0, 2, (32, 9))
        target = (tokens == 1).sum(1).gt(4).long()
        states = words(tokens)
        logits = out(attention(states, states, length_mask([9] * 32, 9)).mean(1))
        loss = nn.functional.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.2


def test_packed_texts_are_unpacked_first() -> None:
    torch.manual_seed(0)
    encoder = TransformerEncoder(D, 20, stack={"kind": "encoder", "attention": {"kind": "external"}}).eval()
    texts = [torch.randint(20, (1, length)) for length in (2, 5)]
    packed = PackedMask.from_lengths([2, 5], torch.device("cpu"))
    states = encoder(torch.cat(texts, 1), packed, positions=packed.token_positions())
    alone = [encoder(text, torch.ones_like(text, dtype=torch.bool)) for text in texts]
    torch.testing.assert_close(states, torch.cat(alone, 1))


def test_what_it_cannot_do_is_refused() -> None:
    spec = {"kind": "external"}
    with pytest.raises(ConfigError, match=r"kind 'external' cannot be used in a decoder; use one of .*full"):
        DecoderStack(D, attention=spec)
    stack, x, mask = EncoderStack(D, attention=spec), torch.zeros(1, 3, D), torch.ones(1, 3, dtype=torch.bool)
    with pytest.raises(ConfigError, match=r"does not support a context .* kinds that can: .*full"):
        stack(x, mask, StackContext((x, x), mask))
    with pytest.raises(ConfigError, match=r"a mask b n, not b n n; kinds that can: .*full"):
        stack(x, mask.unsqueeze(1).expand(1, 3, 3))
    with pytest.raises(ConfigError, match="a mask b n, not b n n"):
        stack(x, PackedMask.from_lengths([1, 2], x.device))
    with pytest.raises(ConfigError, match="does not divide into 3 heads"):
        ExternalAttention(D, heads=3)
