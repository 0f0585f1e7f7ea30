"""ERNIE 2: one task per sequence, with a vector in its input and its loss alone.

Shapes: b batch, n tokens.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from chi_square import fits
from huggingface_models import quiet
from pretraining_runs import VOCAB, make_corpus_batch

from mnemic.encode import Pretrained, TransformerEncoder, save_encoder, transformer
from mnemic.models import build_model
from mnemic.objectives.pretraining.masked import PretrainingLoss
from mnemic.objectives.pretraining.tasks import PRETRAINING_TASKS, SequenceTasks, add_task_ids
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError

__all__ = ["quiet"]  # a fixture

WEIGHTS = {"mlm": 1.0, "repeats": 1.0, "nsp": 1.0, "sbo": 0.0}
EMBEDDINGS = {"kind": "sum", "segments": 2, "tasks": 3}


def make_network(embeddings: dict[str, Any] | None = None) -> Any:
    torch.manual_seed(0)
    encode = {"kind": "transformer", "embeddings": EMBEDDINGS if embeddings is None else embeddings}
    respond = {"kind": "masked", "repeats": True, "next_sentence": True}
    model = {"width": 16, "encode": encode, "respond": respond}
    return build_model(model, {"vocab": VOCAB, "max_length": 12}).eval()


def test_tasks_are_drawn_by_their_shares_whatever_is_masked() -> None:
    """χ² over 100,000 sequences, and among those whose first token is masked."""
    shares = {"mlm": 1.0, "repeats": 2.0, "nsp": 3.0}
    seeds = torch.arange(100_000)
    numbers = SequenceTasks(shares, WEIGHTS).draw(seeds)
    probabilities = [1 / 6, 2 / 6, 3 / 6]
    assert fits(torch.bincount(numbers), probabilities)
    is_masked = make_uniforms(seeds, 1, 1)[0, :, 0] < 0.15
    assert fits(torch.bincount(numbers[is_masked]), probabilities)


@pytest.mark.parametrize("kind", ["sum", "factorised"])
def test_the_vector_of_a_task_is_added_to_all_tokens(kind: str) -> None:
    """Padded, packed or without a number, which is the first task's."""
    embeddings = EMBEDDINGS if kind == "sum" else {"kind": kind, "embedding_width": 8, "embeddings": EMBEDDINGS}
    torch.manual_seed(0)
    encoder = TransformerEncoder(16, VOCAB, embeddings=embeddings)
    batch = make_corpus_batch([1, 0, 1])
    table = encoder.embeddings.tasks
    assert encoder.num_tasks == 3
    with torch.no_grad():
        for number in range(3):
            ids = torch.full_like(batch.tokens, number)
            states = encoder(batch.tokens, batch.mask, segments=batch.segments, task_ids=ids)
            first = table[0].clone()
            table[0] = table[number]
            torch.testing.assert_close(encoder(batch.tokens, batch.mask, segments=batch.segments), states)
            table[0] = first
        mixed = torch.arange(3).unsqueeze(1).expand_as(batch.tokens)
        together = encoder(batch.tokens, batch.mask, segments=batch.segments, task_ids=mixed)
        torch.testing.assert_close(together[2], states[2])
        assert not torch.allclose(together[0], states[0])


@torch.no_grad()
def test_tasks_are_packed_to_a_fixed_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, whose batches are one row without padding."""
    network, batch = make_network(), make_corpus_batch([1, 0, 1])
    tasks = torch.arange(3).unsqueeze(1).expand_as(batch.tokens)
    padded = batch.mask.unsqueeze(1) & batch.mask.unsqueeze(2)  # b n n, which is not packed
    expected = network.encode(batch.tokens, padded, segments=batch.segments, task_ids=tasks)
    torch.testing.assert_close(
        network.encode(batch.tokens, batch.mask, segments=batch.segments, task_ids=tasks), expected
    )
    monkeypatch.setattr(transformer, "has_varlen_kernel", lambda device, dropout: True)
    packed = network.encode(batch.tokens, batch.mask, segments=batch.segments, task_ids=tasks, max_tokens=33)
    torch.testing.assert_close(packed, expected)


def test_each_sequence_has_the_loss_of_masks_and_of_its_own_task() -> None:
    """The whole is the sum over sequences by themselves, each with one task."""
    network, batch = make_network(), make_corpus_batch([1, 0, 1, 0, 1, 0])
    shares = {"mlm": 1, "repeats": 1, "nsp": 1}
    objective = PretrainingLoss(nsp=1.0, repeats=2.0, tasks=shares, network=network)
    numbers = SequenceTasks(shares, WEIGHTS).draw(batch.mask_seeds).tolist()
    assert {*numbers} == {0, 1, 2}
    rows = ("tokens", "mask", "segments", "word_starts", "unmaskable", "next_sentence_labels", "mask_seeds")
    total, num_targets = torch.zeros(()), 0
    for row, number in enumerate(numbers):
        single = batch._replace(**{name: getattr(batch, name)[row : row + 1] for name in rows})
        name = PRETRAINING_TASKS[number]
        weights = {"nsp": 0.0, "repeats": 0.0} | ({} if name == "mlm" else {name: 2.0 if name == "repeats" else 1.0})
        loss = PretrainingLoss(**weights, tasks={name: 1}, network=network)(network, single)
        total, num_targets = total + loss.total, num_targets + int(loss.num_targets)
    whole = objective(network, batch)
    torch.testing.assert_close(whole.total, total)
    assert whole.num_targets == num_targets


def test_every_weight_learns() -> None:
    """Also the vectors, each from the sequences of its task."""
    network, batch = make_network(), make_corpus_batch([1, 0] * 10)
    PretrainingLoss(nsp=1.0, repeats=1.0, tasks={"mlm": 1, "nsp": 1, "repeats": 1})(network, batch).total.backward()
    assert not [name for name, weight in network.named_parameters() if weight.grad is None]
    assert (network.encode.embeddings.tasks.grad.abs().sum(1) > 0).all()


@torch.no_grad()
@pytest.mark.parametrize("segments", [0, 2])
def test_an_exported_encoder_has_the_vector_of_masks(segments: int, tmp_path: Path) -> None:
    from transformers import AutoModel

    torch.manual_seed(0)
    encoder = TransformerEncoder(16, VOCAB, embeddings=EMBEDDINGS | {"segments": segments, "epsilon": 1e-5})
    encoder.embeddings.tasks.mul_(5)
    save_encoder(tmp_path / "bert", Pretrained(encoder))
    batch = make_corpus_batch([1, 0])
    kwargs = {"token_type_ids": batch.segments} if segments else {}
    theirs = AutoModel.from_pretrained(tmp_path / "bert").eval()
    expected = theirs(input_ids=batch.tokens, attention_mask=batch.mask.long(), **kwargs).last_hidden_state
    states = encoder(batch.tokens, batch.mask, segments=batch.segments if segments else None)
    torch.testing.assert_close(states[batch.mask], expected[batch.mask], atol=1e-4, rtol=0)
    with pytest.raises(ValueError, match="distilbert has no segments"):
        save_encoder(tmp_path / "distil", Pretrained(encoder, family="distilbert"))


def test_mistakes_are_named() -> None:
    network, plain = make_network(), make_network({"kind": "sum", "segments": 2})
    with pytest.raises(ConfigError, match=r"objective\.tasks has no 'order'; it has mlm, repeats, nsp"):
        PretrainingLoss(tasks={"order": 1})
    with pytest.raises(ConfigError, match=r"objective\.nsp is 0\.0, and its share of objective\.tasks 1"):
        PretrainingLoss(tasks={"mlm": 1, "nsp": 1})
    with pytest.raises(ConfigError, match=r"objective\.repeats is 1\.0, and its share of objective\.tasks 0"):
        PretrainingLoss(repeats=1.0, tasks={"mlm": 1})
    with pytest.raises(ConfigError, match=r"set model\.encode\.embeddings\.tasks=3"):
        PretrainingLoss(tasks={"mlm": 1}, network=plain)
    with pytest.raises(ConfigError, match=r"vectors that no sequence has: set objective\.tasks"):
        PretrainingLoss(network=network)
    with pytest.raises(ConfigError, match="shares from 0 on, one of them above 0"):
        PretrainingLoss(tasks={"mlm": 0})
    inputs = add_task_ids(network.dummy_inputs({"max_length": 5}), 2)
    assert (inputs.task_ids == 2).all()
    assert inputs.task_ids.shape == inputs.tokens.shape
