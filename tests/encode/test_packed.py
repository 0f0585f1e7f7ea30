"""Texts packed into one row: each gets what it would get alone, in states and in gradients.

Shapes: b texts, n tokens, t tokens of all, d width.
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
from mnemic.encode.stack import StackContext

D, VOCAB = 16, 30
LENGTHS = [5, 9, 1, 5, 0, 12, 9, 2]


def make(**stack: Any) -> TransformerEncoder:
    torch.manual_seed(0)
    words = {"kind": "sum", "segments": 2, "positions": {"kind": "learned", "length": 12}}
    return TransformerEncoder(D, VOCAB, embeddings=words, stack={"kind": "encoder", **stack}).eval()


def texts(lengths: list[int] = LENGTHS, seed: int = 1) -> list[list[int]]:
    dice = torch.Generator().manual_seed(seed)
    return [torch.randint(VOCAB, (length,), generator=dice).tolist() for length in lengths]


def alone(encoder: TransformerEncoder, text: list[int]) -> Tensor:
    """Through the dense way: a mask of every token and every other."""
    return encoder(torch.tensor([text]), torch.ones(1, len(text), len(text), dtype=torch.bool))[0]


def padded(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [7] * (longest - len(row)) for row in rows])
    return ids, torch.arange(longest) < torch.tensor([len(row) for row in rows])[:, None]


@pytest.mark.parametrize("together", [0, 1, 14, 1000])
@pytest.mark.parametrize("fused", [True, False])
def test_each_text_gets_what_it_would_get_alone(together: int, fused: bool) -> None:
    encoder = make(attention={"kind": "full", "fused": fused})
    for text, states in zip(texts(), encode_ragged(encoder, texts(), max_tokens=together)):
        assert states.shape == (len(text), D)
        if text:
            torch.testing.assert_close(states, alone(encoder, text), atol=1e-5, rtol=0)


def test_nothing_leaks_between_texts() -> None:
    encoder, rows = make(), texts()
    before = encode_ragged(encoder, rows)
    other = [(token + 1) % VOCAB for token in rows[3]]
    after = encode_ragged(encoder, [*rows[:3], other, *rows[4:]])
    assert [i for i, row in enumerate(rows) if not torch.equal(before[i], after[i])] == [3]


def gradients(encoder: TransformerEncoder, states: Tensor) -> dict[str, Tensor]:
    """Of a loss that differs for every number of ``states`` (t d)."""
    direction = torch.randn(states.shape, generator=torch.Generator().manual_seed(3))
    encoder.zero_grad()
    (states * direction).sum().backward()
    return {name: weight.grad.clone() for name, weight in encoder.named_parameters()}  # type: ignore[union-attr]


@pytest.mark.parametrize("stack", [{}, {"norm": "pre"}, {"depth": 4, "groups": 2}])
def test_gradients_are_those_of_each_alone(stack: dict[str, Any]) -> None:
    encoder, rows = make(**stack), [row for row in texts() if row]
    packed = gradients(encoder, torch.cat(encode_ragged(encoder, rows, max_tokens=20)))
    dense = gradients(encoder, torch.cat([alone(encoder, row) for row in rows]))
    for name, gradient in packed.items():
        torch.testing.assert_close(gradient, dense[name], atol=1e-5, rtol=1e-4, msg=name)


def test_a_padded_batch_is_packed_inside() -> None:
    """States, zeros at padding and gradients are those of the dense way; holes are padding, too."""
    encoder = make()
    ids, mask = padded(texts())
    mask[1, 3] = False
    segments = torch.arange(ids.shape[1]).expand_as(ids) % 2
    dense = mask.unsqueeze(1) & mask.unsqueeze(2)
    packed, wanted = (encoder(ids, seen, segments=segments) for seen in (mask, dense))
    torch.testing.assert_close(packed, wanted, atol=1e-5, rtol=0)
    assert (packed[~mask] == 0).all()
    own, others = gradients(encoder, packed[mask]), gradients(encoder, wanted[mask])
    for name, gradient in own.items():
        torch.testing.assert_close(gradient, others[name], atol=1e-5, rtol=1e-4, msg=name)


def computed(encoder: TransformerEncoder, *given: Any) -> int:
    """How many tokens go through a layer."""
    seen: list[int] = []
    block: Any = encoder.stack.blocks[0]
    hook = block.feed.register_forward_hook(lambda module, given, out: seen.append(out.shape[:2].numel()))
    encoder(*given)
    hook.remove()
    return sum(seen)


def test_a_padded_batch_computes_next_to_nothing_on_padding() -> None:
    encoder = make()
    assert sum(LENGTHS) <= computed(encoder, *padded(texts())) <= sum(LENGTHS) * 17 / 16


def test_few_totals_come_up() -> None:
    """A CPU keeps a program for each, so they are few; what is spare is one text more."""
    totals = range(1, 2049)
    found = {
        total: PackedMask.from_lengths([total], torch.device("cpu")).count_filler_tokens() + total for total in totals
    }
    assert len(set(found.values())) <= 16 * 8
    assert all(found[total] == total for total in range(1, 32))
    assert all(total <= own <= total * 17 / 16 for total, own in found.items())
    assert computed(make(), *padded([[1] * 11] * 3)) == found[33] == 34


def test_places_that_are_given_are_kept() -> None:
    encoder = make()
    ids, mask = padded(texts())
    places = torch.arange(ids.shape[1]).flip(0).expand_as(ids)
    dense = mask.unsqueeze(1) & mask.unsqueeze(2)
    torch.testing.assert_close(encoder(ids, mask, positions=places), encoder(ids, dense, positions=places))


def test_packed_texts_look_at_a_context() -> None:
    """As the same mask written out does."""
    encoder, row = make(), PackedMask.from_lengths([3, 4], torch.device("cpu"))
    ids = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    context = StackContext((torch.randn(1, 2, D),) * 2, torch.tensor([[True, False]]))
    options = {"positions": row.token_positions()}
    torch.testing.assert_close(
        encoder(ids, row, context, **options), encoder(ids, row.to_dense_mask(), context, **options)
    )


def test_the_mask_of_a_row() -> None:
    row = PackedMask.from_lengths([1, 2, 2], torch.device("cpu"))
    assert row.token_positions().tolist() == [[0, 0, 1, 0, 1]]
    assert row.cu_seqlens.tolist() == [0, 1, 3, 5]
    assert list(row.length_runs()) == [(1, 1), (2, 2)]
    owner = torch.tensor([0, 1, 1, 2, 2])
    assert torch.equal(row.to_dense_mask()[0], owner[:, None] == owner)


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 120))
@settings(max_examples=100, deadline=None)
def test_a_plan_holds_every_text_once(lengths: list[int], most: int) -> None:
    groups = list(group_by_length(lengths, most))
    assert sorted(chain(*groups)) == [i for i, length in enumerate(lengths) if length]
    assert all(len(group) == 1 or sum(lengths[i] for i in group) <= most for group in groups)
    order = [lengths[i] for group in groups for i in group]
    assert all(a <= b for a, b in pairwise(order))


def test_dropout_falls_on_each_text() -> None:
    encoder = make(attention={"kind": "full", "dropout": 0.5}).train()
    first, second = encode_ragged(encoder, [[1, 2, 3]] * 2)
    assert not torch.equal(first, second)
    assert first.isfinite().all()


def test_no_texts_and_a_text_that_is_too_long() -> None:
    assert encode_ragged(make(), []) == []
    with pytest.raises(ValueError, match=r"text 1 has 13 tokens.*positions for 12; cut"):
        encode_ragged(make(), [[1], [1] * 13])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gpu_gives_the_same_states_and_gradients(dtype: torch.dtype) -> None:
    here, there = make(), make().to("cuda", dtype)
    rows = [row for row in texts() if row]
    loose = 1e-4 if dtype == torch.float32 else 0.1
    wanted = torch.cat(encode_ragged(here, rows))
    found = torch.cat(encode_ragged(there, rows))
    torch.testing.assert_close(found.cpu().float(), wanted, atol=loose, rtol=loose)
    wanted.square().sum().backward()
    found.float().square().sum().backward()
    for name, weight in there.named_parameters():
        own = dict(here.named_parameters())[name].grad
        torch.testing.assert_close(weight.grad.cpu().float(), own, atol=10 * loose, rtol=10 * loose)  # type: ignore[union-attr]


@pytest.mark.parametrize("lengths", [[5], [1, 2, 3, 5, 8, 13, 13], [9, 2, 4, 4, 1]])
def test_padding_for_attention_alone_changes_nothing(lengths: list[int]) -> None:
    """The way of GPUs without a kernel for it, here on a CPU; in any order, with gradients."""
    packed = PackedMask.from_lengths(lengths, torch.device("cpu"))
    torch.manual_seed(0)
    rows = [torch.randn(1, 2, sum(lengths), 4, requires_grad=True) for _ in range(3)]
    found, wanted = (way(*rows, packed, 0.0) for way in (padded_attention, attend_packed))
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)
    direction = torch.randn_like(found)
    both = [torch.autograd.grad((own * direction).sum(), rows) for own in (found, wanted)]
    for one, other in zip(*both):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_texts_of_like_length_are_padded_together() -> None:
    assert list(group_similar_lengths([2, 3, 4, 5, 9, 10, 11, 30])) == [3, 3, 1, 1]
    assert list(group_similar_lengths([9, 2, 4, 4, 1])) == [1, 3, 1]
    assert list(group_similar_lengths([])) == []


@pytest.mark.parametrize("room", [43, 50, 96])
def test_a_room_that_nobody_counts_changes_nothing(room: int) -> None:
    """States and gradients are those of the padded batch, however much of the room is spare."""
    encoder = make()
    lengths = torch.tensor(LENGTHS)
    mask = torch.arange(12) < lengths[:, None]
    dice = torch.Generator().manual_seed(2)
    tokens, segments = (torch.randint(2, mask.shape, generator=dice) for _ in range(2))
    whole = encoder.encode_batch(tokens, mask, segments, None)
    within = encoder.encode_within_capacity(tokens, mask, segments, None, room)
    torch.testing.assert_close(within, whole)
    weights = list(encoder.parameters())
    one, two = (torch.autograd.grad(x.square().sum(), weights) for x in (whole, within))
    for ours, theirs in zip(one, two):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 24))
def test_places_are_those_of_nonzero(chosen: list[bool], room: int) -> None:
    flags = torch.tensor(chosen, dtype=torch.bool)
    found = find_true_positions(flags, room).tolist()
    true = flags.nonzero().squeeze(1).tolist()[:room]
    assert found == true + [len(chosen)] * (room - len(true))


@pytest.mark.parametrize("room", [43, 44, 96, 200])
def test_what_is_spare_are_texts_that_are_not_too_long(room: int) -> None:
    """A kernel computes nothing beyond the longest text it was told of."""
    mask = torch.arange(12) < torch.tensor(LENGTHS)[:, None]
    packed = PackedMask.from_mask(mask, room)
    edges = packed.cu_seqlens.tolist()
    sizes = [end - start for start, end in pairwise(edges)]
    assert (edges[0], edges[-1], packed.num_tokens, packed.max_seqlen) == (0, room, room, 12)
    assert sizes[: len(LENGTHS)] == LENGTHS
    assert all(0 <= size <= 12 for size in sizes)


def test_kernels_are_tried_once_and_never_while_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial within torch.compile would break what is compiled; so they are tried before."""
    device, asked = torch.device("cpu"), []

    def tried(kernel: kernels.VarlenKernel, device: torch.device) -> bool:
        asked.append(kernel)
        return True

    monkeypatch.setattr(kernels, "KERNEL_WORKS", {})
    monkeypatch.setattr(kernels, "probe_kernel", tried)

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return 2 * x if kernels.is_kernel_working(kernels.varlen_attention, device) else x

    one = torch.ones(1)
    assert torch.compile(doubled, backend="eager", fullgraph=True)(one) == 1
    assert not asked
    kernels.probe_kernels(device)
    kernels.probe_kernels(device)
    assert asked == [kernels.varlen_attention, kernels.varlen_attention_with_dropout]
    assert torch.compile(doubled, backend="eager", fullgraph=True)(one) == 2
