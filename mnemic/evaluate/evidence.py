"""Evaluate evidence: supporting facts among the most-read sentences, and faithfulness.

Supporting facts: is the sentence with the largest read weight one that proves the answer?
Faithfulness: does the answer depend on that sentence? Both measures use only write and read
weights, so they apply to any memory. Faithfulness is measured by ablation: a sentence is removed,
and the answer compared.

Shapes: b batch, n sentences, m questions per story (1), s slots, k hops, h heads.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.data.babi.batches import StoryDataset
from mnemic.evaluate.error_rate import QUESTIONS_PER_BATCH
from mnemic.models import ModelOutput, StoryInputs
from mnemic.models.evaluating import evaluating

MASKED = -1e30  # below every read weight and every uniform number


class AblationResult(NamedTuple):
    """Masks (b) of questions that compare the answer with and without a sentence."""

    is_supporting: Tensor  # the most-read sentence is a supporting fact
    changes_without_most_read: Tensor  # the answer changes without the most-read sentence
    changes_without_random: Tensor  # the answer changes without a random other sentence
    has_other: Tensor  # the memory holds another sentence


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
