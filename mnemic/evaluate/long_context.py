"""Compute error rates on long documents, which a network reads segment by segment.

An answer is correct if greedy decoding gives all its words. That is so if each word is the most
probable after the correct previous words, so all words are scored in one pass. A supporting
sentence is found if it fills at least half of the slot with the largest read weight.

Shapes: b documents, w words of an answer, a slots.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.long_context.batches import TOKEN_TARGETS, LongBatch, LongDataset
from mnemic.evaluate.by_task import percent_by_task
from mnemic.models.contract import unwrap_network
from mnemic.models.evaluating import evaluating
from mnemic.models.inputs import IGNORE, SegmentBatch, SegmentOutput
from mnemic.objectives.bert_mass import BertMassLoss, compute_fact_shares, compute_unit_facts, select_next_tokens

TOKENS_PER_BATCH = 65_536  # changes memory use, not results


def compute_recall_errors(network: nn.Module, dataset: LongDataset) -> dict[int, float]:
    """Compute the error of each task in percent; task 0 is masked or next words."""
    rows = range(len(dataset))
    batch_size = max(TOKENS_PER_BATCH // (dataset.length * (dataset.segments + 1)), 1)
    if dataset.target in TOKEN_TARGETS:
        return {0: compute_word_error(network, dataset, batch_size)}
    find_wrong = find_wrong_answers if dataset.target == "question" else find_missed_facts
    wrong_batches = [
        find_wrong(network, dataset, rows[first : first + batch_size]) for first in range(0, len(rows), batch_size)
    ]
    return percent_by_task(torch.cat(wrong_batches), dataset.task)


def find_wrong_answers(
    network: nn.Module, dataset: LongDataset, rows: Sequence[int], segments_per_batch: int = 64
) -> Tensor:
    """Return a mask of documents (b) answered wrongly; documents may have any length."""
    return find_wrong_answers_per_network([network], dataset, rows, segments_per_batch)[0]


@torch.no_grad()
def find_wrong_answers_per_network(
    networks: Sequence[nn.Module], dataset: LongDataset, rows: Sequence[int], segments_per_batch: int = 64
) -> list[Tensor]:
    """Apply ``find_wrong_answers`` to several networks; documents are generated only once."""
    models = [unwrap_network(network) for network in networks]
    states: list[Any] = [None] * len(networks)
    with evaluating(*networks):
        for batch in dataset.stream(rows, segments_per_batch):
            for index, model in enumerate(models):
                encoded = model.encode_segments(batch.inputs)
                if states[index] is None:
                    states[index] = model.empty_memory(len(rows), encoded.items[:, 0])
                states[index], _, _ = model.write_segments(states[index], encoded)
        outputs = [model.answer_question(state, batch.inputs) for model, state in zip(models, states)]
    return [~find_correct_answers(output, batch.answers).cpu() for output in outputs]


@torch.no_grad()
def find_missed_facts(network: nn.Module, dataset: LongDataset, rows: Sequence[int]) -> Tensor:
    """Return a mask of questions (b) whose most-read slot misses the supporting sentence."""
    with evaluating(network):
        batch = dataset.batch(torch.tensor(rows))
        output = network(batch.inputs, probes="written")
        facts = compute_unit_facts(output.write_probes, batch.facts, batch.inputs)
        mask = torch.cat([probe.mask for probe in output.write_probes], 1)
        gold = compute_fact_shares(output, facts, mask, batch.max_facts).sum(-1)  # b a
        best = output.reading.weights.mean((1, 2, 3)).argmax(-1, keepdim=True)  # b 1
    return (gold.gather(1, best) < 0.5).squeeze(1).cpu()


def find_correct_answers(output: SegmentOutput, answers: Tensor) -> Tensor:
    """Return a mask of answers (b) whose words are all the most probable ones."""
    predictions = torch.cat([output.logits, output.rest_logits], 1).argmax(-1)  # b w
    return ((predictions == answers) | (answers == IGNORE)).all(1)


@torch.no_grad()
def compute_word_error(network: nn.Module, dataset: LongDataset, batch_size: int) -> float:
    """Compute the percentage of target words that are not the most probable ones."""
    with evaluating(network):
        num_wrong = num_words = 0
        for batch in iterate_batches(dataset, batch_size):
            inputs, targets = select_target_words(batch, dataset)
            predictions = network(inputs).masked_logits.argmax(-1)
            num_wrong, num_words = (num_wrong + int((predictions != targets).sum()), num_words + len(targets))
    return 100 * num_wrong / max(num_words, 1)


def select_target_words(batch: LongBatch, dataset: LongDataset) -> tuple[SegmentBatch, Tensor]:
    """Return a network's inputs and their target words: next words, or masked ones."""
    return select_next_tokens(batch) if dataset.target == "next" else BertMassLoss(mlm=1.0).mask_inputs(batch)


def iterate_batches(dataset: LongDataset, batch_size: int) -> Iterator[LongBatch]:
    """Iterate over a dataset in batches of ``batch_size`` documents."""
    for rows in torch.arange(len(dataset)).split(batch_size):
        yield dataset.batch(rows)
