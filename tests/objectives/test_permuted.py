"""Permuted language modeling: which tokens are asked, in which order, and what may not leak.

Shapes: b batch, n tokens.
"""

import pytest
import torch
from pretraining_runs import VOCAB as V
from pretraining_runs import make_corpus_batch as make_batch
from scipy.stats import chisquare

from mnemic.encode import TransformerEncoder
from mnemic.encode.stacks.two_stream import SEEN_BY_ALL
from mnemic.models import IGNORE, TextModel
from mnemic.objectives.pretraining.permuted import AskedSpans, PermutedLoss, draw_ranks, permute_batch
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError
from mnemic.respond.pretraining.permuted import PermutedHead

D = 16


def make_xlnet() -> TextModel:
    torch.manual_seed(0)
    embeddings = {"kind": "sum", "norm": False, "positions": {"kind": "none"}}
    encode = TransformerEncoder(D, V, embeddings=embeddings, stack={"kind": "two-stream"})
    return TextModel(encode, PermutedHead(D, V, encode.embeddings.tokens))


def test_lengths_of_asked_spans() -> None:
    """100,000 first spans: 1 to 5 tokens with p ∝ 1/length, at places that are all alike."""
    is_target = AskedSpans()(make_uniforms(torch.arange(100_000), 35, 2))
    starts = is_target.int().argmax(1)
    ends = torch.where(is_target | (torch.arange(35) < starts.unsqueeze(1)), 35, torch.arange(35)).amin(1)
    lengths = ends - starts
    counts = torch.bincount(lengths, minlength=6)[1:].double()
    expected = 100_000 * torch.tensor([60, 30, 20, 15, 12], dtype=torch.float64) / 137
    assert chisquare(counts.numpy(), expected.numpy()).pvalue > 0.001
    for length in range(1, 6):
        counts = torch.bincount(starts[lengths == length])
        assert len(counts) == 6 * length
        assert chisquare(counts.double().numpy()).pvalue > 0.001


def test_one_of_seven_tokens_is_asked() -> None:
    """And never more than a text's limit, from which buffers are as long as they are."""
    choose_spans = AskedSpans()
    is_target = choose_spans(make_uniforms(torch.arange(500), 210, 2))
    assert abs(float(is_target.float().mean()) - 1 / 7) < 0.002
    assert int(is_target.sum(1).max()) <= choose_spans.limit(210) == 35
    assert [choose_spans.limit(length) for length in (1, 5, 12)] == [1, 5, 7]


@pytest.mark.parametrize("context", [1.0, 1.5, 2.9, 6.0])
def test_spans_are_chosen_to_the_end_of_a_text_whatever_its_padding(context: float) -> None:
    """A longer row, which other texts of the batch ask for, has the same spans at its beginning."""
    choose_spans = AskedSpans(context=context, max_span=1)
    short, long = (choose_spans(make_uniforms(torch.arange(200), length, 2)) for length in (21, 90))
    assert torch.equal(short, long[:, :21])
    assert short[:, -3:].any()
    assert int(short.sum(1).max()) <= choose_spans.limit(21)


def test_orders_are_uniform_permutations() -> None:
    ranks = draw_ranks(make_uniforms(torch.arange(6000), 3, 1)[0], 0)
    assert (ranks.sort(-1).values == torch.arange(3)).all()
    counts = torch.bincount((ranks * torch.tensor([9, 3, 1])).sum(1))
    assert chisquare(counts[counts > 0].numpy()).pvalue > 0.001
    assert int((counts > 0).sum()) == 6


def test_blocks_come_one_after_the_other() -> None:
    ranks = draw_ranks(make_uniforms(torch.arange(50), 10, 1)[0], 4)
    for first in (0, 4, 8):
        block = ranks[:, first : first + 4]
        assert (block.sort(-1).values == torch.arange(first, min(first + 4, 10))).all()
    assert (ranks != torch.arange(10)).any()


@pytest.mark.parametrize("capacity", [0, 46])
def test_targets_are_the_asked_tokens_which_stay_in_the_text(capacity: int) -> None:
    """Special tokens are ordered but never asked; all other tokens are seen by all."""
    batch = make_batch([1, 0, 1, 0])._replace(max_tokens=capacity)
    permuted = permute_batch(batch, AskedSpans(context=1.0))
    order, is_target = permuted.inputs.order, permuted.targets != IGNORE
    assert order is not None
    assert torch.equal(permuted.inputs.tokens, batch.tokens)
    positions = permuted.inputs.answer_mask[is_target]
    assert torch.equal(permuted.targets[is_target], batch.tokens.flatten()[positions])
    is_target = torch.zeros(batch.tokens.numel(), dtype=torch.bool).index_fill(0, positions, True).view(4, -1)
    assert 10 < int(is_target.sum()) < 30
    assert not (is_target & batch.unmaskable).any()
    ordinary = ~is_target & ~batch.unmaskable
    assert (order.ranks[ordinary] == SEEN_BY_ALL).all()
    assert (order.ranks[is_target | (batch.unmaskable & batch.mask)] >= 0).all()
    for row in range(4):
        expected = is_target[row].nonzero().squeeze(1).tolist()
        assert [query for query in order.queries[row].tolist() if query < 12] == expected
    loss = PermutedLoss(context=1.0)(make_xlnet(), batch)
    assert loss.num_targets == is_target.sum()


def test_a_sequence_does_not_depend_on_its_batch() -> None:
    batch = make_batch([1, 0, 1])
    row = batch._replace(
        **{name: getattr(batch, name)[1:2] for name in ("tokens", "mask", "segments", "unmaskable", "mask_seeds")}
    )
    together, alone = (permute_batch(part, AskedSpans(context=1.0)) for part in (batch, row))
    assert torch.equal(together.inputs.order.ranks[1:2], alone.inputs.order.ranks)
    losses = [PermutedLoss(context=1.0)(make_xlnet(), part).total for part in (batch, row)]
    assert losses[0] > losses[1] > 0


def test_an_asked_token_changes_no_logit_of_its_own() -> None:
    """Whatever the asked token is, its logits are the same: nothing leaks."""
    network, batch = make_xlnet().eval(), make_batch([1, 0, 1])
    permuted = permute_batch(batch, AskedSpans(context=1.0))
    logits = network(permuted.inputs).logits.masked_logits
    num_changed = 0
    for number, position in enumerate(permuted.inputs.answer_mask.tolist()):
        tokens = batch.tokens.clone()
        tokens.view(-1)[position] = 5 + (tokens.view(-1)[position] - 4) % 25
        changed = network(permuted.inputs._replace(tokens=tokens)).logits.masked_logits
        torch.testing.assert_close(changed[number], logits[number])
        num_changed += int((changed != logits).any())
    assert num_changed > len(logits) / 2


def test_every_weight_of_the_network_learns() -> None:
    network = make_xlnet()
    PermutedLoss(context=1.0)(network, make_batch([1, 0, 1])).total.backward()
    assert not [name for name, weight in network.named_parameters() if weight.grad is None]


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"objective\.context and objective\.max_span are at least 1, not 0.5 and 5"):
        PermutedLoss(context=0.5)
    with pytest.raises(ConfigError, match=r"objective\.block is a number of tokens"):
        PermutedLoss(block=-1)
