"""ELECTRA's pre-training objective: detect the tokens that a generator replaced.

Shapes: b batch, n tokens, m masked positions, v vocabulary.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.models.replaced_token_model import CorruptedBatch, ReplacedTokenLogits
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.pretraining.masked import TOKEN_MASKING, MaskedBatch, check_weights, gather_flat, mask_batch
from mnemic.objectives.pretraining.masking import MASKINGS, ReplacementShares, check_shares
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError, build

SAMPLE_KEY = 0x656C6563747261  # so that samples are independent of masks


class ReplacedTokenLoss:
    """The weighted sum of the losses ``mlm``, ``replaced`` and ``adversarial`` (ELECTRA).

    Clark et al. 2020 (arXiv:2003.10555), section 2. ``mlm`` is the mean loss of the generator at
    masked tokens, of which ``mask_share`` become [MASK] and the rest stay; ``replaced`` the mean
    loss of the discriminator over all real tokens, or with ``tokens = "masked"`` over the masked
    ones (ELECTRA 15 %). A sample that happens to be the original counts as original.
    ``adversarial`` trains the generator to make the discriminator fail, by REINFORCE with a learned
    baseline (appendix F), and needs ``model.generator.baseline``. Each token of a row is weighted
    by the row's expected share of masked tokens, so that the sums over parts of a batch, or over
    processes, add up to the sum of the whole. Where we differ from the authors' code: tokens are
    masked independently of each other, not drawn with replacement.
    """

    replaces = "masked"
    needs_generator = True

    def __init__(
        self,
        *,
        mlm: float = 1.0,
        replaced: float = 50.0,
        adversarial: float = 0.0,
        tokens: Literal["all", "masked"] = "all",
        mask_share: float = 0.85,
        masking: Mapping[str, Any] = TOKEN_MASKING,
    ) -> None:
        self.weights = {"mlm": mlm, "replaced": replaced, "adversarial": adversarial}
        check_weights(self.weights)
        self.detects_all = tokens == "all"
        self.shares = ReplacementShares(mask_share, 1 - mask_share)
        check_shares(self.shares)
        self.masking = build(MASKINGS, masking)

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        masked = mask_batch(batch, self.masking, shares=self.shares)
        detects = self.weights["replaced"] > 0 or self.weights["adversarial"] > 0
        output: ReplacedTokenLogits = network(make_inputs(batch, masked, detects=detects)).logits
        is_target = masked.targets != IGNORE
        losses: dict[str, Tensor] = {}
        if self.weights["mlm"]:
            losses["mlm"] = cross_entropy(output.masked_logits.float(), masked.targets)[0]
        if output.replaced_logits is not None:
            if not isinstance(output.replaced_logits, Tensor):
                raise ConfigError("objective.kind 'replaced' needs a network that detects: model.respond.kind=replaced")
            token_losses = replaced_token_losses(output.replaced_logits, output.tokens != batch.tokens)  # b n
            if self.weights["replaced"]:
                losses["replaced"] = self.sum_token_losses(token_losses, batch, masked)
            if self.weights["adversarial"]:
                rewards = gather_flat(token_losses.detach(), masked.inputs.answer_mask)
                losses["adversarial"] = adversarial_loss(output, rewards, is_target)
        num_targets = is_target.sum()
        total = torch.stack([self.weights[name] * loss for name, loss in losses.items()]).sum()
        means = {name: loss.detach() / num_targets.clamp(min=1) for name, loss in losses.items()}
        return Loss(total, num_targets, carried, means)

    def sum_token_losses(self, token_losses: Tensor, batch: Any, masked: MaskedBatch) -> Tensor:
        """Sum the losses of tokens (b n), weighted for a mean over tokens."""
        if not self.detects_all:
            at_masked = gather_flat(token_losses, masked.inputs.answer_mask)
            return at_masked.masked_fill(masked.targets == IGNORE, 0).sum()
        weights = weigh_rows(batch, self.masking.rate).unsqueeze(1)
        return (weights * token_losses.masked_fill(~batch.mask, 0)).sum()


def weigh_rows(batch: Any, rate: float) -> Tensor:
    """Weigh the tokens of each row by its expected share of masked tokens: b."""
    num_real, num_maskable = batch.mask.sum(1), (~batch.unmaskable).sum(1)  # b
    return rate * num_maskable / num_real.clamp(min=1)


def make_inputs(batch: Any, masked: MaskedBatch, *, detects: bool = True) -> CorruptedBatch:
    """Add numbers that sample replacements, by its keys alone, to a masked batch."""
    uniforms = make_uniforms(batch.mask_seeds ^ SAMPLE_KEY, batch.tokens.shape[1], 1)[0]  # b n
    return CorruptedBatch(masked.inputs, gather_flat(uniforms, masked.inputs.answer_mask), detects)


def replaced_token_losses(logits: Tensor, is_replaced: Tensor) -> Tensor:
    """Binary cross-entropy of whether each token was replaced: b n."""
    return nn.functional.binary_cross_entropy_with_logits(logits.float(), is_replaced.float(), reduction="none")


def adversarial_loss(output: ReplacedTokenLogits, rewards: Tensor, is_target: Tensor) -> Tensor:
    """Sum the policy-gradient losses of the generator's samples, and those of its baseline.

    ``rewards`` m are the discriminator's losses at the samples. The baseline -log sigmoid(w · h)
    estimates them before the sample is drawn, and learns by cross-entropy.
    """
    if output.baseline_logits is None:
        raise ConfigError("objective.adversarial is above 0, but the generator has no baseline: set "
                          "model.generator.baseline=true")  # fmt: skip
    baseline_logits = output.baseline_logits.float()
    advantages = rewards - nn.functional.softplus(-baseline_logits).detach()
    log_probabilities = output.masked_logits.float().log_softmax(-1)
    sampled = log_probabilities.gather(-1, output.samples.unsqueeze(-1)).squeeze(-1)
    baseline_losses = nn.functional.binary_cross_entropy_with_logits(
        baseline_logits, (-rewards).exp(), reduction="none"
    )
    return (baseline_losses - advantages * sampled).masked_fill(~is_target, 0).sum()
