"""Measure a network that answers texts with texts: generated texts, and perplexity.

Shapes: b batch, m tokens of an answer, v vocabulary.
"""

from itertools import pairwise
from math import exp

import torch
from torch import nn

from mnemic.data.seq2seq.batches import Seq2SeqDataset
from mnemic.evaluate import metrics
from mnemic.evaluate.text_scores import score_texts
from mnemic.models.evaluating import evaluating
from mnemic.objectives.answer import cross_entropy
from mnemic.predict.generate import generate_candidates
from mnemic.predict.windows import TOKENS_PER_BATCH

NUM_BEAMS = 4  # of beam search, reported next to greedy search
EXACT, EXACT_BEAMS, PERPLEXITY = "exact", f"exact, {NUM_BEAMS} beams", "perplexity"


@torch.no_grad()
def compute_answer_perplexity(network: nn.Module, dataset: Seq2SeqDataset) -> float:
    """Compute the perplexity per token of the right answers, their ends included."""
    sums = torch.zeros(2, dtype=torch.float64, device=dataset.device)
    rows = dataset.lengths.argsort()
    max_length = max(int(dataset.lengths.max()), 1)
    with evaluating(network):
        for batch_rows in rows.split(max(TOKENS_PER_BATCH // max_length, 1)):
            batch = dataset.batch(batch_rows)
            loss, num_targets = cross_entropy(network(batch.inputs).logits.float(), batch.targets)
            sums += torch.stack([loss.double(), num_targets.double()])
    return exp(float(sums[0] / sums[1]))


def generate_texts(network: nn.Module, dataset: Seq2SeqDataset, num_beams: int) -> list[str]:
    """Generate the best text for each source."""
    return [candidates[0][0] for candidates in generate_candidates(network, dataset, num_beams)]


def decode_answers(dataset: Seq2SeqDataset) -> list[str]:
    """Decode the right answers, as a network could generate them."""
    bounds = dataset.answer.offsets.tolist()
    return [dataset.tokenizer.decode(dataset.answer.ids[start:end].tolist()) for start, end in pairwise(bounds)]


def compute_generation_metrics(network: nn.Module, dataset: Seq2SeqDataset) -> dict[str, float]:
    """Compute the exact match of generated texts, by greedy and by beam search, in percent.

    Beside them the perplexity of the right answers, and the ``scores`` that the dataset names, of
    texts by beam search. A dataset whose ``metric`` is the perplexity has it first.
    """
    answers = decode_answers(dataset)
    texts = {num_beams: generate_texts(network, dataset, num_beams) for num_beams in (1, NUM_BEAMS)}
    values = {
        EXACT: 100 * metrics.accuracy(texts[1], answers),
        EXACT_BEAMS: 100 * metrics.accuracy(texts[NUM_BEAMS], answers),
        PERPLEXITY: compute_answer_perplexity(network, dataset),
    }
    values = {dataset.metric: values[dataset.metric]} | values
    return values | score_texts(dataset.scores, texts[NUM_BEAMS], answers)


def select_generation_metric(network: nn.Module, dataset: Seq2SeqDataset) -> dict[str, float]:
    """Compute what selects the best weights in training; the perplexity generates no text."""
    if dataset.metric == PERPLEXITY:
        return {PERPLEXITY: compute_answer_perplexity(network, dataset)}
    return compute_generation_metrics(network, dataset)
