"""Evaluate evidence: supporting facts among the most-read sentences, and faithfulness.

Supporting facts: is the sentence with the largest read weight one that proves the answer?
Faithfulness: does the answer depend on that sentence? Both measures use only write and read
weights, so they apply to any memory. Faithfulness is measured by ablation: a sentence is removed,
and the answer compared.

Shapes: b batch, n sentences, m questions per story (1), s slots, k hops, h heads.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.babi.batches import StoryDataset
from mnemic.evaluate.by_task import percent_by_task
from mnemic.evaluate.error_rate import QUESTIONS_PER_BATCH
from mnemic.models import ModelOutput, StoryInputs
from mnemic.models.evaluating import evaluating

MASKED = -1e30  # below every read weight and every uniform number


class Faithfulness(NamedTuple):
    """How often the answer changes if a sentence is removed, in percent per task."""

    most_read: dict[int, float]
    random_other: dict[int, float]  # a random one of the other sentences


class AblationResult(NamedTuple):
    """Masks (b) of questions that compare the answer with and without a sentence."""

    is_supporting: Tensor  # the most-read sentence is a supporting fact
    changes_without_most_read: Tensor  # the answer changes without the most-read sentence
    changes_without_random: Tensor  # the answer changes without a random other sentence
    has_other: Tensor  # the memory holds another sentence


class StoryPrediction(NamedTuple):
    """A batch of questions with a network's output."""

    rows: Tensor  # b, indices of the questions in the dataset
    inputs: StoryInputs
    output: ModelOutput


def measure_supporting_facts(network: nn.Module, dataset: StoryDataset) -> dict[int, float]:
    """Measure how often the most-read sentence is a supporting fact, in percent per task.

    A question counts even if no supporting fact is left in memory.
    """
    hits = []
    for rows, inputs, output in predict_batches(network, dataset):
        sentence_ids = find_most_read(output, inputs.story)  # b 1
        hits.append(dataset.facts[rows].gather(1, sentence_ids).squeeze(1))
    return percent_by_task(torch.cat(hits), dataset.task)


def measure_faithfulness(network: nn.Module, dataset: StoryDataset, generator: torch.Generator) -> Faithfulness:
    """Measure how often the answer changes without the most-read, or a random other, sentence.

    The sentence is removed from the story before it is written. Questions with a single sentence
    in memory are skipped. ``generator`` is on the CPU, whatever the device of the stories.
    """
    ablations = run_ablations(network, dataset, generator)
    task = dataset.task[ablations.has_other]
    percentages = (
        percent_by_task(is_changed[ablations.has_other], task)
        for is_changed in (ablations.changes_without_most_read, ablations.changes_without_random)
    )
    return Faithfulness(*percentages)


@torch.no_grad()
def run_ablations(network: Any, dataset: StoryDataset, generator: torch.Generator) -> AblationResult:
    """Ablate the sentences of all questions; with ``StackedNetworks`` per run: runs q."""
    batches = []
    with evaluating(network):
        for rows in torch.arange(len(dataset), device=dataset.device).split(QUESTIONS_PER_BATCH):
            run_rows = rows if network.num_runs is None else rows.expand(network.num_runs, -1)
            inputs = dataset.batch(run_rows, compact=dataset.device.type != "cuda").inputs
            uniforms = torch.rand(inputs.story.shape[-2:], generator=generator).to(dataset.device)
            arguments = (inputs, dataset.facts[run_rows], uniforms.expand(inputs.story.shape))
            if network.num_runs is None:
                batches.append(ablate_batch(network, *arguments))
            else:
                batches.append(network.map_networks(ablate_batch, *arguments))
    return AblationResult(*(torch.cat(tensors, -1) for tensors in zip(*batches)))


def ablate_batch(network: Any, inputs: StoryInputs, facts: Tensor, uniforms: Tensor) -> AblationResult:
    """Compare a batch's answers with those without the most-read and a random other sentence.

    ``facts`` (b n) is a mask of supporting facts; ``uniforms`` (b n) select the random sentence.
    """
    output = network(inputs)
    most_read_ids = find_most_read(output, inputs.story)  # b 1
    is_other = find_stored_mask(output, inputs.story).scatter(1, most_read_ids, False)  # b n
    random_ids = uniforms.masked_fill(~is_other, MASKED).argmax(1)  # b
    is_changed, is_changed_by_random = (
        predict_answer_ids(output) != predict_answer_ids(network(remove_sentence(inputs, sentence)))
        for sentence in (most_read_ids.squeeze(1), random_ids)
    )
    return AblationResult(facts.gather(1, most_read_ids).squeeze(1), is_changed, is_changed_by_random, is_other.any(1))


def compute_read_weights(output: ModelOutput) -> Tensor:
    """Compute the read weight of each sentence, maximized over hops: b m n.

    Per hop it is the mean over heads of the read weights, times the write weights.
    """
    slot_weights = output.reading.weights.mean(2)  # b k m s
    return (slot_weights @ output.written.weights.unsqueeze(1).mT).amax(1)


def find_most_read(output: ModelOutput, story: Tensor) -> Tensor:
    """Find the sentence in memory with the largest read weight (b m)."""
    return compute_read_weights(output).masked_fill(~find_stored_mask(output, story).unsqueeze(1), MASKED).argmax(2)


def find_stored_mask(output: ModelOutput, story: Tensor) -> Tensor:
    """Return a mask of the sentences that are still in memory (b n)."""
    return (story >= 0) & (output.written.slot_writes != 0).any(2)


def remove_sentence(inputs: StoryInputs, sentence: Tensor) -> StoryInputs:
    """Remove one sentence (b) from each story."""
    return inputs._replace(story=inputs.story.scatter(1, sentence.unsqueeze(1), -1))


def predict_answer_ids(output: ModelOutput) -> Tensor:
    """Return the word ids of the most probable answers (b)."""
    return output.logits.squeeze(1).argmax(1)


@torch.no_grad()
def predict_batches(network: nn.Module, dataset: StoryDataset) -> Iterator[StoryPrediction]:
    """Run a network on all questions, batch by batch, in evaluation mode."""
    with evaluating(network):
        for rows in torch.arange(len(dataset), device=dataset.device).split(QUESTIONS_PER_BATCH):
            inputs = dataset.batch(rows, compact=dataset.device.type != "cuda").inputs
            yield StoryPrediction(rows, inputs, network(inputs))
