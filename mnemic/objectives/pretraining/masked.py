"""BERT's pre-training objective, with SpanBERT's span boundaries and ERNIE 2's repeated tokens.

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
from mnemic.objectives.pretraining.masking import (
    BERT_SHARES,
    MASKINGS,
    MaskedRows,
    ReplacementShares,
    find_run_starts,
    mask_rows,
)
from mnemic.objectives.pretraining.repeats import sum_repeat_losses
from mnemic.objectives.pretraining.tasks import SequenceTasks, add_task_ids, hide_other_texts, keep_task
from mnemic.objectives.pretraining.token_masking import TokenMasking
from mnemic.objectives.pretraining.views import SequenceViews, keep_both_ways
from mnemic.recipe import ConfigError, build
from mnemic.respond.pretraining.masked import PretrainingLogits
from mnemic.respond.pretraining.span_boundary import MAX_OFFSETS

TOKEN_MASKING: Mapping[str, Any] = {"kind": "tokens"}
NO_SHARES: Mapping[str, float] = {}
# Buffers are long enough for this many √mean more masked positions than the mean.
MAX_DEVIATIONS = 10


class MaskedBatch(NamedTuple):
    """A batch after masking: inputs, and targets at the masked positions alone."""

    inputs: WindowBatch  # with the masked positions in the flattened batch, m
    targets: Tensor  # m; IGNORE where the buffer is longer than needed


class PretrainingLoss:
    """The weighted sum of the losses ``mlm``, ``nsp``, ``sbo`` and ``repeats``.

    They are the mean losses of masked tokens, of next-sentence prediction (Devlin et al. 2019), of
    masked tokens predicted from the ends of their spans (Joshi et al. 2020, section 3.2), and of
    whether each token is in the other text of its pair, too (Sun et al. 2020, ERNIE 2, section
    4.2). A loss of weight 0 is left out, and the network need not compute its logits. Each pair is
    weighted by its expected number of masked tokens, so that the sums over parts of a batch, or
    over processes, add up to the sum of the whole. Where we differ from BERT: long pairs count
    more. From ERNIE 2: a document is the pair. From SpanBERT: the sum
    of ``sbo`` is divided by the number of all masked tokens, also of those at a text's ends, which
    have no such loss.

    ``views`` are the shares of sequences whose tokens see all others or only some, as in
    ``SequenceViews``; without them all see all. ``tasks`` are the shares of sequences that learn
    each task, as in ``SequenceTasks``; without them each sequence learns all.
    """

    def __init__(
        self,
        *,
        mlm: float = 1.0,
        nsp: float = 0.0,
        sbo: float = 0.0,
        repeats: float = 0.0,
        masking: Mapping[str, Any] = TOKEN_MASKING,
        views: Mapping[str, float] = NO_SHARES,
        tasks: Mapping[str, float] = NO_SHARES,
        network: nn.Module | None = None,
    ) -> None:
        self.weights = {"mlm": mlm, "nsp": nsp, "sbo": sbo, "repeats": repeats}
        check_weights(self.weights)
        if (sbo or repeats) and not mlm:
            raise ConfigError("objective.sbo and repeats go with masked tokens: objective.mlm is above 0, too")
        self.masking = build(MASKINGS, masking)
        self.views = SequenceViews(views, network) if views else None
        self.tasks = SequenceTasks(tasks, self.weights, network) if tasks else None
        num_tasks: int = 0 if network is None else getattr(network.encode, "num_tasks", 0)
        if num_tasks and not tasks:
            raise ConfigError(
                "model.encode.embeddings.tasks are vectors that no sequence has: set objective.tasks, or leave them out"
            )

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        mlm, nsp, sbo, repeats = self.weights.values()
        masked = mask_batch(batch, self.masking, with_span_ends=sbo > 0)
        if self.views is not None:
            view_numbers = self.views.draw(batch.mask_seeds)
            masked = masked._replace(inputs=self.views.apply(masked.inputs, view_numbers))
            labels = keep_both_ways(batch.next_sentence_labels, view_numbers)
            batch = batch._replace(next_sentence_labels=labels)
        repeat_batch = batch
        if self.tasks is not None:
            task_numbers = self.tasks.draw(batch.mask_seeds)
            masked = masked._replace(inputs=add_task_ids(masked.inputs, task_numbers))
            batch, repeat_batch = keep_task(batch, task_numbers), hide_other_texts(batch, task_numbers)
        predictions = network(masked.inputs).logits
        if not mlm:
            nsp_losses = next_sentence_losses(predictions.nsp_logits, batch.next_sentence_labels)  # b
            return Loss(nsp * nsp_losses.sum(), (batch.next_sentence_labels != IGNORE).sum(), carried)
        total, num_targets, *_ = masked_token_loss(predictions, masked)
        total = mlm * total
        if sbo:
            total = total + sbo * span_boundary_loss(predictions, masked).total
        if nsp:
            nsp_losses = next_sentence_losses(predictions.nsp_logits, batch.next_sentence_labels)  # b
            mean_masked = self.masking.rate * (~batch.unmaskable).sum(1)  # b
            total = total + nsp * (mean_masked * nsp_losses).sum()
        if repeats:
            total = total + repeats * sum_repeat_losses(predictions.repeat_logits, repeat_batch, self.masking.rate)
        return Loss(total, num_targets, carried)


def mask_batch(
    batch: Any, masking: TokenMasking, *, with_span_ends: bool = False, shares: ReplacementShares = BERT_SHARES
) -> MaskedBatch:
    """Mask tokens of a batch, with random numbers that depend on its keys alone."""
    rows = mask_rows(
        masking, batch.tokens, batch.unmaskable, batch.word_starts, batch.mask_seeds,
        mask_id=batch.mask_id, random_ids=batch.ordinary_ids, shares=shares,
    )  # fmt: skip
    if batch.max_tokens:
        mean_count = masking.rate * batch.max_tokens
        max_count = ceil(mean_count + MAX_DEVIATIONS * sqrt(mean_count))
        positions = find_true_positions(rows.mask, min(max_count, batch.max_tokens))
    else:
        positions = rows.mask.flatten().nonzero().squeeze(1)
    windows = WindowBatch(rows.inputs, batch.mask, batch.segments, positions, batch.max_tokens)
    if with_span_ends:
        windows = windows._replace(span_ends=find_span_ends(rows, batch.unmaskable, positions))
    padded_targets = torch.cat([rows.targets.flatten(), rows.targets.new_full((1,), IGNORE)])
    return MaskedBatch(windows, padded_targets[positions])


def gather_flat(values: Tensor, positions: Tensor) -> Tensor:
    """Gather values (b n) at flattened ``positions`` (m); beyond them, the last one."""
    return values.flatten()[positions.clamp(max=values.numel() - 1)]


def find_span_ends(rows: MaskedRows, unmaskable: Tensor, positions: Tensor) -> Tensor:
    """Find what the span-boundary objective predicts each masked token from: m 3.

    These are the positions, in the flattened batch, of the tokens before and after its span, and
    its offset in the span, from 0 on. The offset is -1 where one of these tokens is special or not
    there: the span is at an end of its text.
    """
    num_tokens = rows.mask.shape[1]
    column = torch.arange(num_tokens, device=positions.device)
    starts = find_run_starts(rows.mask)  # b n
    ends = num_tokens - 1 - find_run_starts(rows.mask.flip(-1)).flip(-1)
    before, after = (starts - 1).clamp(min=0), (ends + 1).clamp(max=num_tokens - 1)
    is_inside = (starts > 0) & (ends < num_tokens - 1)
    is_inside = is_inside & ~unmaskable.gather(-1, before) & ~unmaskable.gather(-1, after)
    offsets = torch.where(is_inside, column - starts, -1)
    first = num_tokens * torch.arange(len(rows.mask), device=positions.device).unsqueeze(1)  # b 1, flat
    gathered = [gather_flat(values, positions) for values in (first + before, first + after, offsets)]
    return torch.stack(gathered, -1)


def masked_token_loss(predictions: PretrainingLogits, masked: MaskedBatch) -> Loss:
    """Cross-entropy of the original tokens at the masked positions."""
    return Loss(*cross_entropy(predictions.masked_logits.float(), masked.targets))


def span_boundary_loss(predictions: PretrainingLogits, masked: MaskedBatch) -> Loss:
    """Cross-entropy of the original tokens, predicted from the ends of their spans alone."""
    logits, span_ends = predictions.boundary_logits, masked.inputs.span_ends
    if logits is None or span_ends is None:
        raise ConfigError(
            "objective.sbo is above 0, but the network has no head for span boundaries: set "
            "model.respond.span_boundary=true, or objective.sbo=0"
        )
    offsets = span_ends[:, 2]
    has_loss = (offsets >= 0) & (offsets < MAX_OFFSETS)
    return Loss(*cross_entropy(logits.float(), masked.targets.masked_fill(~has_loss, IGNORE)))


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
