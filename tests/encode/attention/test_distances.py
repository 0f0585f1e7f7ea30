"""Attention that knows distances: a slow twin, any length, decoders, memory, and learning.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head.
"""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode.attention import ATTENTIONS, RelativeAttention, SinusoidalRelativeAttention
from mnemic.encode.attention.distances import index_distances
from mnemic.encode.causal import CausalEncoder
from mnemic.encode.masks import CausalMask
from mnemic.encode.ragged import encode_ragged
from mnemic.encode.transformer import TokenInputs, TransformerEncoder
from mnemic.recipe import ConfigError, build

D, HEADS, VOCAB = 16, 2, 9
NO_POSITIONS = {"kind": "sum", "positions": {"kind": "none"}}
CASES: dict[str, dict[str, Any]] = {
    "relative": {"kind": "relative", "distance": 3},
    "relative in the keys alone": {"kind": "relative", "distance": 3, "values": False},
    "waves": {"kind": "sinusoidal-relative"},
    "waves with an offset": {"kind": "sinusoidal-relative", "offset": 3},
    "distance-aware": {"kind": "distance-aware"},
}
FUNCTIONS = ("clip", "linear", "exponent", "sigmoid")
CASES |= {f"distance-aware {name}": {"kind": "distance-aware", "function": name} for name in FUNCTIONS}
ALL_CASES = pytest.mark.parametrize("case", CASES)


def make_attention(case: str, width: int = D, **options: Any) -> Any:
    torch.manual_seed(0)
    attention = build(ATTENTIONS, {**CASES[case], "heads": HEADS, **options}, width=width).eval().double()
    with torch.no_grad():
        if CASES[case]["kind"] == "distance-aware":
            attention.weight.copy_(torch.tensor([-0.7, 0.4]))
            if attention.shape is not None:
                attention.shape.copy_(torch.tensor([0.5, -1.2]))
    return attention


def random_states(*shape: int, width: int = D, seed: int = 1) -> Tensor:
    return torch.randn(*shape, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def random_mask(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.6


# The slow twin ---------------------------------------------------------------------------------


def distance_vectors(attention: Any, distance: int) -> tuple[Any, Any]:
    """Return the vectors of a distance, j - i, in keys and values."""
    if isinstance(attention, RelativeAttention):
        row = max(-attention.distance, min(distance, attention.distance)) + attention.distance
        values = 0 if attention.value_table is None else attention.value_table[row]
        return attention.key_table[row], values
    if isinstance(attention, SinusoidalRelativeAttention):
        if attention.offset:
            distance = max(-attention.offset, min(distance, attention.offset)) + attention.offset
        channels = D // HEADS
        angles = [distance / 10_000 ** (2 * pair / channels) for pair in range(channels // 2)]
        vector = torch.tensor([wave(angle) for angle in angles for wave in (math.sin, math.cos)]).double()
        return vector, vector
    return 0, 0


def factor(attention: Any, head: int, distance: int) -> float:
    """Return f, which multiplies the score at a distance."""
    weighted = attention.weight[head].item() * abs(distance)
    if attention.function == "learned":
        v = attention.shape[head].item()
        return (1 + math.exp(v)) / (1 + math.exp(v - weighted))
    return {
        "clip": min(max(1 + weighted, 0), 2),
        "linear": 1 + weighted,
        "exponent": math.exp(weighted),
        "sigmoid": 2 / (1 + math.exp(-weighted)),
    }[attention.function]


def slow_attention(attention: Any, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
    """The definitions, one head of one query and one key at a time."""
    project, size = attention.project, D // HEADS
    batch, n, m = *x.shape[:2], context.shape[1]
    mask, out = mask.expand(batch, HEADS, n, m), torch.zeros_like(x)
    for b in range(batch):
        for row in range(n):
            heads = []
            for head in range(HEADS):
                channels = slice(head * size, (head + 1) * size)
                query = project.query(x[b, row])[channels]
                scores, values = [], []
                for column in range(m):
                    if not mask[b, head, row, column]:
                        continue
                    distance = column - (m - n + row)
                    key_vector, value_vector = distance_vectors(attention, distance)
                    score = query.dot(project.key(context[b, column])[channels] + key_vector) / size**0.5
                    if hasattr(attention, "function"):
                        score = score.relu() * factor(attention, head, distance)
                    scores.append(score)
                    values.append(project.value(context[b, column])[channels] + value_vector)
                weights = torch.stack(scores).softmax(0) if scores else []
                heads.append(sum((w * v for w, v in zip(weights, values)), torch.zeros(size, dtype=torch.float64)))
            out[b, row] = project.out(torch.cat(heads)) if mask[b, :, row].any() else 0
    return out


@ALL_CASES
def test_it_equals_a_plain_loop(case: str) -> None:
    """With hidden keys, a query that sees nothing, and a context longer than the queries."""
    attention, context = make_attention(case), random_states(2, 9)
    x, mask = context[:, -5:], random_mask(2, 1, 5, 9)
    mask[1, 0, 3] = False
    torch.testing.assert_close(attention(x, context, mask), slow_attention(attention, x, context, mask))


@ALL_CASES
def test_a_causal_mask_equals_the_loop(case: str) -> None:
    attention, context = make_attention(case), random_states(2, 8)
    keys = torch.arange(8) != torch.tensor([[2], [9]])
    mask = CausalMask(keys)
    dense = keys[:, None, None] & torch.ones(8, 8, dtype=torch.bool).tril()
    torch.testing.assert_close(attention(context, context, mask), slow_attention(attention, context, context, dense))
    tail = slow_attention(attention, context[:, -3:], context, dense[:, :, -3:])
    torch.testing.assert_close(attention(context[:, -3:], context, mask), tail)


@ALL_CASES
def test_fused_equals_plain(case: str) -> None:
    """Values and gradients."""
    if "fused" not in build_options(case):
        pytest.skip("no kernel of torch multiplies scores")
    context, mask, gradients = random_states(2, 9), random_mask(2, 1, 5, 9), []
    mask[0, 0, 2] = False
    for fused in (True, False):
        attention, states = make_attention(case, fused=fused), context.clone().requires_grad_()
        out = attention(states[:, -5:], states, mask)
        (out * torch.arange(D)).sum().backward()
        gradients.append([out.detach(), states.grad, *(weight.grad for weight in attention.parameters())])
    torch.testing.assert_close(*gradients)


def build_options(case: str) -> set[str]:
    return set(vars(make_attention(case)))


@ALL_CASES
def test_gradients_are_those_of_finite_differences(case: str) -> None:
    attention, context, mask = make_attention(case), random_states(1, 4).requires_grad_(), random_mask(1, 1, 3, 4)
    names = [name for name, _ in attention.named_parameters() if "." not in name]  # not the projections
    weights = [attention.get_parameter(name) for name in names]

    def run(context: Tensor, *weights: Tensor) -> Tensor:
        arguments = (context[:, 1:], context, mask)
        return torch.func.functional_call(attention, dict(zip(names, weights)), arguments)

    assert torch.autograd.gradcheck(run, (context, *weights))


@ALL_CASES
def test_the_weights_are_the_evidence(case: str) -> None:
    """They mix the values, with what these know of distances, to the output."""
    attention, x, mask = make_attention(case), random_states(2, 6), random_mask(2, 1, 6, 6)
    mask[0, 0, 4] = False
    weights = attention.attention_weights(x, x, mask)
    assert (weights[~mask.expand_as(weights)] == 0).all()
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).double().expand(-1, HEADS, -1))
    mixed = attention.mix_values(weights, attention.project_key_values(x).values)
    expected = attention.project.merge_heads(mixed) * mask.any(-1).any(1).unsqueeze(-1)
    torch.testing.assert_close(attention(x, x, mask), expected)


# Distances -------------------------------------------------------------------------------------


@ALL_CASES
def test_only_distances_count(case: str) -> None:
    """A text gives the same states wherever it starts."""
    attention, x = make_attention(case), random_states(1, 5)
    expected = attention(x, x, torch.ones(1, 1, 1, 5, dtype=torch.bool))
    for start in range(4):
        row = random_states(1, 8, seed=3)
        row[:, start : start + 5] = x
        is_text = (torch.arange(8) >= start) & (torch.arange(8) < start + 5)
        torch.testing.assert_close(attention(row, row, is_text)[:, start : start + 5], expected)


@ALL_CASES
def test_the_order_counts(case: str) -> None:
    """Exchanging two distant keys changes the output; it would not without distances."""
    attention, x = make_attention(case), random_states(1, 6)
    exchanged = x[:, [1, 0, 2, 3, 4, 5]]
    mask = torch.ones(1, 1, 1, 6, dtype=torch.bool)
    difference = attention(exchanged, exchanged, mask)[:, 2:4] - attention(x, x, mask)[:, 2:4]
    assert difference.abs().max() > 1e-3


@pytest.mark.parametrize("values", [True, False])
def test_a_large_distance_is_not_clipped(values: bool) -> None:
    """From n - 1 on, farther distances have vectors that nobody uses."""
    narrow = make_attention("relative", distance=6, values=values)
    wide = make_attention("relative", distance=20, values=values)
    with torch.no_grad():
        for name, weight in narrow.named_parameters():
            target = wide.get_parameter(name)
            (target[14:27] if "table" in name else target).copy_(weight)
    x, mask = random_states(2, 7), random_mask(2, 1, 7, 7)
    torch.testing.assert_close(narrow(x, x, mask), wide(x, x, mask))
    clipped = make_attention("relative", distance=2, values=values)
    with torch.no_grad():
        for name, weight in clipped.named_parameters():
            source = narrow.get_parameter(name)
            weight.copy_(source[4:9] if "table" in name else source)
    assert not torch.allclose(clipped(x, x, mask), narrow(x, x, mask))


@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("fused", [True, False])
def test_waves_equal_relative_positions_with_tables_of_waves(offset: int, fused: bool) -> None:
    n = 7
    waves = make_attention("waves", offset=offset, fused=fused)
    relative = make_attention("relative", distance=offset or n)
    with torch.no_grad():
        for distance in range(-relative.distance, relative.distance + 1):
            vector = distance_vectors(waves, distance)[0]
            relative.key_table[distance + relative.distance] = vector
            relative.value_table[distance + relative.distance] = vector
    relative.project.load_state_dict(waves.project.state_dict())
    x, mask = random_states(2, n), random_mask(2, 1, n, n)
    torch.testing.assert_close(waves(x, x, mask), relative(x, x, mask))


def test_far_waves_are_exact() -> None:
    """In float32, 20,000 positions from the start, the scores are still those of the distance."""
    attention = make_attention("waves").float()
    query, keys = random_states(1, HEADS, 20_000, width=8).float().split([2, 19_998], 2)
    far = attention.compute_scores(query, torch.cat([keys, query], 2))[..., -5:]
    near = attention.compute_scores(query, torch.cat([keys[:, :, -3:], query], 2))
    torch.testing.assert_close(far, near, atol=1e-5, rtol=1e-5)


def test_the_index_counts_from_the_end_of_the_context() -> None:
    for n, m, limit in ((3, 7, 2), (4, 4, 9), (1, 5, 3)):
        rows = index_distances(n, m, limit, torch.device("cpu"))
        expected = [[max(-limit, min(j - (m - n + i), limit)) + limit for j in range(m)] for i in range(n)]
        assert rows.tolist() == expected


# Memory ----------------------------------------------------------------------------------------


def count_saved_bytes(attention: nn.Module, n: int, width: int) -> int:
    """Count the bytes that autograd keeps for the backward pass, each storage once."""
    sizes: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    x = torch.randn(1, n, width, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        attention(x, x, torch.ones(1, 1, 1, n, dtype=torch.bool)).sum().backward()
    return sum(sizes.values())


@ALL_CASES
@pytest.mark.parametrize("fused", [True, False])
def test_no_tensor_has_a_vector_for_each_pair_of_positions(case: str, fused: bool) -> None:
    """Bytes grow like n (2k+1) + n², and not with n² · c."""
    options = {"fused": fused} if "fused" in build_options(case) else {}
    widths, n = (64, 128), 256
    sizes = [count_saved_bytes(make_attention(case, width, **options).float(), n, width) for width in widths]
    per_channel = (sizes[1] - sizes[0]) / (widths[1] - widths[0])
    assert per_channel < 4 * n * 30  # floats: a number of states n d, and none of n² d
    assert sizes[1] < 4 * n * n * widths[1] / 3


# Encoders and decoders -------------------------------------------------------------------------


@ALL_CASES
def test_a_decoder_token_by_token_equals_all_at_once(case: str) -> None:
    torch.manual_seed(0)
    stack = {"kind": "transformer", "norm": "pre", "attention": {**CASES[case], "heads": HEADS}}
    encoder = CausalEncoder(D, VOCAB, embeddings=NO_POSITIONS, stack=stack).eval()
    tokens = torch.randint(VOCAB, (2, 11), generator=torch.Generator().manual_seed(3))
    mask = torch.arange(11) != torch.tensor([[11], [4]])
    expected = encoder(tokens, mask)
    for sizes in ([1] * 11, [4, 1, 6]):
        states, cache = [], None
        for piece, piece_mask in zip(tokens.split(sizes, 1), mask.split(sizes, 1)):
            output = encoder.encode_with_state(piece, piece_mask, cache)
            states.append(output.states)
            cache = output.cache
        torch.testing.assert_close(torch.cat(states, 1), expected)


@ALL_CASES
def test_texts_of_any_length_may_be_packed(case: str) -> None:
    """Ragged texts, one beyond any table of positions, give the states that each has alone."""
    torch.manual_seed(0)
    stack = {"kind": "encoder", "attention": {**CASES[case], "heads": HEADS}}
    encoder = TransformerEncoder(D, VOCAB, embeddings=NO_POSITIONS, stack=stack).eval()
    assert encoder.max_length is None
    generator = torch.Generator().manual_seed(3)
    texts = [torch.randint(VOCAB, (length,), generator=generator).tolist() for length in (5, 700, 1, 5, 12)]
    for text, states in zip(texts, encode_ragged(encoder, texts)):
        tokens = torch.tensor([text])
        alone = encoder.encode_batch(TokenInputs(tokens), torch.ones_like(tokens, dtype=torch.bool))[0]
        torch.testing.assert_close(states, alone)


@pytest.mark.parametrize("case", ["relative", "relative in the keys alone", "waves"])
def test_a_tiny_model_copies_at_lengths_it_never_saw(case: str) -> None:
    """Trained on 12 tokens to repeat the one three back, it does so at 48."""
    assert copy_accuracy(NO_POSITIONS, {**CASES[case], "distance": 4} if "relative" in case else CASES[case]) > 0.99


def test_learned_positions_do_not_copy_at_lengths_they_never_saw() -> None:
    embeddings = {"kind": "sum", "positions": {"kind": "learned", "length": 48}}
    assert copy_accuracy(embeddings, {"kind": "full"}) < 0.5


def copy_accuracy(embeddings: dict[str, Any], attention: dict[str, Any]) -> float:
    """Train at length 12; return the accuracy at length 48."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    stack = {"kind": "transformer", "depth": 1, "norm": "pre", "attention": {**attention, "heads": 2}}
    encoder, head = CausalEncoder(32, VOCAB, embeddings=embeddings, stack=stack), nn.Linear(32, VOCAB)

    def compute_logits(tokens: Tensor) -> Tensor:
        return head(encoder(tokens, torch.ones_like(tokens, dtype=torch.bool)))[:, 3:]

    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.01)
    for _ in range(120):
        tokens = torch.randint(VOCAB, (32, 12), generator=generator)
        loss = nn.functional.cross_entropy(compute_logits(tokens).flatten(0, 1), tokens[:, :-3].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tokens = torch.randint(VOCAB, (32, 48), generator=generator)
    return (compute_logits(tokens).argmax(-1) == tokens[:, :-3]).float().mean().item()


# Mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kind": "relative", "distance": 0}, "1 or more, not 0"),
        ({"kind": "sinusoidal-relative", "offset": -1}, "not -1"),
        ({"kind": "sinusoidal-relative", "heads": 16}, "pair sine and cosine"),
        ({"kind": "distance-aware", "function": "cube"}, "'cube'"),
    ],
)
def test_mistakes_are_named(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(ATTENTIONS, spec, width=D)


@pytest.mark.parametrize("kind", ["relative", "sinusoidal-relative", "distance-aware"])
def test_another_text_has_no_distance(kind: str) -> None:
    decoder = {"kind": "transformer", "attention": {"kind": kind}}
    with pytest.raises(ConfigError, match="set cross_attention"):
        build_sequence_decoder(decoder)
    build_sequence_decoder({**decoder, "cross_attention": {"kind": "full"}})


def build_sequence_decoder(decoder: dict[str, Any]) -> Any:
    from mnemic.respond.sequence import SequenceDecoder

    return SequenceDecoder(D, VOCAB, 8, decoder=decoder)
