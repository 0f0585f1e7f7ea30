"""ERNIE 2: which tokens are in both texts of a pair, and tasks that come in one after another."""

from pathlib import Path
from typing import Any

import pytest
import torch
from pretraining_runs import VOCAB, load_sequences, load_tiny_recipe, make_corpus_batch
from torch import Tensor

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.models import build_model
from mnemic.objectives.pretraining.masked import PretrainingLoss
from mnemic.objectives.pretraining.repeats import find_repeated_tokens
from mnemic.recipe import ConfigError
from mnemic.train.run import fit

MODEL = {
    "width": 16,
    "encode": {"kind": "transformer", "embeddings": {"kind": "sum", "segments": 2}},
    "respond": {"kind": "masked", "repeats": True, "next_sentence": True},
}


def make_network(**respond: Any) -> Any:
    torch.manual_seed(0)
    return build_model(MODEL | {"respond": MODEL["respond"] | respond}, {"vocab": VOCAB, "max_length": 12}).eval()


def test_repeated_tokens_by_hand() -> None:
    """[CLS] 5 6 [SEP] 6 7 7 [SEP]: 6 is in both texts; [SEP] is, too, and not asked."""
    tokens = torch.tensor([[2, 5, 6, 3, 6, 7, 7, 3]])
    segments = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1]])
    marked = find_repeated_tokens(tokens, segments, tokens < 5)
    assert marked.nonzero()[:, 1].tolist() == [2, 4]


def test_labels_are_by_text_alone_and_the_loss_is_that_of_a_loop() -> None:
    """Masks change the input, never a label; a row of one text is not asked."""
    batch = make_corpus_batch([1, 0, 1, 1])  # the last one is too short for two texts
    batch = batch._replace(segments=batch.segments.clone())
    batch.segments[1] = 0  # one text
    network, objective = make_network(), PretrainingLoss(repeats=2.0)
    outputs: list[Any] = []
    hook = network.register_forward_hook(lambda module, inputs, output: outputs.append((inputs[0], output)))
    loss = objective(network, batch)
    plain = PretrainingLoss()(network, batch)
    hook.remove()
    ((inputs, output), _) = outputs
    assert not torch.equal(inputs.tokens, batch.tokens)  # some are masked
    total = torch.zeros(())
    for row in (0, 2):
        texts = [
            {int(token) for token in batch.tokens[row][(batch.segments[row] == segment) & ~batch.unmaskable[row]]}
            for segment in (0, 1)
        ]
        for column in (~batch.unmaskable[row]).nonzero().squeeze(1).tolist():
            is_repeated = int(batch.tokens[row, column]) in texts[1 - int(batch.segments[row, column])]
            probability = output.logits.repeat_logits[row, column].sigmoid()
            total = total - (probability if is_repeated else 1 - probability).log()
    torch.testing.assert_close(loss.total - plain.total, 2.0 * 0.15 * total, rtol=1e-4, atol=1e-4)
    assert loss.num_targets == plain.num_targets


def test_a_network_without_the_head_is_a_clear_mistake() -> None:
    with pytest.raises(ConfigError, match=r"model\.respond\.repeats=true"):
        PretrainingLoss(repeats=1.0)(make_network(repeats=False), make_corpus_batch([1]))
    with pytest.raises(ConfigError, match=r"objective\.mlm is above 0"):
        PretrainingLoss(mlm=0.0, repeats=1.0)


def measure(folder: Path, validation: Any) -> dict[str, float]:
    """Measure all three tasks of a network on held-out pairs."""
    network: Any = load_checkpoint(folder).network.eval()
    batch = validation.batch(torch.arange(len(validation)))
    inputs = PretrainingLoss(repeats=1.0, tasks={"repeats": 1})
    logits: list[Tensor] = []
    hook = network.register_forward_hook(lambda module, arguments, output: logits.append(output.logits.repeat_logits))
    with torch.no_grad():
        inputs(network, batch)
    hook.remove()
    labels = find_repeated_tokens(batch.tokens, batch.segments, batch.unmaskable)[~batch.unmaskable]
    right = (logits[0][~batch.unmaskable] > 0) == labels
    baseline = max(float(labels.double().mean()), 1 - float(labels.double().mean()))
    metrics = compute_metrics(network, validation)
    return {**metrics, "repeats": float(right.double().mean()), "repeats, always the same": baseline}


def test_a_new_task_leaves_what_was_learned(tmp_path: Path) -> None:
    """After each phase its task is learned, and earlier ones are no worse."""
    settings = ("epochs=1000", "steps=70", "log=70", "save=70")  # measured when it has saved
    steps = [f"phases.{number}.train.{key}" for number in range(3) for key in settings]
    recipe = load_tiny_recipe("ernie2-pretrain", *steps, "model.encode.stack.depth=1")
    data = {name: recipe["data"][name] for name in ("format", "folder", "words")}
    _, validation = load_sequences(**data)
    steps_of_phases = fit(recipe, tmp_path / "run", device="cpu")
    results = [measure(tmp_path / "run", validation) for report in steps_of_phases if report.step == 70]
    assert len(results) == 3
    losses = [result["loss"] for result in results]
    assert losses[1] < losses[0] + 0.02
    assert losses[2] < losses[1] + 0.02
    assert results[0]["repeats"] < results[1]["repeats"]
    for result in results[1:]:
        assert result["repeats"] > result["repeats, always the same"] + 0.05
