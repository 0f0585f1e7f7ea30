"""Texts packed into one row: states and gradients equal those of single texts.

Shapes: b texts, n tokens, t tokens of all texts, d width.
"""

from itertools import chain, pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mnemic.encode import PackedMask, TransformerEncoder, encode_ragged
from mnemic.encode import packed as kernels
from mnemic.encode.packed import attend_packed, find_true_positions, group_by_length, group_similar_lengths
from mnemic.encode.packed import attend_padded as padded_attention
from mnemic.encode.stacks import StackContext
from mnemic.encode.transformer import TokenInputs

D, VOCAB = 16, 30
LENGTHS = [5, 9, 1, 5, 0, 12, 9, 2]


def make_encoder(**stack: Any) -> TransformerEncoder:
    torch.manual_seed(0)
    words = {"kind": "sum", "segments": 2, "positions": {"kind": "learned", "length": 12}}
    return TransformerEncoder(D, VOCAB, embeddings=words, stack={"kind": "encoder", **stack}).eval()


def random_texts(lengths: list[int] = LENGTHS, seed: int = 1) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(VOCAB, (length,), generator=generator).tolist() for length in lengths]


def encode_densely(encoder: TransformerEncoder, text: list[int]) -> Tensor:
    """Encode one text with a dense n × n mask."""
    return encoder(torch.tensor([text]), torch.ones(1, len(text), len(text), dtype=torch.bool))[0]


def pad_texts(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    max_length = max(map(len, rows))
    ids = torch.tensor([row + [7] * (max_length - len(row)) for row in rows])
    return ids, torch.arange(max_length) < torch.tensor([len(row) for row in rows])[:, None]


@pytest.mark.parametrize("max_tokens", [0, 1, 14, 1000])
@pytest.mark.parametrize("fused", [True, False])
def test_each_text_gets_what_it_would_get_alone(max_tokens: int, fused: bool) -> None:
    encoder = make_encoder(attention={"kind": "full", "fused": fused})
    for text, states in zip(random_texts(), encode_ragged(encoder, random_texts(), max_tokens=max_tokens)):
        assert states.shape == (len(text), D)
        if text:
            torch.testing.assert_close(states, encode_densely(encoder, text), atol=1e-5, rtol=0)


def test_nothing_leaks_between_texts() -> None:
    encoder, rows = make_encoder(), random_texts()
    before = encode_ragged(encoder, rows)
    changed = [(token + 1) % VOCAB for token in rows[3]]
    after = encode_ragged(encoder, [*rows[:3], changed, *rows[4:]])
    assert [index for index, row in enumerate(rows) if not torch.equal(before[index], after[index])] == [3]


def compute_gradients(encoder: TransformerEncoder, states: Tensor) -> dict[str, Tensor]:
    """Gradients of a loss with a random weight per element of ``states`` (t d)."""
    direction = torch.randn(states.shape, generator=torch.Generator().manual_seed(3))
    encoder.zero_grad()
    (states * direction).sum().backward()
    return {name: weight.grad.clone() for name, weight in encoder.named_parameters()}  # type: ignore[union-attr]


@pytest.mark.parametrize("stack", [{}, {"norm": "pre"}, {"depth": 4, "groups": 2}])
def test_gradients_are_those_of_each_alone(stack: dict[str, Any]) -> None:
    encoder, rows = make_encoder(**stack), [row for row in random_texts() if row]
    packed = compute_gradients(encoder, torch.cat(encode_ragged(encoder, rows, max_tokens=20)))
    dense = compute_gradients(encoder, torch.cat([encode_densely(encoder, row) for row in rows]))
    for name, gradient in packed.items():
        torch.testing.assert_close(gradient, dense[name], atol=1e-5, rtol=1e-4, msg=name)


def test_a_padded_batch_is_packed_inside() -> None:
    """States and gradients equal those of a dense mask; gaps count as padding."""
    encoder = make_encoder()
    ids, mask = pad_texts(random_texts())
    mask[1, 3] = False
    segments = torch.arange(ids.shape[1]).expand_as(ids) % 2
    dense = mask.unsqueeze(1) & mask.unsqueeze(2)
    packed, expected = (encoder(ids, any_mask, segments=segments) for any_mask in (mask, dense))
    torch.testing.assert_close(packed, expected, atol=1e-5, rtol=0)
    assert (packed[~mask] == 0).all()
    packed_gradients, dense_gradients = (
        compute_gradients(encoder, packed[mask]),
        compute_gradients(encoder, expected[mask]),
    )
    for name, gradient in packed_gradients.items():
        torch.testing.assert_close(gradient, dense_gradients[name], atol=1e-5, rtol=1e-4, msg=name)


def count_computed_tokens(encoder: TransformerEncoder, *arguments: Any) -> int:
    """Count the tokens that go through a layer."""
    counts: list[int] = []
    block: Any = encoder.stack.blocks[0]
    hook = block.feed.register_forward_hook(lambda module, inputs, output: counts.append(output.shape[:2].numel()))
    encoder(*arguments)
    hook.remove()
    return sum(counts)


def test_a_padded_batch_computes_next_to_nothing_on_padding() -> None:
    encoder = make_encoder()
    assert sum(LENGTHS) <= count_computed_tokens(encoder, *pad_texts(random_texts())) <= sum(LENGTHS) * 17 / 16


def test_few_different_totals_occur() -> None:
    """A CPU compiles one program per total, so totals are rounded up a little."""
    totals = range(1, 2049)
    rounded = {
        total: PackedMask.from_lengths([total], torch.device("cpu")).count_filler_tokens() + total for total in totals
    }
    assert len(set(rounded.values())) <= 16 * 8
    assert all(rounded[total] == total for total in range(1, 32))
    assert all(total <= rounded_total <= total * 17 / 16 for total, rounded_total in rounded.items())
    assert count_computed_tokens(make_encoder(), *pad_texts([[1] * 11] * 3)) == rounded[33] == 34


def test_explicit_positions_are_used() -> None:
    encoder = make_encoder()
    ids, mask = pad_texts(random_texts())
    positions = torch.arange(ids.shape[1]).flip(0).expand_as(ids)
    dense = mask.unsqueeze(1) & mask.unsqueeze(2)
    torch.testing.assert_close(encoder(ids, mask, positions=positions), encoder(ids, dense, positions=positions))


def test_packed_texts_look_at_a_context() -> None:
    """As with the same mask in dense form."""
    encoder, packed = make_encoder(), PackedMask.from_lengths([3, 4], torch.device("cpu"))
    ids = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    context = StackContext((torch.randn(1, 2, D),) * 2, torch.tensor([[True, False]]))
    options = {"positions": packed.token_positions()}
    torch.testing.assert_close(
        encoder(ids, packed, context, **options), encoder(ids, packed.to_dense_mask(), context, **options)
    )


def test_the_mask_of_a_row() -> None:
    packed = PackedMask.from_lengths([1, 2, 2], torch.device("cpu"))
    assert packed.token_positions().tolist() == [[0, 0, 1, 0, 1]]
    assert packed.cu_seqlens.tolist() == [0, 1, 3, 5]
    assert list(packed.length_runs()) == [(1, 1), (2, 2)]
    text_ids = torch.tensor([0, 1, 1, 2, 2])
    assert torch.equal(packed.to_dense_mask()[0], text_ids[:, None] == text_ids)


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 120))
@settings(max_examples=100, deadline=None)
def test_grouping_by_length_contains_each_text_once(lengths: list[int], max_tokens: int) -> None:
    groups = list(group_by_length(lengths, max_tokens))
    assert sorted(chain(*groups)) == [index for index, length in enumerate(lengths) if length]
    assert all(len(group) == 1 or sum(lengths[index] for index in group) <= max_tokens for group in groups)
    order = [lengths[index] for group in groups for index in group]
    assert all(shorter <= longer for shorter, longer in pairwise(order))


def test_dropout_falls_on_each_text() -> None:
    encoder = make_encoder(attention={"kind": "full", "dropout": 0.5}).train()
    first, second = encode_ragged(encoder, [[1, 2, 3]] * 2)
    assert not torch.equal(first, second)
    assert first.isfinite().all()


def test_no_texts_and_a_text_that_is_too_long() -> None:
    assert encode_ragged(make_encoder(), []) == []
    with pytest.raises(ValueError, match=r"text 1 has 13 tokens.*positions for 12; cut"):
        encode_ragged(make_encoder(), [[1], [1] * 13])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gpu_gives_the_same_states_and_gradients(dtype: torch.dtype) -> None:
    cpu_encoder, gpu_encoder = make_encoder(), make_encoder().to("cuda", dtype)
    rows = [row for row in random_texts() if row]
    tolerance = 1e-4 if dtype == torch.float32 else 0.1
    expected = torch.cat(encode_ragged(cpu_encoder, rows))
    actual = torch.cat(encode_ragged(gpu_encoder, rows))
    torch.testing.assert_close(actual.cpu().float(), expected, atol=tolerance, rtol=tolerance)
    expected.square().sum().backward()
    actual.float().square().sum().backward()
    for name, weight in gpu_encoder.named_parameters():
        expected_gradient = dict(cpu_encoder.named_parameters())[name].grad
        torch.testing.assert_close(
            weight.grad.cpu().float(), expected_gradient, atol=10 * tolerance, rtol=10 * tolerance
        )  # type: ignore[union-attr]


@pytest.mark.parametrize("lengths", [[5], [1, 2, 3, 5, 8, 13, 13], [9, 2, 4, 4, 1]])
def test_padded_attention_equals_packed_attention(lengths: list[int]) -> None:
    """The fallback for GPUs without a kernel, here on a CPU; any order, with gradients."""
    packed = PackedMask.from_lengths(lengths, torch.device("cpu"))
    torch.manual_seed(0)
    rows = [torch.randn(1, 2, sum(lengths), 4, requires_grad=True) for _ in range(3)]
    actual, expected = (attend(*rows, packed, 0.0) for attend in (padded_attention, attend_packed))
    torch.testing.assert_close(actual, expected, atol=1e-6, rtol=1e-5)
    direction = torch.randn_like(actual)
    gradients = [torch.autograd.grad((output * direction).sum(), rows) for output in (actual, expected)]
    for actual_gradient, expected_gradient in zip(*gradients):
        torch.testing.assert_close(actual_gradient, expected_gradient, atol=1e-5, rtol=1e-4)


def test_texts_of_like_length_are_padded_together() -> None:
    assert list(group_similar_lengths([2, 3, 4, 5, 9, 10, 11, 30])) == [3, 3, 1, 1]
    assert list(group_similar_lengths([9, 2, 4, 4, 1])) == [1, 3, 1]
    assert list(group_similar_lengths([])) == []


@pytest.mark.parametrize("capacity", [43, 50, 96])
def test_spare_capacity_changes_nothing(capacity: int) -> None:
    """States and gradients equal those of the padded batch at any capacity."""
    encoder = make_encoder()
    lengths = torch.tensor(LENGTHS)
    mask = torch.arange(12) < lengths[:, None]
    generator = torch.Generator().manual_seed(2)
    tokens, segments = (torch.randint(2, mask.shape, generator=generator) for _ in range(2))
    expected = encoder.encode_batch(TokenInputs(tokens, segments), mask)
    actual = encoder.encode_within_capacity(TokenInputs(tokens, segments), mask, capacity)
    torch.testing.assert_close(actual, expected)
    weights = list(encoder.parameters())
    expected_gradients, actual_gradients = (
        torch.autograd.grad(states.square().sum(), weights) for states in (expected, actual)
    )
    for expected_gradient, actual_gradient in zip(expected_gradients, actual_gradients):
        torch.testing.assert_close(expected_gradient, actual_gradient, atol=1e-4, rtol=1e-4)


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 24))
def test_find_true_positions_equals_nonzero(flags: list[bool], capacity: int) -> None:
    flag_tensor = torch.tensor(flags, dtype=torch.bool)
    positions = find_true_positions(flag_tensor, capacity).tolist()
    expected = flag_tensor.nonzero().squeeze(1).tolist()[:capacity]
    assert positions == expected + [len(flags)] * (capacity - len(expected))


@pytest.mark.parametrize("capacity", [43, 44, 96, 200])
def test_spare_tokens_are_split_into_texts_of_allowed_length(capacity: int) -> None:
    """A kernel computes nothing beyond the maximum length it is given."""
    mask = torch.arange(12) < torch.tensor(LENGTHS)[:, None]
    packed = PackedMask.from_mask(mask, capacity)
    edges = packed.cu_seqlens.tolist()
    sizes = [end - start for start, end in pairwise(edges)]
    assert (edges[0], edges[-1], packed.num_tokens, packed.max_seqlen) == (0, capacity, capacity, 12)
    assert sizes[: len(LENGTHS)] == LENGTHS
    assert all(0 <= size <= 12 for size in sizes)


def test_kernels_are_tried_once_and_never_while_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe inside torch.compile would break the graph, so kernels are probed before."""
    device, probed = torch.device("cpu"), []

    def record_probe(kernel: kernels.VarlenKernel, device: torch.device) -> bool:
        probed.append(kernel)
        return True

    monkeypatch.setattr(kernels, "KERNEL_WORKS", {})
    monkeypatch.setattr(kernels, "probe_kernel", record_probe)

    def double_if_working(x: torch.Tensor) -> torch.Tensor:
        return 2 * x if kernels.is_kernel_working(kernels.varlen_attention, device) else x

    ones = torch.ones(1)
    assert torch.compile(double_if_working, backend="eager", fullgraph=True)(ones) == 1
    assert not probed
    kernels.probe_kernels(device)
    kernels.probe_kernels(device)
    assert probed == [kernels.varlen_attention, kernels.varlen_attention_with_dropout]
    assert torch.compile(double_if_working, backend="eager", fullgraph=True)(ones) == 2
