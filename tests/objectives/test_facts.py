"""Strong supervision: the gold slots of each hop, and the loss of missing them.

Shapes: b batch, f facts, n inputs, k hops, s slots.
"""

from math import exp, log
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.data.babi.batches import build_tokenizer, encode_examples
from mnemic.data.babi.dataset import generate_examples
from mnemic.memory.append import append_inputs, empty_slots
from mnemic.models import IGNORE, build_model
from mnemic.models.ensemble import StackedNetworks
from mnemic.objectives.answer import AnswerLoss
from mnemic.objectives.facts import (
    AnswerAndFactsLoss,
    AnswerAndGatesLoss,
    compute_gold_slots,
    gate_hop_loss,
    softmax_hop_loss,
)

CHAIN = torch.tensor([[2, 0, 4], [3, IGNORE, IGNORE], [IGNORE, 1, IGNORE]])  # b f
MODEL = {
    "width": 4,
    "encode": {"kind": "bag"},
    "memory": {"kind": "memn2n", "hops": 2, "tying": "layerwise"},
    "respond": {"kind": "word"},
}


def write_weights(*, max_slots: int = 5) -> Tensor:
    """Write 5 inputs into at most ``max_slots`` slots; return the write weights: b n s."""
    states = torch.zeros(3, 5, 1)
    return append_inputs(empty_slots(3, states), states, torch.ones(3, 5) > 0, max_slots=max_slots).weights


def slot_indices_of(gold: Tensor) -> list[list[list[int]]]:
    """Return the slot indices of each hop."""
    assert set(gold.unique().tolist()) <= {0.0, 1.0}
    return [[hop.nonzero().flatten().tolist() for hop in row] for row in gold]


@pytest.mark.parametrize(
    ("hops", "first", "second", "third"),
    [
        (1, [[0, 2, 4]], [[3]], [[1]]),
        (2, [[2], [0, 4]], [[3], []], [[], [1]]),
        (3, [[2], [0], [4]], [[3], [], []], [[], [1], []]),
        (4, [[2], [0], [4], []], [[3], [], [], []], [[], [1], [], []]),
    ],
)
def test_hop_i_finds_fact_i_and_the_last_one_the_rest(
    hops: int, first: list[Any], second: list[Any], third: list[Any]
) -> None:
    assert slot_indices_of(compute_gold_slots(CHAIN, write_weights(), num_hops=hops)) == [first, second, third]


def test_gold_slots_are_where_facts_were_written_without_evicted_ones() -> None:
    """Three slots for five inputs: input 2 is in slot 0."""
    assert slot_indices_of(compute_gold_slots(CHAIN, write_weights(max_slots=3), num_hops=3)) == [
        [[0], [], [2]],
        [[1], [], []],
        [[], [], []],
    ]


def test_questions_without_facts_and_stories_without_sentences() -> None:
    assert compute_gold_slots(CHAIN[:, :0], write_weights(), num_hops=2).eq(0).all()
    assert compute_gold_slots(CHAIN, write_weights()[:, :0, :0], num_hops=2).shape == (3, 2, 0)


def test_losses_are_the_cross_entropies_number_by_number() -> None:
    scores = torch.randn(3, 2, 5, dtype=torch.float64)
    gold = compute_gold_slots(CHAIN, write_weights().double(), num_hops=2)
    for row in range(3):
        softmax_loss = gate_loss = 0.0
        for hop in range(2):
            hop_scores, hop_gold = scores[row, hop].tolist(), gold[row, hop].tolist()
            log_sum = log(sum(exp(score) for score in hop_scores))
            facts = [score for score, fact in zip(hop_scores, hop_gold) if fact]
            softmax_loss += sum(log_sum - score for score in facts) / max(1, len(facts))
            for score, fact in zip(hop_scores, hop_gold):
                gate_loss -= log(1 / (1 + exp(-score if fact else score)))
        assert softmax_hop_loss(scores, gold)[row].item() == pytest.approx(softmax_loss)
        assert gate_hop_loss(scores, gold)[row].item() == pytest.approx(gate_loss)


def test_hidden_slots_cost_nothing_and_have_no_gradient() -> None:
    scores = torch.randn(3, 2, 5).requires_grad_()
    mask = torch.arange(5) < 4
    gold = compute_gold_slots(CHAIN, write_weights(), num_hops=2) * mask
    for hop_loss in (softmax_hop_loss, gate_hop_loss):
        losses = hop_loss(scores.masked_fill(~mask, -1e30), gold)
        torch.testing.assert_close(losses, hop_loss(scores[..., :4], gold[..., :4]))
        (gradient,) = torch.autograd.grad(losses.sum(), scores)
        assert gradient.isfinite().all()
        assert gradient[..., 4].eq(0).all()


def test_the_chain_has_the_order_of_the_proof_and_positions_after_cutting() -> None:
    examples = generate_examples(2, 200, 0)
    tokenizer = build_tokenizer(examples)
    full, cut = encode_examples(examples, tokenizer), encode_examples(examples, tokenizer, max_sentences=6)
    assert full.chain.shape == (200, 2)
    num_unsorted = 0
    for row, example in enumerate(examples):
        assert tuple(full.chain[row].tolist()) == example.facts
        num_cut = max(0, len(example.sentences) - 6)
        expected = [fact - num_cut if fact >= num_cut else IGNORE for fact in example.facts]
        assert cut.chain[row].tolist() == expected
        assert set(expected) - {IGNORE} == set(cut.facts[row].nonzero().flatten().tolist())
        num_unsorted += example.facts[0] > example.facts[1]
    assert num_unsorted > 10  # a chain is not sorted


@pytest.mark.parametrize("objective", [AnswerAndFactsLoss, AnswerAndGatesLoss])
def test_the_two_losses_are_weighed_and_added(objective: Any) -> None:
    examples = generate_examples(2, 40, 0)
    tokenizer = build_tokenizer(examples)
    stories = encode_examples(examples, tokenizer)
    torch.manual_seed(0)
    networks = [build_model(MODEL, {"vocab": len(tokenizer), "max_length": 8}) for _ in range(2)]
    batch = stories.batch(torch.arange(6))
    answer_only, both, facts = (
        objective(**options)(networks[0], batch)
        for options in ({"facts": 0.0}, {"answer": 2.0, "facts": 3.0}, {"answer": 0.0})
    )
    plain = AnswerLoss()(networks[0], batch)
    torch.testing.assert_close(answer_only.total, plain.total)
    torch.testing.assert_close(both.total, 2 * plain.total + 3 * facts.total)
    assert answer_only.num_targets == both.num_targets == 6
    rows = torch.arange(12).view(2, 6)
    together = StackedNetworks(networks).map_networks(objective(), stories.batch(rows))
    for run, network in enumerate(networks):
        alone = objective()(network, stories.batch(rows[run]))
        torch.testing.assert_close(together.total[run], alone.total)
