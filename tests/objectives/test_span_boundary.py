"""The span-boundary objective: a masked token is predicted from the ends of its span alone.

Shapes: b batch, n tokens, m masked positions, v vocabulary.
"""

import pytest
import torch
from corpus_batches import VOCAB, make_batch, select_rows
from torch import Tensor, nn

from mnemic.encode import TransformerEncoder
from mnemic.models import IGNORE, TextModel
from mnemic.objectives.pretraining.masked import PretrainingLoss, find_span_ends, mask_batch
from mnemic.objectives.pretraining.masking import MaskedRows
from mnemic.objectives.pretraining.span_masking import SpanMasking
from mnemic.recipe import ConfigError
from mnemic.respond.pretraining.masked import PretrainingHeads
from mnemic.respond.pretraining.span_boundary import MAX_OFFSETS, SpanBoundaryHead

V, D = VOCAB, 16
SPANS = {"kind": "spans", "rate": 0.3}


def make_network(span_boundary: bool = True) -> TextModel:
    encode = TransformerEncoder(D, V, embeddings={"kind": "sum", "segments": 2})
    return TextModel(encode, PretrainingHeads(D, V, encode.embeddings.tokens, span_boundary=span_boundary))


def rows_of(mask: Tensor) -> MaskedRows:
    return MaskedRows(mask.long(), mask.long(), mask)


def test_the_ends_of_spans_by_hand() -> None:
    """A span beside a special token or an end of the row has no ends; the others have both."""
    #                    C  .  x  x  .  S  x  .  x  x  x  .
    mask = torch.tensor([0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0]).bool().expand(2, 12)
    unmaskable = torch.zeros(2, 12, dtype=torch.bool)
    unmaskable[:, [0, 5]] = True
    positions = mask.flatten().nonzero().squeeze(1)
    before, after, offsets = find_span_ends(rows_of(mask), unmaskable, positions).unbind(1)
    assert offsets.tolist() == [0, 1, -1, 0, 1, 2] * 2
    is_asked = offsets >= 0
    assert before[is_asked].tolist() == [1, 1, 7, 7, 7, 13, 13, 19, 19, 19]
    assert after[is_asked].tolist() == [4, 4, 11, 11, 11, 16, 16, 23, 23, 23]
    at_end = torch.tensor([[0, 1, 1, 1]]).bool()
    assert (find_span_ends(rows_of(at_end), ~at_end & False, torch.tensor([1, 2, 3]))[:, 2] == -1).all()


def test_the_ends_are_never_masked() -> None:
    batch = make_batch(40)
    masked = mask_batch(batch, SpanMasking(rate=0.4), with_span_ends=True)
    ends = masked.inputs.span_ends
    assert ends is not None
    before, after, offsets = ends[ends[:, 2] >= 0].unbind(1)
    assert len(offsets) > 50
    assert offsets.max() > 3
    for position in (before, after):
        assert torch.equal(masked.inputs.tokens.flatten()[position], batch.tokens.flatten()[position])
        assert not batch.unmaskable.flatten()[position].any()
        assert not torch.isin(position, masked.inputs.answer_mask).any()


def test_the_head_equals_a_loop_over_positions() -> None:
    """Against the paper's equations in float64, token by token."""
    head = SpanBoundaryHead(D, nn.Parameter(torch.randn(V, 5))).double()
    for parameter in head.parameters():
        nn.init.normal_(parameter)
    states = torch.randn(2, 7, D, dtype=torch.float64)
    logits = head(states, torch.tensor([[1, 4, 0], [1, 4, 1], [8, 13, 3]]))
    for row, (before, after, offset) in enumerate([((0, 1), (0, 4), 0), ((0, 1), (0, 4), 1), ((1, 1), (1, 6), 3)]):
        x = torch.cat([states[before], states[after], head.offsets[offset]])
        for linear, norm in ((head.join, head.join_norm), (head.dense, head.dense_norm)):
            x = linear.weight @ x + linear.bias
            x = x * 0.5 * (1 + torch.erf(x / 2**0.5))
            x = (x - x.mean()) / (x.var(correction=0) + 1e-12).sqrt() * norm.weight + norm.bias
        torch.testing.assert_close(logits[row], head.words @ x + head.bias)


def test_the_head_sees_only_the_ends() -> None:
    """No gradient reaches any state but those of the two ends: a leak test."""
    head = SpanBoundaryHead(D, nn.Parameter(torch.randn(V, D)))
    states = torch.randn(2, 9, D, requires_grad=True)
    head(states, torch.tensor([[2, 6, 0], [2, 6, 2]])).square().sum().backward()
    assert states.grad is not None
    assert states.grad.abs().sum(-1).flatten().nonzero().flatten().tolist() == [2, 6]


def test_the_objective_is_the_sum_of_both_losses() -> None:
    network, batch = make_network(), make_batch()
    both = PretrainingLoss(sbo=0.5, masking=SPANS)(network, batch)
    plain = PretrainingLoss(masking=SPANS)(network, batch)
    masked = mask_batch(batch, SpanMasking(rate=0.3), with_span_ends=True)
    ends = masked.inputs.span_ends
    assert ends is not None
    logits = network(masked.inputs).logits.boundary_logits
    is_asked = (ends[:, 2] >= 0) & (ends[:, 2] < MAX_OFFSETS)
    expected = nn.functional.cross_entropy(logits[is_asked], masked.targets[is_asked], reduction="sum")
    torch.testing.assert_close(both.total, plain.total + 0.5 * expected)
    assert both.num_targets == plain.num_targets == (masked.targets != IGNORE).sum()


def test_places_without_a_vector_are_not_asked() -> None:
    batch = make_batch(2, 64)
    batch = batch._replace(unmaskable=torch.zeros_like(batch.unmaskable))
    batch.unmaskable[:, :2] = batch.unmaskable[:, -2:] = True
    full = PretrainingLoss(sbo=1.0, masking={"kind": "tokens", "rate": 1.0})(make_network(), batch)
    assert full.num_targets == 120  # and no span has an end that may be seen
    batch = batch._replace(unmaskable=torch.zeros_like(batch.unmaskable))
    loss = PretrainingLoss(sbo=1.0, masking={"kind": "words", "rate": 0.97})(make_network(), batch)
    assert loss.total.isfinite()


@pytest.mark.parametrize("capacity", [0, 140])
def test_parts_of_a_batch_add_up(capacity: int) -> None:
    network, batch = make_network(), make_batch()._replace(max_tokens=capacity)
    objective = PretrainingLoss(sbo=1.0, masking=SPANS)
    whole = objective(network, batch)
    parts = [objective(network, select_rows(batch, rows)) for rows in (slice(0, 2), slice(2, 6))]
    torch.testing.assert_close(whole.total, parts[0].total + parts[1].total)
    assert whole.num_targets == parts[0].num_targets + parts[1].num_targets


def test_every_weight_learns() -> None:
    network = make_network()
    PretrainingLoss(sbo=1.0, masking=SPANS)(network, make_batch()).total.backward()
    assert not [name for name, weight in network.named_parameters() if weight.grad is None]
    assert network.respond.boundary is not None
    assert network.respond.boundary.words is network.encode.embeddings.tokens


def test_a_network_without_the_head_is_a_clear_mistake() -> None:
    with pytest.raises(ConfigError, match=r"model\.respond\.span_boundary=true"):
        PretrainingLoss(sbo=1.0, masking=SPANS)(make_network(span_boundary=False), make_batch())
    with pytest.raises(ConfigError, match=r"objective\.mlm is above 0, too"):
        PretrainingLoss(mlm=0.0, sbo=1.0)
