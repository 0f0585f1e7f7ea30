"""Measure networks on what other objectives of pre-training than BERT's teach them.

Shapes: b batch, n tokens, m masked positions.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import exp
from typing import Any

import torch
from torch import nn

from mnemic.data.corpora import CorpusDataset
from mnemic.evaluate.curves import roc_auc
from mnemic.models.evaluating import evaluating
from mnemic.objectives import OBJECTIVES
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.denoising import DenoisingLoss
from mnemic.objectives.pretraining.masked import mask_batch
from mnemic.objectives.pretraining.next_subword import shift_tokens
from mnemic.objectives.pretraining.replaced import make_inputs
from mnemic.objectives.pretraining.token_masking import TokenMasking
from mnemic.predict.windows import TOKENS_PER_BATCH
from mnemic.recipe import build, kind_name, select_kinds


@torch.no_grad()
def compute_replaced_token_metrics(network: nn.Module, corpus: CorpusDataset) -> dict[str, float]:
    """Compute how well replaced tokens are told from others, and the generator's masked words.

    ``auc`` is the area under the ROC curve, ``detected`` the share of tokens that are judged
    rightly; ``accuracy`` and ``loss`` are the generator's. Masks and samples are always the same.
    """
    scores, labels = [], []
    sums = torch.zeros(3, dtype=torch.float64, device=corpus.device)
    with evaluating(network):
        for batch in iterate_batches(corpus):
            masked = mask_batch(batch, TokenMasking())
            with autocast(corpus):
                logits = network(make_inputs(batch, masked)).logits
            loss, num_targets = cross_entropy(logits.masked_logits.float(), masked.targets)
            num_correct = (logits.masked_logits.argmax(-1) == masked.targets).sum()
            sums += torch.stack([loss, num_targets, num_correct]).double()
            scores.append(logits.replaced_logits[batch.mask].float().cpu())
            labels.append((logits.tokens != batch.tokens)[batch.mask].cpu())
    all_scores, all_labels = torch.cat(scores), torch.cat(labels)
    total_loss, total_targets, total_correct = sums.tolist()
    return {
        "auc": 100 * roc_auc(all_scores.tolist(), all_labels.tolist()),
        "detected": 100 * float(((all_scores > 0) == all_labels).double().mean()),
        "accuracy": 100 * total_correct / max(total_targets, 1),
        "loss": total_loss / max(total_targets, 1),
    }


@torch.no_grad()
def compute_restored_token_metrics(network: nn.Module, corpus: CorpusDataset) -> dict[str, float]:
    """Compute accuracy and loss on the words behind tokens that a generator replaced.

    Masks and samples are always the same; what a network may copy does not count.
    """
    sums = torch.zeros(3, dtype=torch.float64, device=corpus.device)
    with evaluating(network):
        for batch in iterate_batches(corpus):
            masked = mask_batch(batch, TokenMasking())
            with autocast(corpus):
                logits = network(make_inputs(batch, masked)._replace(scored_positions=masked.inputs.answer_mask)).logits
            words = logits.replaced_logits.word_logits
            loss, num_targets = cross_entropy(words.float(), masked.targets)
            num_correct = (words.argmax(-1) == masked.targets).sum()
            sums += torch.stack([loss, num_targets, num_correct]).double()
    total_loss, total_targets, total_correct = sums.tolist()
    return {"accuracy": 100 * total_correct / max(total_targets, 1), "loss": total_loss / max(total_targets, 1)}


@torch.no_grad()
def compute_next_token_metrics(network: nn.Module, corpus: CorpusDataset) -> dict[str, float]:
    """Compute perplexity, accuracy and loss on the next tokens of sequences."""
    return sum_next_token_losses(network, corpus, shift_tokens)


@torch.no_grad()
def compute_denoising_metrics(network: nn.Module, corpus: CorpusDataset) -> dict[str, float]:
    """Compute perplexity, accuracy and loss on what the decoder says of noisy texts.

    The noises are those that the network learnt to undo, or text infilling, and always the same.
    """
    objective = corpus.denoising or DenoisingLoss()
    return sum_next_token_losses(network, corpus, objective.corrupt)


def attach_noises(dataset: Any, objective: Mapping[str, Any]) -> Any:
    """Return a corpus with the noises of an objective; other data as it is."""
    denoising_kinds = select_kinds(OBJECTIVES, has_noises=True)
    if kind_name(objective) not in denoising_kinds or dataset.metrics != "masked":
        return dataset
    return replace(dataset, denoising=build(denoising_kinds, objective))


def sum_next_token_losses(network: nn.Module, corpus: CorpusDataset, prepare: Callable[[Any], Any]) -> dict[str, float]:
    """Sum the losses of next tokens; ``prepare`` makes inputs and targets of a batch."""
    sums = torch.zeros(3, dtype=torch.float64, device=corpus.device)
    with evaluating(network):
        for batch in iterate_batches(corpus):
            shifted = prepare(batch)
            with autocast(corpus):
                logits = network(shifted.inputs).logits
            loss, num_targets = cross_entropy(logits.float(), shifted.targets)
            sums += torch.stack([loss, num_targets, (logits.argmax(-1) == shifted.targets).sum()]).double()
    total_loss, total_targets, total_correct = sums.tolist()
    mean_loss = total_loss / max(total_targets, 1)
    return {"perplexity": exp(mean_loss), "accuracy": 100 * total_correct / max(total_targets, 1), "loss": mean_loss}


def iterate_batches(corpus: CorpusDataset) -> Iterator[Any]:
    """Yield all sequences, in batches of a bounded number of tokens."""
    rows = torch.arange(len(corpus), device=corpus.device)
    for batch_rows in rows.split(max(TOKENS_PER_BATCH // corpus.max_length, 1)):
        yield corpus.batch(batch_rows, compact=corpus.device.type != "cuda")


def autocast(corpus: CorpusDataset) -> torch.autocast:
    """Return the context of a network's run: on a GPU matrix products are in bfloat16."""
    on_gpu = corpus.device.type == "cuda"
    return torch.autocast(corpus.device.type, torch.bfloat16, enabled=on_gpu)
