"""BERT's pre-training objective: masked language modeling and next-sentence prediction.

Shapes: b batch, n tokens, m masked positions, v vocabulary.
"""

from collections.abc import Mapping
from math import ceil, inf, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.packed import find_true_positions
from mnemic.models import IGNORE, WindowBatch
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.pretraining.masking import MASKINGS, NUM_UNIFORMS, TokenMasking, mask_tokens
from mnemic.objectives.pretraining.views import SequenceViews, keep_both_ways
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError, build
from mnemic.respond.pretraining.masked import PretrainingLogits

TOKEN_MASKING: Mapping[str, Any] = {"kind": "tokens"}
NO_VIEWS: Mapping[str, Any] = {}
# Buffers are long enough for this many √mean more masked positions than the mean.
MAX_DEVIATIONS = 10


class MaskedBatch(NamedTuple):
    """A batch after masking: inputs, and targets at the masked positions alone."""

    inputs: WindowBatch  # with the masked positions in the flattened batch, m
    targets: Tensor  # m; IGNORE where the buffer is longer than needed


class PretrainingLoss:
    """The weighted sum of the losses ``mlm`` and ``nsp`` (Devlin et al. 2019).

    They are the mean losses of masked tokens and of next-sentence prediction. A loss of weight 0
    is left out, and the network need not compute its logits. Each pair is weighted by its expected
    number of masked tokens, so that the sums over parts of a batch, or over processes, add up to
    the sum of the whole. Where we differ from BERT: long pairs count more.

    ``views`` are the shares of sequences whose tokens see all others or only some, as in
    ``SequenceViews``; without them all see all.
    """

    def __init__(
        self,
        *,
        mlm: float = 1.0,
        nsp: float = 0.0,
        masking: Mapping[str, Any] = TOKEN_MASKING,
        views: Mapping[str, Any] = NO_VIEWS,
        network: nn.Module | None = None,
    ) -> None:
        self.weights = {"mlm": mlm, "nsp": nsp}
        check_weights(self.weights)
        self.masking = build(MASKINGS, masking)
        self.views = SequenceViews(views, network) if views else None

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        masked = mask_batch(batch, self.masking)
        if self.views is not None:
            view_numbers = self.views.draw(batch.mask_seeds)
            masked = masked._replace(inputs=self.views.apply(masked.inputs, view_numbers))
            labels = keep_both_ways(batch.next_sentence_labels, view_numbers)
            batch = batch._replace(next_sentence_labels=labels)
        predictions = network(masked.inputs).logits
        mlm, nsp = self.weights["mlm"], self.weights["nsp"]
        if not mlm:
            nsp_losses = next_sentence_losses(predictions.nsp_logits, batch.next_sentence_labels)  # b
            return Loss(nsp * nsp_losses.sum(), (batch.next_sentence_labels != IGNORE).sum(), carried)
        total, num_targets, *_ = masked_token_loss(predictions, masked)
        total = mlm * total
        if nsp:
            nsp_losses = next_sentence_losses(predictions.nsp_logits, batch.next_sentence_labels)  # b
            mean_masked = self.masking.rate * (~batch.unmaskable).sum(1)  # b
            total = total + nsp * (mean_masked * nsp_losses).sum()
        return Loss(total, num_targets, carried)


def mask_batch(batch: Any, masking: TokenMasking) -> MaskedBatch:
    """Mask tokens of a batch, with random numbers that depend on its keys alone."""
    uniforms = make_uniforms(batch.mask_seeds, batch.tokens.shape[1], NUM_UNIFORMS)  # r b n
    mask = masking(batch.unmaskable, batch.word_starts, uniforms[0])
    inputs, targets = mask_tokens(
        batch.tokens, mask, uniforms[1:], mask_id=batch.mask_id, random_ids=batch.ordinary_ids
    )
    if batch.max_tokens:
        mean_count = masking.rate * batch.max_tokens
        max_count = ceil(mean_count + MAX_DEVIATIONS * sqrt(mean_count))
        positions = find_true_positions(mask, min(max_count, batch.max_tokens))
    else:
        positions = mask.flatten().nonzero().squeeze(1)
    padded_targets = torch.cat([targets.flatten(), targets.new_full((1,), IGNORE)])
    windows = WindowBatch(inputs, batch.mask, batch.segments, positions, batch.max_tokens)
    return MaskedBatch(windows, padded_targets[positions])


def masked_token_loss(predictions: PretrainingLogits, masked: MaskedBatch) -> Loss:
    """Cross-entropy of the original tokens at the masked positions."""
    return Loss(*cross_entropy(predictions.masked_logits.float(), masked.targets))


def next_sentence_losses(logits: Tensor | None, follows: Tensor) -> Tensor:
    """Cross-entropy of next-sentence prediction per pair; 0 where ``follows`` is IGNORE.

    ``logits`` b 2, ``follows`` b → b. The first logit is that of a text that follows, as in every
    published BERT.
    """
    if logits is None:
        raise ConfigError(
            "objective.nsp is above 0, but the network predicts no next sentence: set "
            "model.respond.next_sentence=true and a format of pairs, or objective.nsp=0"
        )
    target = (1 - follows).clamp(0, 1)  # any class for IGNORE, which does not count
    losses = -logits.float().log_softmax(-1).gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return losses * (follows != IGNORE)


def check_weights(weights: Mapping[str, float]) -> None:
    """Raise an error if a loss weight is negative or infinite, or all are 0."""
    for name, weight in weights.items():
        if not 0 <= weight < inf:
            raise ConfigError(f"the weight {name} is a number from 0 on, not {weight}")
    if not any(weights.values()):
        raise ConfigError(f"one of the weights {', '.join(weights)} has to be above 0")
