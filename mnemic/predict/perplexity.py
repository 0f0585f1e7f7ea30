"""Compute the perplexity of language models per word.

Perplexity is e to the mean cross-entropy of the target words. Three metrics show how words outside
the vocabulary are counted:

    perplexity     all words; words outside the vocabulary are one word, "unknown"
    known words    only words of the vocabulary are targets; the input is the same
    unknown %      percentage of words outside the vocabulary

Of a network with two directions they are means over both: ``forward`` is the perplexity of next
words, which compares with that of other language models, and ``backward`` that of previous words,
where words that two spans have count twice.

Perplexities are comparable only with the same vocabulary on the same words.
"""

from math import exp
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.language_modeling.batches import TokenDataset
from mnemic.models import IGNORE
from mnemic.models.evaluating import evaluating
from mnemic.objectives.both_directions import find_previous
from mnemic.objectives.unigram import count_targets, unigram_loss
from mnemic.recipe import ConfigError

WORDS_PER_BATCH = 4096  # changes memory use, not results

Metrics = dict[str, float]


@torch.no_grad()
def compute_word_losses(network: nn.Module, dataset: TokenDataset) -> tuple[Tensor, Tensor]:
    """Compute each target word's cross-entropy in nats; return losses and word ids (t).

    A network with a memory reads a stream span by span, and carries its states from each to the
    next; ``network.encode.memory_length`` may be another than in training.
    """
    encode: Any = network.encode
    goes_on = dataset.is_stream and encode.memory_length > 0
    rows_per_batch = 1 if goes_on else max(WORDS_PER_BATCH // dataset.max_tokens, 1)
    context = None  # of the spans before
    with evaluating(network):
        loss_batches, target_batches = [torch.zeros(0)], [torch.zeros(0, dtype=torch.long)]
        row_ids = torch.arange(len(dataset), device=dataset.device)
        for batch_rows in row_ids.split(rows_per_batch):
            batch = dataset.batch(batch_rows)
            if goes_on:
                states, context = encode.encode_segment(batch.inputs.tokens, batch.inputs.mask, context)
            else:
                states = encode(batch.inputs.tokens, batch.inputs.mask)
            is_target = batch.targets != IGNORE  # b n; context is not scored
            logits = network.respond(None, None, states[is_target], is_target)  # type: ignore[operator]
            targets = batch.targets[is_target]
            loss = nn.functional.cross_entropy(logits.float(), targets, reduction="none")
            loss_batches.append(loss.cpu())
            target_batches.append(targets.cpu())
    return torch.cat(loss_batches), torch.cat(target_batches)


@torch.no_grad()
def compute_direction_losses(network: Any, dataset: TokenDataset) -> list[tuple[Tensor, Tensor]]:
    """Compute losses and word ids (t) of next words, then those of previous words."""
    losses: list[list[tuple[Tensor, Tensor]]] = [[], []]
    with evaluating(network):
        rows = torch.arange(len(dataset), device=dataset.device)
        for batch_rows in rows.split(max(WORDS_PER_BATCH // dataset.max_tokens, 1)):
            batch = dataset.batch(batch_rows)
            logits = network(batch.inputs).logits.float()  # b n 2 v
            for number, targets in enumerate((batch.targets, find_previous(batch.inputs))):
                is_target = targets != IGNORE
                direction_logits, target_ids = logits[:, :, number][is_target], targets[is_target]
                loss = nn.functional.cross_entropy(direction_logits, target_ids, reduction="none")
                losses[number].append((loss.cpu(), target_ids.cpu()))
    return [(torch.cat(values), torch.cat(ids)) for values, ids in (zip(*batches) for batches in losses)]


def compute_perplexity(network: nn.Module, dataset: TokenDataset) -> Metrics:
    """Compute the perplexity with and without unknown words, and the percentage of those."""
    if not len(dataset):
        raise ConfigError("there are no words to evaluate on")
    if network.respond.replaces == "next-token":  # type: ignore[union-attr]
        directions = compute_direction_losses(network, dataset)
        loss, targets = (torch.cat(tensors) for tensors in zip(*directions))
        metrics = summarize_losses(loss.double(), targets == dataset.unknown_id)
        perplexities = [exp(float(losses.double().mean())) for losses, _ in directions]
        return metrics | dict(zip(("forward", "backward"), perplexities))
    loss, targets = compute_word_losses(network, dataset)
    return summarize_losses(loss.double(), targets == dataset.unknown_id)


def summarize_losses(losses: Tensor, is_unknown: Tensor) -> Metrics:
    """Summarize the losses of words (t) as perplexities; ``is_unknown`` is a mask (t)."""
    return {
        "perplexity": exp(float(losses.mean())),
        "known words": exp(float(losses[~is_unknown].mean())) if not is_unknown.all() else float("nan"),
        "unknown %": 100 * float(is_unknown.double().mean()),
    }


def compute_unigram_perplexity(train_dataset: TokenDataset, dataset: TokenDataset, vocab_size: int) -> Metrics:
    """Compute the metrics of ``compute_perplexity`` for a unigram model of the training words."""
    train_counts, target_counts = (
        count_targets(split.ids[1:].long(), vocab_size) for split in (train_dataset, dataset)
    )
    known_counts = target_counts.clone()
    known_counts[dataset.unknown_id] = 0
    return {
        "perplexity": exp(unigram_loss(train_counts, target_counts)),
        "known words": exp(unigram_loss(train_counts, known_counts)),
        "unknown %": 100 * float(target_counts[dataset.unknown_id] / target_counts.sum()),
    }
