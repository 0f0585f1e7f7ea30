"""LSH attention: equal to softmax over sets of positions, to `transformers`, and cheap.

Shapes: b batch, n positions, d width, h heads, r rounds, c channels of one head.
"""

from math import log2
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.encode.attention import LSHAttention
from mnemic.encode.attention.angular_hash import HashBits, count_bits, count_columns, hash_directions
from mnemic.encode.attention.lsh import normalize_keys
from mnemic.encode.causal import CausalEncoder
from mnemic.encode.masks import CausalMask
from mnemic.recipe import ConfigError

D, HEADS = 16, 2


def make_attention(**options: Any) -> LSHAttention:
    torch.manual_seed(0)
    return LSHAttention(D, **{"heads": HEADS, "chunk": 4, "rounds": 3, **options}).eval().double()


def random_states(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def length_mask(lengths: list[int], size: int) -> Tensor:
    return torch.arange(size) < torch.tensor(lengths)[:, None]


def make_mask(is_real: Tensor, causal: bool) -> Any:
    return CausalMask(is_real) if causal else is_real[:, None, None]


# Equal to the definition ------------------------------------------------------------------------


def find_neighbors(attention: LSHAttention, buckets: list[int], real: list[int], i: int, causal: bool) -> list[int]:
    """The set P_i of one round: positions that position i attends to."""
    order = sorted(real, key=lambda j: (buckets[j], j))
    chunk_of = {j: rank // attention.chunk for rank, j in enumerate(order)}
    if attention.across_buckets:
        span = (0, 1) if causal else (-1, 0, 1)
        return [j for j in real if chunk_of[i] - chunk_of[j] in span and not (causal and j >= i) and j != i]
    same = [j for j in real if buckets[j] == buckets[i] and j != i]
    if causal:
        return [j for j in same if j < i][-attention.chunk :]
    return [j for j in same if abs(chunk_of[i] - chunk_of[j]) <= 1]


def reference_attention(attention: LSHAttention, x: Tensor, is_real: Tensor, buckets: Tensor, causal: bool) -> Tensor:
    """Softmax over the union of the sets of all rounds, one head of one position at a time."""
    out = torch.zeros_like(x)
    shared, values = (attention.split_heads(layer(x)) for layer in (attention.query, attention.value))
    keys = shared / shared.square().sum(-1, keepdim=True).add(1e-6 * shared.shape[-1]).sqrt()
    for b in range(len(x)):
        real = is_real[b].nonzero().flatten().tolist()
        for i in real:
            heads = []
            for h in range(HEADS):
                all_rounds = [find_neighbors(attention, rows, real, i, causal) for rows in buckets[b, h].tolist()]
                times = [j for neighbors in all_rounds for j in neighbors]
                visible = (times if attention.count_repeats else sorted(set(times))) or [i]
                scores = torch.stack([shared[b, h, i] @ keys[b, h, j] for j in visible])
                heads.append(scores.softmax(0) @ values[b, h, visible])
            out[b, i] = attention.out(torch.cat(heads))
    return out


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
@pytest.mark.parametrize("across_buckets", [True, False])
@pytest.mark.parametrize("count_repeats", [True, False])
def test_equals_softmax_over_the_sets_of_all_rounds(causal: bool, across_buckets: bool, count_repeats: bool) -> None:
    """With texts of several lengths, one of them with padding inside; states and gradients."""
    attention = make_attention(across_buckets=across_buckets, count_repeats=count_repeats)
    x, is_real = random_states(4, 37).requires_grad_(), length_mask([37, 18, 3, 0], 37)
    is_real[0, 5:9] = False
    actual, buckets = attention.attend_with_buckets(x, x, make_mask(is_real, causal))
    assert buckets[0].max() > 4
    expected = reference_attention(attention, x, is_real, buckets, causal)
    torch.testing.assert_close(actual, expected)
    inputs, direction = [x, *attention.parameters()], random_states(4, 37, seed=9)
    gradients = (torch.autograd.grad((states * direction).sum(), inputs) for states in (actual, expected))
    for actual_gradient, expected_gradient in zip(*gradients):
        torch.testing.assert_close(actual_gradient, expected_gradient)


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
@pytest.mark.parametrize("rounds", [1, 4])
def test_one_bucket_and_one_chunk_is_full_attention_with_shared_queries_and_keys(causal: bool, rounds: int) -> None:
    attention, x = make_attention(chunk=40, rounds=rounds), random_states(2, 37)
    shared, values = (attention.split_heads(layer(x)) for layer in (attention.query, attention.value))
    scores = shared @ normalize_keys(shared).mT
    hidden = torch.ones(37, 37, dtype=torch.bool).triu(1) if causal else torch.zeros(37, 37, dtype=torch.bool)
    scores = scores.masked_fill(hidden, float("-inf"))
    scores = torch.where(torch.eye(37, dtype=torch.bool), -1e5, scores)
    expected = attention.out((scores.softmax(-1) @ values).transpose(1, 2).flatten(2))
    is_real = torch.ones(2, 37, dtype=torch.bool)
    torch.testing.assert_close(attention(x, x, make_mask(is_real, causal)), expected)


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
def test_more_rounds_come_nearer_to_full_attention(causal: bool) -> None:
    x, mask = 2 * random_states(4, 128), make_mask(torch.ones(4, 128, dtype=torch.bool), causal)
    full = make_attention(chunk=128)(x, x, mask)
    errors = [
        float((make_attention(chunk=32, rounds=rounds)(x, x, mask) - full).detach().square().mean())
        for rounds in (1, 2, 4, 16)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 5


class Setup:
    """The authors' attention as `transformers` has it, and ours with the same weights and dice."""

    def __init__(self, causal: bool, num_buckets: int | list[int], chunk: int, length: int) -> None:
        from transformers import ReformerConfig
        from transformers.models.reformer.modeling_reformer import LSHSelfAttention

        config = ReformerConfig(
            attention_head_size=D // HEADS, hidden_size=D, num_attention_heads=HEADS, attn_layers=["lsh"],
            lsh_attn_chunk_length=chunk, lsh_num_chunks_before=1, lsh_num_chunks_after=0 if causal else 1,
            num_hashes=2, num_buckets=num_buckets, hash_seed=5, is_decoder=causal, axial_pos_embds=False,
            lsh_attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        self.theirs = LSHSelfAttention(config).eval().double()
        self.ours = make_attention(chunk=chunk, rounds=2, across_buckets=True, count_repeats=True)
        self.ours.out.weight.data = torch.eye(D, dtype=torch.float64)
        self.ours.query.weight.data = self.theirs.query_key.weight.data
        self.ours.value.weight.data = self.theirs.value.weight.data
        self.causal, self.length = causal, length

    def draw_rotations(self, bits: HashBits, vectors: Tensor, seed: int) -> tuple[Tensor, ...]:
        columns = count_columns(bits)
        torch.manual_seed(5)
        rotations = torch.randn(HEADS, D // HEADS, 2, sum(columns), dtype=torch.float64)
        return rotations.permute(3, 2, 0, 1).split(list(columns))


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
@pytest.mark.parametrize(("num_buckets", "chunk", "length"), [(16, 16, 128), ([8, 16], 4, 256)])
def test_equals_transformers(
    causal: bool, num_buckets: int | list[int], chunk: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it looks into no other round: not in the chunks at the ends of a round."""
    setup = Setup(causal, num_buckets, chunk, length)
    monkeypatch.setattr(setup.ours, "draw_rotations", setup.draw_rotations)
    x = random_states(3, length)
    expected = setup.theirs(x)
    actual, buckets = setup.ours.attend_with_buckets(x, x, make_mask(torch.ones(3, length, dtype=torch.bool), causal))
    assert torch.equal(buckets, expected.buckets % max(16, 128 if chunk == 4 else 16))
    ranks = buckets.argsort(dim=-1, stable=True).argsort(-1)  # b h r n
    is_inside = (ranks >= chunk) if causal else (ranks >= chunk) & (ranks < length - chunk)
    is_inside = is_inside.all(2).transpose(1, 2).repeat_interleave(D // HEADS, 2)  # b n d
    assert 0.3 < is_inside.double().mean() < 0.99
    torch.testing.assert_close(actual[is_inside], expected.hidden_states[is_inside], atol=1e-4, rtol=1e-4)
    assert not torch.allclose(actual[~is_inside], expected.hidden_states[~is_inside], atol=1e-2)


# The contract, for texts of several chunks -------------------------------------------------------


def test_padding_and_longer_texts_beside_it_change_no_text() -> None:
    """Texts of 9 to 300 positions have 4 to 128 buckets, in a hash of one part or of two."""
    attention, x = make_attention(), random_states(3, 300)
    is_real = length_mask([300, 9, 70], 300)
    together = attention(x, x, make_mask(is_real, False))
    for row, length in enumerate([300, 9, 70]):
        text = x[row : row + 1, :length]
        alone = attention(text, text, torch.ones(1, 1, 1, length, dtype=torch.bool))
        torch.testing.assert_close(together[row : row + 1, :length], alone)
    assert (together[~is_real] == 0).all()


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
def test_hidden_positions_change_nothing(causal: bool) -> None:
    attention, x, is_real = make_attention(), random_states(2, 40), length_mask([40, 25], 40)
    is_real[0, ::3] = False
    changed = torch.where(is_real.unsqueeze(-1), x, x + 1)
    before, after = (attention(states, states, make_mask(is_real, causal)) for states in (x, changed))
    torch.testing.assert_close(before, after)


@pytest.mark.parametrize("count_repeats", [True, False])
def test_a_causal_mask_hides_all_of_later_positions(count_repeats: bool) -> None:
    """Also how they shift the chunks: with the chunks of the paper this fails."""
    attention, x = make_attention(count_repeats=count_repeats, buckets=4), random_states(4, 60)
    mask = make_mask(torch.ones(4, 60, dtype=torch.bool), True)
    before = attention(x, x, mask)
    for start in range(20, 60, 5):
        changed = torch.cat([x[:, :start], random_states(4, 60 - start, seed=start)], 1)
        torch.testing.assert_close(attention(changed, changed, mask)[:, :start], before[:, :start])
    attention.across_buckets = True
    before, after = attention(x, x, mask), attention(changed, changed, mask)
    assert not torch.allclose(before[:, :start], after[:, :start])


def test_the_end_of_a_context_sees_what_it_saw_within_it() -> None:
    attention, x = make_attention(), random_states(2, 50)
    for mask in (make_mask(length_mask([50, 50], 50), True), make_mask(length_mask([50, 50], 50), False)):
        torch.testing.assert_close(attention(x[:, -7:], x, mask), attention(x, x, mask)[:, -7:])


@pytest.mark.parametrize("stack", ["transformer", "reversible"])
def test_a_decoder_with_fixed_buckets_goes_on_token_by_token(stack: str) -> None:
    spec = {"kind": "lsh", "chunk": 4, "rounds": 2, "buckets": 4}
    torch.manual_seed(0)
    encoder = CausalEncoder(D, 30, stack={"kind": stack, "attention": spec}).eval().double()
    tokens = torch.randint(30, (2, 25))
    expected, cache = encoder(tokens, torch.ones_like(tokens, dtype=torch.bool)), None
    for column in range(25):
        output = encoder.encode_with_state(tokens[:, [column]], torch.ones(2, 1, dtype=torch.bool), cache)
        torch.testing.assert_close(output.states, expected[:, [column]])
        cache = output.cache


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_empty_texts_and_zeros_stay_finite(causal: bool, dtype: torch.dtype) -> None:
    """Also the gradients; a text of one token sees itself."""
    attention = make_attention().to(dtype).train()
    x = random_states(4, 30).to(dtype)
    x[3] = 0
    is_real = length_mask([0, 1, 30, 30], 30)
    x.requires_grad_()
    states = attention(x, x, make_mask(is_real, causal))
    states.square().sum().backward()
    assert states.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert (states[0] == 0).all()
    torch.testing.assert_close(states[1, 0], attention.out(attention.value(x[1, 0])), atol=1e-2, rtol=1e-2)


def test_dropout_acts_only_in_training() -> None:
    attention, x = make_attention(dropout=0.5, chunk=40).train(), random_states(2, 37)
    mask = torch.ones(1, 1, 1, 37, dtype=torch.bool)
    assert not torch.equal(attention(x, x, mask), attention(x, x, mask))
    assert torch.equal(attention.eval()(x, x, mask), attention(x, x, mask))


# Hashing ----------------------------------------------------------------------------------------


def test_a_hash_is_the_direction_that_is_nearest() -> None:
    """The argmax of [x R; -x R], per round and head, from the columns that a text uses."""
    generator = torch.Generator().manual_seed(0)
    vectors, rotation = (torch.randn(*shape, generator=generator) for shape in ((3, 2, 9, 8), (8, 5, 2, 8)))
    bits = HashBits(torch.tensor([4, 2, 0]), 4, 9)
    buckets = hash_directions(vectors, (rotation,), bits)
    for b, columns in enumerate([8, 2, 0]):
        rotated = torch.einsum("hnc,frhc->hrnf", vectors[b], rotation[:columns])
        expected = torch.cat([rotated, -rotated], -1).argmax(-1) if columns else torch.zeros(2, 5, 9)
        assert torch.equal(buckets[b], expected.long())


def test_buckets_are_half_a_chunk_on_average() -> None:
    lengths = [1, 64, 65, 128, 200, 256, 1000, 32_768, 131_072]
    bits = count_bits(torch.tensor(lengths), 131_072, 64)
    assert bits.per_text.tolist() == [0, 0, 1, 2, 2, 3, 4, 10, 12]
    assert bits.largest == 12
    assert count_columns(bits) == (64, 32)  # one hash of up to 128 buckets, or two of up to 64
    assert sum(count_columns(count_bits(torch.tensor([2**24]), 2**24, 64))) < 800


def test_rotations_are_new_in_training_and_the_same_in_evaluation() -> None:
    attention, x = make_attention(), random_states(2, 40)
    mask = torch.ones(2, 1, 1, 40, dtype=torch.bool)

    def hash_states() -> Tensor:
        return attention.attend_with_buckets(x, x, mask)[1]

    first = hash_states()
    torch.manual_seed(7)
    assert torch.equal(hash_states(), first)
    assert not torch.equal(first[0, 0, 0], first[0, 0, 1])  # rounds and heads are independent
    assert not torch.equal(make_attention(seed=1).attend_with_buckets(x, x, mask)[1], first)
    assert not torch.equal(make_attention(layer=1).attend_with_buckets(x, x, mask)[1], first)
    attention.train()
    state = torch.get_rng_state()
    training = hash_states()
    assert not torch.equal(hash_states(), training)
    torch.set_rng_state(state)
    assert torch.equal(hash_states(), training)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 5}, "width 16 does not divide into 5 heads"),
        ({"buckets": 6}, "a power of two, or 0 .* not 6"),
        ({"chunk": 0}, "at least 1, not 0 and 3"),
        ({"rounds": 5000}, "rounds is at most 1000"),
    ],
)
def test_mistakes_are_named(options: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_attention(**options)


# Cost -------------------------------------------------------------------------------------------


def count_saved_bytes(length: int) -> int:
    """Count the bytes that are stored for the backward pass."""
    torch.manual_seed(0)
    attention, x = LSHAttention(8, heads=1, rounds=1, chunk=16), torch.randn(1, length, 8, requires_grad=True)
    counts = []

    def pack(tensor: Tensor) -> Tensor:
        counts.append(tensor.numel() * tensor.element_size())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        attention(x, x, CausalMask(torch.ones(1, length, dtype=torch.bool)))
    return sum(counts)


def test_memory_grows_with_the_length_and_not_its_square() -> None:
    assert log2(count_saved_bytes(32_768) / count_saved_bytes(2048)) / 4 < 1.05


def test_only_repeated_pairs_are_compared_between_rounds() -> None:
    """A pair that all rounds find counts once: three equal rounds are as one."""
    attention, x = make_attention(rounds=3), random_states(2, 40)
    mask = torch.ones(2, 1, 1, 40, dtype=torch.bool)
    buckets = attention.attend_with_buckets(x, x, mask)[1][:, :, :1]
    once, thrice = (
        attention.attend_with_buckets(x, x, mask, rows)[0] for rows in (buckets, buckets.repeat(1, 1, 3, 1))
    )
    torch.testing.assert_close(thrice, once)


@pytest.mark.parametrize("length", [3, 4, 5, 8, 9])
def test_lengths_around_a_chunk(length: int) -> None:
    attention, x = make_attention(), random_states(2, length)
    is_real = torch.ones(2, length, dtype=torch.bool)
    for causal in (True, False):
        actual, buckets = attention.attend_with_buckets(x, x, make_mask(is_real, causal))
        torch.testing.assert_close(actual, reference_attention(attention, x, is_real, buckets, causal))
