"""The seven losses of BERT-MASS: each equals its formula; weights may be 0."""

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
SMALL = {"length": 24, "segments": 3, "count": 60, "tokenizer": {"kind": "wordpiece", "vocab": 400}}


@pytest.fixture(scope="module")
def datasets() -> dict[str, Any]:
    keys: dict[str, Any] = {"kind": "long-recall"}
    copies = {"kind": "long-recall", "task": "copies", "facts": 3}
    kinds = {"keys": keys, "copies": copies, "documents": {"kind": "long-documents"}}
    kinds["several"] = {"kind": "long-recall", "facts": 4}
    return {kind: build(DATASETS, {**spec, **SMALL}).load() for kind, spec in kinds.items()}


def make_model(datasets: dict[str, Any], kind: str = "blended", unit: str = "tokens") -> SegmentModel:
    torch.manual_seed(0)
    model = {
        "width": 16,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1}},
        "memory": {"kind": kind, "slots": 20},
        "mass": {},
        "respond": {"kind": "predictor"},
        "segments": {"unit": unit},
    }
    vocab = max(dataset.sizes["vocab"] for dataset in datasets.values())
    return build_model(model, datasets["keys"].sizes | {"vocab": vocab})


def sample_batch(datasets: dict[str, Any], kind: str = "keys") -> LongBatch:
    return datasets[kind].train.batch(torch.arange(4), torch.linspace(0, 0.9, 4).unsqueeze(1))


def run_model(network: SegmentModel, batch: LongBatch) -> tuple[SegmentOutput, Tensor, Tensor]:
    """Return the output with write probes, the needed items and the real items."""
    output = network(batch.inputs, probes="read")
    is_needed = compute_unit_facts(output.write_probes, batch.facts, batch.inputs) >= 0
    return output, is_needed, torch.cat([probe.mask for probe in output.write_probes], 1)


@pytest.mark.parametrize("kind", ["blended", "selective"])
@pytest.mark.parametrize("unit", ["tokens", "sentences"])
def test_all_seven_have_names_and_every_weight_learns(datasets: dict[str, Any], kind: str, unit: str) -> None:
    network = make_model(datasets, kind, unit)
    stories, texts = sample_batch(datasets, "copies"), sample_batch(datasets, "documents")
    first = BertMassLoss(**ALL)(network, stories)
    assert first.means is not None
    assert set(first.means) == set(NAMES)
    assert all(mean.isfinite() for mean in first.means.values())
    second = BertMassLoss(**ALL)(network, texts)
    (first.total / first.num_targets + second.total / second.num_targets).backward()
    without_gradient = [name for name, weight in network.named_parameters() if weight.grad is None]
    assert not without_gradient
    assert all(weight.grad.isfinite().all() for weight in network.parameters())  # type: ignore[union-attr]


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_of_zero_leaves_its_loss_out(datasets: dict[str, Any], name: str) -> None:
    network, batch = make_model(datasets), sample_batch(datasets)
    losses = BertMassLoss(**(ALL | {name: 0.0})).compute_losses(network, batch)
    assert set(losses) == set(NAMES) - {name}


def test_the_total_is_the_weighted_sum_of_the_means(datasets: dict[str, Any]) -> None:
    network, batch = make_model(datasets), sample_batch(datasets)
    weights = dict(zip(NAMES, (1.0, 0.5, 0.25, 2.0, 0.1, 0.3, 0.7)))
    loss = BertMassLoss(**weights)(network, batch)
    assert loss.means is not None
    expected = sum(weight * loss.means[name] for name, weight in weights.items())
    torch.testing.assert_close(loss.total / loss.num_targets, expected)


def test_pred_is_the_first_word_and_seq_the_rest(datasets: dict[str, Any]) -> None:
    network, batch = make_model(datasets), sample_batch(datasets, "copies")
    losses = BertMassLoss().compute_losses(network, batch)
    output = network(batch.inputs)
    assert batch.answers.shape == (4, 4)  # three words and the end
    first = torch.nn.functional.cross_entropy(output.logits[:, 0], batch.answers[:, 0])
    rest = torch.nn.functional.cross_entropy(output.rest_logits.flatten(0, 1), batch.answers[:, 1:].flatten())
    torch.testing.assert_close(losses["pred"].total / losses["pred"].num_targets, first)
    torch.testing.assert_close(losses["seq"].total / losses["seq"].num_targets, rest)


def compute_items(network: SegmentModel, batch: LongBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Return per item: its fact, the controller's logit, and whether it is real."""
    output = network(batch.inputs, probes="written")
    fields_per_probe = [(probe.written.salience_logits, probe.mask) for probe in output.write_probes]
    logits, mask = (torch.cat(tensors, 1) for tensors in zip(*fields_per_probe))
    return compute_unit_facts(output.write_probes, batch.facts, batch.inputs), logits, mask


def test_the_controller_is_taught_the_supporting_facts(datasets: dict[str, Any]) -> None:
    """−log p(u*|s) + β H(u), where u* are the tokens of the marked sentence."""
    network, batch = make_model(datasets), sample_batch(datasets)
    output, is_needed, mask = run_model(network, batch)
    loss = controller_loss(output, is_needed, batch.has_facts, 0.5)
    total = torch.zeros(())
    for segment, probe in enumerate(output.write_probes):
        for row, column in probe.mask.nonzero().tolist():
            logit = probe.written.salience_logits[row, column]
            u = torch.sigmoid(logit)
            is_fact = batch.fact_mask[row, segment, column]
            total = total - (u if is_fact else 1 - u).log() + 0.5 * bernoulli_entropy(logit)
    torch.testing.assert_close(loss.total, total, rtol=1e-4, atol=1e-4)
    assert int(loss.num_targets) == int(mask.sum())


def test_other_sentences_of_a_story_can_be_ignored(datasets: dict[str, Any]) -> None:
    """The next question may be about them; background still has target 0."""
    network, batch = make_model(datasets, "selective", "sentences"), sample_batch(datasets, "several")
    facts, logits, mask = compute_items(network, batch)
    assert int((facts[mask] == NOT_A_FACT).sum()) == 4 * 3  # the question is about one of four keys
    counted = mask & (facts != NOT_A_FACT)
    signed_logits = torch.where(facts >= 0, logits, -logits)
    losses = -torch.nn.functional.logsigmoid(signed_logits) + 0.01 * bernoulli_entropy(logits)
    loss = BertMassLoss(ctrl=1.0, spare=True).compute_losses(network, batch)["ctrl"]
    torch.testing.assert_close(loss.total, losses[counted].sum())
    assert int(loss.num_targets) == int(counted.sum())
    all_items = BertMassLoss(ctrl=1.0).compute_losses(network, batch)["ctrl"]
    torch.testing.assert_close(all_items.total, losses[mask].sum())


def test_sentences_of_the_story_are_ranked_above_the_others(datasets: dict[str, Any]) -> None:
    """A softmax over the items of a document, with the story's sentences as targets."""
    network, batch = make_model(datasets, "selective", "sentences"), sample_batch(datasets, "several")
    facts, logits, mask = compute_items(network, batch)
    total = torch.zeros(())
    for row in range(4):
        probabilities = logits[row][mask[row]].softmax(0)
        in_story = facts[row][mask[row]] != OUTSIDE_STORY
        assert int(in_story.sum()) == 4  # the key of the question, and three others
        total = total - probabilities[in_story].log().mean() - 0.5 * (probabilities * probabilities.log()).sum()
    loss = BertMassLoss(ctrl=1.0, rank=True, beta=0.5).compute_losses(network, batch)["ctrl"]
    torch.testing.assert_close(loss.total, total)
    assert int(loss.num_targets) == 4
    batch = batch._replace(facts=torch.full_like(batch.facts, OUTSIDE_STORY))
    assert int(BertMassLoss(ctrl=1.0, rank=True).compute_losses(network, batch)["ctrl"].num_targets) == 0


def test_without_marked_facts_the_controller_learns_what_was_read_above_average(datasets: dict[str, Any]) -> None:
    network, batch = make_model(datasets, "selective"), sample_batch(datasets)
    output, _, mask = run_model(network, batch)
    was_read = find_read_units(output, mask)
    weight = output.reading.weights.mean((1, 2, 3))
    for row in range(4):
        slot_mask, sources = output.state.mask[row], output.state.sources[row]
        above = slot_mask & (weight[row] > weight[row].sum() / slot_mask.sum())
        assert 0 < int(above.sum()) < int(slot_mask.sum())
        real_items = mask[row].nonzero().flatten()  # the u-th real item has index u
        assert was_read[row].nonzero().flatten().tolist() == real_items[sources[above].sort()[0]].tolist()
    no_facts = torch.zeros_like(batch.has_facts)
    loss = controller_loss(output, torch.zeros_like(was_read), no_facts, 0.0)
    logits = torch.cat([probe.written.salience_logits for probe in output.write_probes], 1)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits[mask], was_read[mask].float())
    torch.testing.assert_close(loss.total / loss.num_targets, expected)
    assert not was_read.requires_grad


def test_the_write_loss_predicts_tokens_and_limits_changes_of_slots(datasets: dict[str, Any]) -> None:
    network, batch = make_model(datasets), sample_batch(datasets)
    output, _, _ = run_model(network, batch)
    without_movement, with_movement = write_loss(output.write_probes, 0.0), write_loss(output.write_probes, 1.0)
    expected, count = torch.zeros(()), 0
    for segment, probe in enumerate(output.write_probes):
        assert probe.targets is not None
        for row, item in (probe.targets[..., 0] != IGNORE).nonzero().tolist():
            word = probe.targets[row, item, 0]
            assert word in batch.inputs.tokens[row, segment]
            expected = expected - probe.logits[row, item].log_softmax(-1)[word]
            count += 1
    torch.testing.assert_close(without_movement.total, expected)
    assert int(without_movement.num_targets) == count
    movement = sum(
        (probe.written.state.slots - probe.state_before.slots).square().sum(-1).mean(1).sum()
        for probe in output.write_probes
    )
    torch.testing.assert_close(with_movement.total - without_movement.total, movement, rtol=1e-4, atol=1e-4)


def test_the_words_of_a_written_token_come_from_memory_alone(datasets: dict[str, Any]) -> None:
    """With empty slots all predictions are equal, whatever the tokens were."""
    network, batch = make_model(datasets).eval(), sample_batch(datasets)
    with torch.no_grad():
        network.memory.value.weight.zero_()
        network.memory.value.bias.zero_()
    logits = network(batch.inputs, probes="read").write_probes[0].logits
    assert (logits - logits[:1, :1]).abs().max() < 1e-5


@pytest.mark.parametrize(("kind", "unit"), [("blended", "tokens"), ("selective", "sentences")])
@pytest.mark.parametrize("chain", [1, 2, 5])
def test_each_hop_learns_to_find_its_fact(datasets: dict[str, Any], kind: str, unit: str, chain: int) -> None:
    """The last of ``chain`` sentences is fact 0; the last hop takes remaining facts."""
    network, batch = make_model(datasets, kind, unit), sample_batch(datasets, "several")
    sentences = batch.inputs.sentence_ids
    assert sentences is not None
    in_first_segment = torch.arange(sentences.shape[1])[:, None] == 0  # of the first segment
    is_fact = in_first_segment & (sentences >= 0) & (sentences < chain)
    batch = batch._replace(facts=torch.where(is_fact, chain - 1 - sentences, -1), max_facts=chain)
    output, _, mask = run_model(network, batch)
    facts = compute_unit_facts(output.write_probes, batch.facts, batch.inputs)
    loss = read_loss(output, facts, batch.has_facts, chain)
    sources, shares = output.state.origins
    total, count = torch.zeros(()), 0
    for row in range(4):
        item_indices = (mask[row].long().cumsum(0) - 1).tolist()
        fact_of = {item: int(fact) for item, fact, is_real in zip(item_indices, facts[row], mask[row]) if is_real}
        last_fact = max(fact_of.values())
        hops = output.reading.weights[row].mean(1)[:, 0]  # k a
        losses = []
        for hop, weights in enumerate(hops):
            target_facts = {min(hop, last_fact)} | (set(range(hop, last_fact + 1)) if hop == len(hops) - 1 else set())
            goal = torch.tensor([
                sum(float(share) for item, share in zip(slot_sources, slot_shares)
                    if fact_of.get(item, -1) in target_facts)
                for slot_sources, slot_shares in zip(sources[row].tolist(), shares[row])
            ])  # fmt: skip
            if goal.sum() > 0:
                losses.append(-(weights @ goal).log())
        if losses:
            total, count = total + torch.stack(losses).mean(), count + 1
    torch.testing.assert_close(loss.total, total, rtol=1e-4, atol=1e-4)
    assert int(loss.num_targets) == count > 0


def test_facts_are_assigned_to_hops() -> None:
    facts = torch.tensor([[0, -1, -1], [1, 0, -1], [2, 1, 0], [-1, -1, -1]])
    assigned = [[hop.nonzero().flatten().tolist() for hop in row] for row in assign_hop_facts(facts, 2, 3)]
    assert assigned == [[[0], [0]], [[0], [1]], [[0], [1, 2]], [[], []]]
    assert assign_hop_facts(facts, 3, 3)[1].nonzero().tolist() == [[0, 0], [1, 1], [2, 1]]


def test_facts_of_sentences_are_those_of_their_tokens(datasets: dict[str, Any]) -> None:
    batch = sample_batch(datasets, "several")
    for unit in ("tokens", "sentences"):
        output = make_model(datasets, "selective", unit)(batch.inputs, probes="written")
        facts = compute_unit_facts(output.write_probes, batch.facts, batch.inputs)
        assert all(
            set(document_facts.tolist()) == {OUTSIDE_STORY, NOT_A_FACT, 0} for document_facts in facts
        )  # the question is about one key
        mask = torch.cat([probe.mask for probe in output.write_probes], 1)
        assert (facts[~mask] == OUTSIDE_STORY).all()
    assert ((facts == 0).sum(1) == 1).all()


def test_without_marked_facts_a_written_item_finds_its_slot(datasets: dict[str, Any]) -> None:
    network, batch = make_model(datasets), sample_batch(datasets, "documents")
    output, _, mask = run_model(network, batch)
    assert not batch.has_facts.any()
    loss = read_loss(output, torch.full_like(mask, -1, dtype=torch.long), batch.has_facts, 0)
    total, count = torch.zeros(()), 0
    for probe in output.write_probes:
        assert probe.slots is not None
        assert probe.reading is not None
        for row, item in (probe.slots >= 0).nonzero().tolist():
            hops = probe.reading.weights[row, :, :, item].mean(1)[:, probe.slots[row, item]]
            total, count = total - hops.log().mean(), count + 1
    torch.testing.assert_close(loss.total, total, rtol=1e-4, atol=1e-4)
    assert int(loss.num_targets) == count > 0


def test_masked_words_and_next_sentences(datasets: dict[str, Any]) -> None:
    network, batch = make_model(datasets), sample_batch(datasets, "documents")
    losses = BertMassLoss(pred=0, seq=0, mlm=1, nsp=1).compute_losses(network, batch)
    inputs, words = BertMassLoss(mlm=1).mask_inputs(batch)
    assert inputs.prediction_mask is not None
    assert not (inputs.prediction_mask & ~inputs.text_mask).any()
    assert torch.equal(batch.inputs.tokens[inputs.prediction_mask], words)
    output = network(inputs)
    mlm_loss = torch.nn.functional.cross_entropy(output.masked_logits, words)
    torch.testing.assert_close(losses["mlm"].total / losses["mlm"].num_targets, mlm_loss)
    nsp_loss = torch.nn.functional.cross_entropy(output.nsp_logits, 1 - batch.next_sentence_labels)
    torch.testing.assert_close(losses["nsp"].total / losses["nsp"].num_targets, nsp_loss)
    repeated, _ = BertMassLoss(mlm=1).mask_inputs(batch)
    assert torch.equal(repeated.tokens, inputs.tokens)


def test_supporting_facts_are_never_masked(datasets: dict[str, Any]) -> None:
    batch = sample_batch(datasets)
    for seed in range(20):
        inputs, _ = BertMassLoss(mlm=1).mask_inputs(batch._replace(mask_seeds=batch.mask_seeds + seed))
        assert inputs.prediction_mask is not None
        assert not (inputs.prediction_mask & batch.fact_mask).any()
        assert torch.equal(inputs.tokens[batch.fact_mask], batch.inputs.tokens[batch.fact_mask])


def test_the_next_token_loss_covers_all_tokens_with_a_successor(datasets: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = {"width": 16, "encode": {"kind": "recurrent"}, "respond": {"kind": "predictor"}}
    model |= {"segments": {}, "memory": {"kind": "blended"}}
    network, batch = build_model(model, datasets["documents"].sizes), sample_batch(datasets, "documents")
    loss = build(OBJECTIVES, {"kind": "segment-next-token"})(network, batch)
    mask = batch.inputs.mask
    assert int(loss.num_targets) == int((mask[..., 1:] & mask[..., :-1]).sum())
    assert float(loss.total.detach() / loss.num_targets) == pytest.approx(6.0, rel=0.5)  # log 400


def test_weights_are_checked() -> None:
    with pytest.raises(ConfigError, match="one of the weights"):
        BertMassLoss(pred=0, seq=0)
    with pytest.raises(ConfigError, match="the weight ctrl is a number from 0 on"):
        BertMassLoss(ctrl=-1)
