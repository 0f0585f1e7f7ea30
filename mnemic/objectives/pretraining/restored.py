"""Predict the words behind replaced tokens: what ELECTRA is compared with.

Shapes: b batch, n tokens, m positions, v vocabulary.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.encode.packed import find_true_positions
from mnemic.models import IGNORE
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.pretraining.masked import TOKEN_MASKING, check_weights, gather_flat, mask_batch
from mnemic.objectives.pretraining.masking import MASKINGS, ReplacementShares, check_shares
from mnemic.objectives.pretraining.replaced import make_inputs, weigh_rows
from mnemic.recipe import ConfigError, build
from mnemic.respond.pretraining.restored import RestoredLogits


class RestoredTokenLoss:
    """The weighted sum of the losses ``mlm`` and ``restored`` (ELECTRA's comparisons).

    Clark et al. 2020 (arXiv:2003.10555), section 3.4. ``mlm`` is the mean loss of the generator at
    masked tokens, as in ``replaced``. The network reads the generator's samples in their place.
    With ``tokens = "masked"`` it predicts the originals of the masked tokens (replace-MLM). With
    "all" it predicts those of all real tokens, and may copy: the probability of a word is
    (1 - D) softmax(word) + D [the word stands there] (all-tokens MLM). Rows are weighted as in
    ``replaced``. The paper has no weights of the two losses.
    """

    replaces = "masked"
    needs_generator = True

    def __init__(
        self,
        *,
        mlm: float = 1.0,
        restored: float = 1.0,
        tokens: Literal["all", "masked"] = "all",
        mask_share: float = 0.85,
        masking: Mapping[str, Any] = TOKEN_MASKING,
    ) -> None:
        self.weights = {"mlm": mlm, "restored": restored}
        check_weights(self.weights)
        self.restores_all = tokens == "all"
        self.shares = ReplacementShares(mask_share, 1 - mask_share)
        check_shares(self.shares)
        self.masking = build(MASKINGS, masking)

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        masked = mask_batch(batch, self.masking, shares=self.shares)
        positions = find_real_tokens(batch) if self.restores_all else masked.inputs.answer_mask
        output = network(make_inputs(batch, masked)._replace(scored_positions=positions)).logits
        if not isinstance(output.replaced_logits, RestoredLogits):
            raise ConfigError(
                "objective.kind 'restored' needs a network that predicts words: model.respond.kind=restored"
            )
        losses = {"mlm": cross_entropy(output.masked_logits.float(), masked.targets)[0]}
        if self.restores_all:
            token_losses = copied_token_losses(
                output.replaced_logits, gather_flat(output.tokens, positions), gather_flat(batch.tokens, positions)
            )
            weights = weigh_rows(batch, self.masking.rate).unsqueeze(1).expand_as(batch.tokens)
            is_real = positions < batch.tokens.numel()
            losses["restored"] = (token_losses * gather_flat(weights, positions) * is_real).sum()
        else:
            losses["restored"] = cross_entropy(output.replaced_logits.word_logits.float(), masked.targets)[0]
            losses["restored"] = losses["restored"] + 0 * output.replaced_logits.copy_logits.sum()  # a gradient of 0
        num_targets = (masked.targets != IGNORE).sum()
        total = torch.stack([self.weights[name] * loss for name, loss in losses.items()]).sum()
        means = {name: loss.detach() / num_targets.clamp(min=1) for name, loss in losses.items()}
        return Loss(total, num_targets, carried, means)


def find_real_tokens(batch: Any) -> Tensor:
    """Find the positions of real tokens in the flattened batch, or beyond it: m."""
    if batch.max_tokens:
        return find_true_positions(batch.mask, batch.max_tokens)
    return batch.mask.flatten().nonzero().squeeze(1)


def copied_token_losses(logits: RestoredLogits, tokens: Tensor, originals: Tensor) -> Tensor:
    """Compute the loss of each original, which may be copied from ``tokens``: m."""
    log_words = logits.word_logits.float().log_softmax(-1).gather(-1, originals.unsqueeze(-1)).squeeze(-1)
    log_copy, log_write = (nn.functional.logsigmoid(sign * logits.copy_logits.float()) for sign in (1, -1))
    log_written = log_write + log_words
    return -torch.where(tokens == originals, torch.logaddexp(log_copy, log_written), log_written)
