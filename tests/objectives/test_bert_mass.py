"""The seven losses of BERT-MASS by name: each is what its formula says; a weight may be 0."""

from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.data import DATASETS
from mnemic.data.long_context.batches import LongBatch
from mnemic.memory.parts.controller import bernoulli_entropy
from mnemic.models import build_model
from mnemic.models.inputs import IGNORE, NOT_A_FACT, OUTSIDE_STORY, SegmentOutput
from mnemic.models.segment_model import SegmentModel
from mnemic.objectives import OBJECTIVES
from mnemic.objectives.bert_mass import (
    BertMassLoss,
    assign_hop_facts,
    compute_unit_facts,
    controller_loss,
    find_read_units,
    read_loss,
    write_loss,
)
from mnemic.recipe import ConfigError, build

NAMES = ("pred", "seq", "ctrl", "write", "read", "mlm", "nsp")
ALL = dict.fromkeys(NAMES, 1.0)
LITTLE = {"length": 24, "segments": 3, "count": 60, "tokenizer": {"kind": "wordpiece", "vocab": 400}}


@pytest.fixture(scope="module")
def sets() -> dict[str, Any]:
    keys: dict[str, Any] = {"kind": "long-recall"}
    copies = {"kind": "long-recall", "task": "copies", "facts": 3}
    kinds = {"keys": keys, "copies": copies, "documents": {"kind": "long-documents"}}
    kinds["several"] = {"kind": "long-recall", "facts": 4}
    return {kind: build(DATASETS, {**own, **LITTLE}).load() for kind, own in kinds.items()}


def make(sets: dict[str, Any], kind: str = "blended", unit: str = "tokens") -> SegmentModel:
    torch.manual_seed(0)
    model = {
        "width": 16,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1}},
        "memory": {"kind": kind, "slots": 20},
        "mass": {},
        "respond": {"kind": "predictor"},
        "segments": {"unit": unit},
    }
    vocab = max(own.sizes["vocab"] for own in sets.values())
    return build_model(model, sets["keys"].sizes | {"vocab": vocab})


def drawn(sets: dict[str, Any], kind: str = "keys") -> LongBatch:
    return sets[kind].train.batch(torch.arange(4), torch.linspace(0, 0.9, 4).unsqueeze(1))


def recalled(network: SegmentModel, batch: LongBatch) -> tuple[SegmentOutput, Tensor, Tensor]:
    """The output with its lessons, what is needed and what is real, b u."""
    output = network(batch.inputs, probes="read")
    needed = compute_unit_facts(output.write_probes, batch.facts, batch.inputs) >= 0
    return output, needed, torch.cat([probe.mask for probe in output.write_probes], 1)


@pytest.mark.parametrize("kind", ["blended", "selective"])
@pytest.mark.parametrize("unit", ["tokens", "sentences"])
def test_all_seven_have_names_and_every_weight_learns(sets: dict[str, Any], kind: str, unit: str) -> None:
    network = make(sets, kind, unit)
    stories, texts = drawn(sets, "copies"), drawn(sets, "documents")
    first = BertMassLoss(**ALL)(network, stories)
    assert first.means is not None
    assert set(first.means) == set(NAMES)
    assert all(part.isfinite() for part in first.means.values())
    second = BertMassLoss(**ALL)(network, texts)
    (first.total / first.num_targets + second.total / second.num_targets).backward()
    dead = [name for name, weight in network.named_parameters() if weight.grad is None]
    assert not dead
    assert all(weight.grad.isfinite().all() for weight in network.parameters())  # type: ignore[union-attr]


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_of_zero_leaves_its_loss_out(sets: dict[str, Any], name: str) -> None:
    network, batch = make(sets), drawn(sets)
    found = BertMassLoss(**(ALL | {name: 0.0})).compute_losses(network, batch)
    assert set(found) == set(NAMES) - {name}


def test_the_total_is_the_weighted_sum_of_the_means(sets: dict[str, Any]) -> None:
    network, batch = make(sets), drawn(sets)
    weights = dict(zip(NAMES, (1.0, 0.5, 0.25, 2.0, 0.1, 0.3, 0.7)))
    loss = BertMassLoss(**weights)(network, batch)
    assert loss.means is not None
    wanted = sum(weight * loss.means[name] for name, weight in weights.items())
    torch.testing.assert_close(loss.total / loss.num_targets, wanted)


def test_first_word_and_rest(sets: dict[str, Any]) -> None:
    network, batch = make(sets), drawn(sets, "copies")
    found = BertMassLoss().compute_losses(network, batch)
    output = network(batch.inputs)
    assert batch.answers.shape == (4, 4)  # three words and the end
    first = torch.nn.functional.cross_entropy(output.logits[:, 0], batch.answers[:, 0])
    rest = torch.nn.functional.cross_entropy(output.rest_logits.flatten(0, 1), batch.answers[:, 1:].flatten())
    torch.testing.assert_close(found["pred"].total / found["pred"].num_targets, first)
    torch.testing.assert_close(found["seq"].total / found["seq"].num_targets, rest)


def units(network: SegmentModel, batch: LongBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Of all units which fact each is of, the controller's log-odds, and which are real."""
    output = network(batch.inputs, probes="written")
    parts = [(probe.written.salience_logits, probe.mask) for probe in output.write_probes]
    odds, seen = (torch.cat(own, 1) for own in zip(*parts))
    return compute_unit_facts(output.write_probes, batch.facts, batch.inputs), odds, seen


def test_the_controller_is_taught_the_supporting_facts(sets: dict[str, Any]) -> None:
    """−log p(u*|s) + β H(u), with u* the tokens of the marked sentence."""
    network, batch = make(sets), drawn(sets)
    output, needed, seen = recalled(network, batch)
    loss = controller_loss(output, needed, batch.has_facts, 0.5)
    total = torch.zeros(())
    for number, lesson in enumerate(output.write_probes):
        for row, column in lesson.mask.nonzero().tolist():
            odds = lesson.written.salience_logits[row, column]
            u = torch.sigmoid(odds)
            wanted = batch.fact_mask[row, number, column]
            total = total - (u if wanted else 1 - u).log() + 0.5 * bernoulli_entropy(odds)
    torch.testing.assert_close(loss.total, total, rtol=1e-4, atol=1e-4)
    assert int(loss.num_targets) == int(seen.sum())


def test_other_sentences_of_a_story_can_be_left_alone(sets: dict[str, Any]) -> None:
    """The next question may be about them; background is worth nothing all the same."""
    network, batch = make(sets, "selective", "sentences"), drawn(sets, "several")
    facts, odds, seen = units(network, batch)
    assert int((facts[seen] == NOT_A_FACT).sum()) == 4 * 3  # of four keys one is asked for
    counted = seen & (facts != NOT_A_FACT)
    right = torch.where(facts >= 0, odds, -odds)
    lost = -torch.nn.functional.logsigmoid(right) + 0.01 * bernoulli_entropy(odds)
    loss = BertMassLoss(ctrl=1.0, spare=True).compute_losses(network, batch)["ctrl"]
    torch.testing.assert_close(loss.total, lost[counted].sum())
    assert int(loss.num_targets) == int(counted.sum())
    every = BertMassLoss(ctrl=1.0).compute_losses(network, batch)["ctrl"]
    torch.testing.assert_close(every.total, lost[seen].sum())


def test_needed_sentences_are_ranked_above_the_rest(sets: dict[str, Any]) -> None:
    """All that some question is about, told from the other units of its document alone."""
    network, batch = make(sets, "selective", "sentences"), drawn(sets, "several")
    facts, odds, seen = units(network, batch)
    total = torch.zeros(())
    for row in range(4):
        chances = odds[row][seen[row]].softmax(0)
        about = facts[row][seen[row]] != OUTSIDE_STORY
        assert int(about.sum()) == 4  # the key that is asked for, and three others
        total = total - chances[about].log().mean() - 0.5 * (chances * chances.log()).sum()
    loss = BertMassLoss(ctrl=1.0, rank=True, beta=0.5).compute_losses(network, batch)["ctrl"]
    torch.testing.assert_close(loss.total, total)
    assert int(loss.num_targets) == 4
    batch = batch._replace(facts=torch.full_like(batch.facts, OUTSIDE_STORY))
    assert int(BertMassLoss(ctrl=1.0, rank=True).compute_losses(network, batch)["ctrl"].num_targets) == 0


def test_without_marks_it_is_taught_what_was_read_above_average(sets: dict[str, Any]) -> None:
    network, batch = make(sets, "selective"), drawn(sets)
    output, _, seen = recalled(network, batch)
    wanted = find_read_units(output, seen)
    weight = output.reading.weights.mean((1, 2, 3))
    for row in range(4):
        mask, sources = output.state.mask[row], output.state.sources[row]
        above = mask & (weight[row] > weight[row].sum() / mask.sum())
        assert 0 < int(above.sum()) < int(mask.sum())
        real = seen[row].nonzero().flatten()  # the u-th unit that is real has number u
        assert wanted[row].nonzero().flatten().tolist() == real[sources[above].sort()[0]].tolist()
    none = torch.zeros_like(batch.has_facts)
    loss = controller_loss(output, torch.zeros_like(wanted), none, 0.0)
    odds = torch.cat([lesson.written.salience_logits for lesson in output.write_probes], 1)
    slow = torch.nn.functional.binary_cross_entropy_with_logits(odds[seen], wanted[seen].float())
    torch.testing.assert_close(loss.total / loss.num_targets, slow)
    assert not wanted.requires_grad


def test_write_asks_for_the_tokens_and_for_little_movement(sets: dict[str, Any]) -> None:
    network, batch = make(sets), drawn(sets)
    output, _, _ = recalled(network, batch)
    plain, moving = write_loss(output.write_probes, 0.0), write_loss(output.write_probes, 1.0)
    said, count = torch.zeros(()), 0
    for number, lesson in enumerate(output.write_probes):
        assert lesson.targets is not None
        for row, one in (lesson.targets[..., 0] != IGNORE).nonzero().tolist():
            word = lesson.targets[row, one, 0]
            assert word in batch.inputs.tokens[row, number]
            said = said - lesson.logits[row, one].log_softmax(-1)[word]
            count += 1
    torch.testing.assert_close(plain.total, said)
    assert int(plain.num_targets) == count
    moved = sum(
        (lesson.written.state.slots - lesson.state_before.slots).square().sum(-1).mean(1).sum()
        for lesson in output.write_probes
    )
    torch.testing.assert_close(moving.total - plain.total, moved, rtol=1e-4, atol=1e-4)


def test_the_words_of_a_written_token_come_from_memory_alone(sets: dict[str, Any]) -> None:
    """With empty slots nothing can be told of it, whatever the token was."""
    network, batch = make(sets).eval(), drawn(sets)
    with torch.no_grad():
        network.memory.value.weight.zero_()
        network.memory.value.bias.zero_()
    words = network(batch.inputs, probes="read").write_probes[0].logits
    assert (words - words[:1, :1]).abs().max() < 1e-5


@pytest.mark.parametrize(("kind", "unit"), [("blended", "tokens"), ("selective", "sentences")])
@pytest.mark.parametrize("chain", [1, 2, 5])
def test_hop_after_hop_finds_fact_after_fact(sets: dict[str, Any], kind: str, unit: str, chain: int) -> None:
    """Of the first ``chain`` sentences, the last proves first; hops share what is to be found."""
    network, batch = make(sets, kind, unit), drawn(sets, "several")
    sentences = batch.inputs.sentence_ids
    assert sentences is not None
    here = torch.arange(sentences.shape[1])[:, None] == 0  # of the first segment
    wanted = here & (sentences >= 0) & (sentences < chain)
    batch = batch._replace(facts=torch.where(wanted, chain - 1 - sentences, -1), max_facts=chain)
    output, _, seen = recalled(network, batch)
    facts = compute_unit_facts(output.write_probes, batch.facts, batch.inputs)
    loss = read_loss(output, facts, batch.has_facts, chain)
    sources, shares = output.state.origins
    total, count = torch.zeros(()), 0
    for row in range(4):
        place = (seen[row].long().cumsum(0) - 1).tolist()
        fact_of = {n: int(f) for n, f, real in zip(place, facts[row], seen[row]) if real}
        last = max(fact_of.values())
        hops = output.reading.weights[row].mean(1)[:, 0]  # k a
        lost = []
        for hop, weights in enumerate(hops):
            due = {min(hop, last)} | (set(range(hop, last + 1)) if hop == len(hops) - 1 else set())
            goal = torch.tensor([
                sum(float(part) for n, part in zip(own, parts) if fact_of.get(n, -1) in due)
                for own, parts in zip(sources[row].tolist(), shares[row])
            ])  # fmt: skip
            if goal.sum() > 0:
                lost.append(-(weights @ goal).log())
        if lost:
            total, count = total + torch.stack(lost).mean(), count + 1
    torch.testing.assert_close(loss.total, total, rtol=1e-4, atol=1e-4)
    assert int(loss.num_targets) == count > 0


def test_hops_and_facts_that_are_left() -> None:
    facts = torch.tensor([[0, -1, -1], [1, 0, -1], [2, 1, 0], [-1, -1, -1]])
    found = [[own.nonzero().flatten().tolist() for own in row] for row in assign_hop_facts(facts, 2, 3)]
    assert found == [[[0], [0]], [[0], [1]], [[0], [1, 2]], [[], []]]
    assert assign_hop_facts(facts, 3, 3)[1].nonzero().tolist() == [[0, 0], [1, 1], [2, 1]]


def test_facts_of_sentences_are_those_of_their_tokens(sets: dict[str, Any]) -> None:
    batch = drawn(sets, "several")
    for unit in ("tokens", "sentences"):
        output = make(sets, "selective", unit)(batch.inputs, probes="written")
        facts = compute_unit_facts(output.write_probes, batch.facts, batch.inputs)
        assert all(set(own.tolist()) == {OUTSIDE_STORY, NOT_A_FACT, 0} for own in facts)  # one key is asked
        seen = torch.cat([probe.mask for probe in output.write_probes], 1)
        assert (facts[~seen] == OUTSIDE_STORY).all()
    assert ((facts == 0).sum(1) == 1).all()


def test_without_marks_what_was_written_finds_its_own_slot(sets: dict[str, Any]) -> None:
    network, batch = make(sets), drawn(sets, "documents")
    output, _, seen = recalled(network, batch)
    assert not batch.has_facts.any()
    loss = read_loss(output, torch.full_like(seen, -1, dtype=torch.long), batch.has_facts, 0)
    total, count = torch.zeros(()), 0
    for lesson in output.write_probes:
        assert lesson.slots is not None
        assert lesson.reading is not None
        for row, one in (lesson.slots >= 0).nonzero().tolist():
            hops = lesson.reading.weights[row, :, :, one].mean(1)[:, lesson.slots[row, one]]
            total, count = total - hops.log().mean(), count + 1
    torch.testing.assert_close(loss.total, total, rtol=1e-4, atol=1e-4)
    assert int(loss.num_targets) == count > 0


def test_masked_words_and_what_follows(sets: dict[str, Any]) -> None:
    network, batch = make(sets), drawn(sets, "documents")
    found = BertMassLoss(pred=0, seq=0, mlm=1, nsp=1).compute_losses(network, batch)
    inputs, words = BertMassLoss(mlm=1).mask_inputs(batch)
    assert inputs.prediction_mask is not None
    assert not (inputs.prediction_mask & ~inputs.text_mask).any()
    assert torch.equal(batch.inputs.tokens[inputs.prediction_mask], words)
    output = network(inputs)
    slow = torch.nn.functional.cross_entropy(output.masked_logits, words)
    torch.testing.assert_close(found["mlm"].total / found["mlm"].num_targets, slow)
    follows = torch.nn.functional.cross_entropy(output.nsp_logits, 1 - batch.next_sentence_labels)
    torch.testing.assert_close(found["nsp"].total / found["nsp"].num_targets, follows)
    again, _ = BertMassLoss(mlm=1).mask_inputs(batch)
    assert torch.equal(again.tokens, inputs.tokens)


def test_what_proves_an_answer_is_never_hidden(sets: dict[str, Any]) -> None:
    batch = drawn(sets)
    for seed in range(20):
        inputs, _ = BertMassLoss(mlm=1).mask_inputs(batch._replace(mask_seeds=batch.mask_seeds + seed))
        assert inputs.prediction_mask is not None
        assert not (inputs.prediction_mask & batch.fact_mask).any()
        assert torch.equal(inputs.tokens[batch.fact_mask], batch.inputs.tokens[batch.fact_mask])


def test_the_next_word_is_asked_of_every_token_that_has_one(sets: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = {"width": 16, "encode": {"kind": "recurrent"}, "respond": {"kind": "predictor"}}
    model |= {"segments": {}, "memory": {"kind": "blended"}}
    network, batch = build_model(model, sets["documents"].sizes), drawn(sets, "documents")
    loss = build(OBJECTIVES, {"kind": "segment-next-token"})(network, batch)
    mask = batch.inputs.mask
    assert int(loss.num_targets) == int((mask[..., 1:] & mask[..., :-1]).sum())
    assert float(loss.total.detach() / loss.num_targets) == pytest.approx(6.0, rel=0.5)  # log 400


def test_weights_are_checked() -> None:
    with pytest.raises(ConfigError, match="one of the weights"):
        BertMassLoss(pred=0, seq=0)
    with pytest.raises(ConfigError, match="the weight ctrl is a number from 0 on"):
        BertMassLoss(ctrl=-1)
