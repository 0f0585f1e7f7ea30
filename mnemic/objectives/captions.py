"""Losses of captions, with soft and hard attention (Xu et al. 2015).

Shapes: b pictures, m words, s slots (regions), v vocabulary.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.contrast_views import gather_rows_of_processes
from mnemic.recipe import ConfigError

BASELINE = "baseline"  # of the carried state


class CaptionLoss:
    """Cross-entropy of each word, and a penalty for regions that are not looked at.

    ``-log p(y) + doubly Σ_i (1 - Σ_t α_ti)²`` per caption (equation 14): over a whole caption every
    region should get as much of the gaze. The paper's ``doubly`` is 1. Padding counts in neither.
    """

    def __init__(self, *, doubly: float = 1.0) -> None:
        if doubly < 0:
            raise ConfigError(f"objective.doubly is a weight from 0 on, not {doubly}")
        self.doubly = doubly

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        output = network(batch.inputs)
        log_probs, is_word = score_words(output.logits, batch.targets)
        penalty = doubly_stochastic_penalty(output.reading.weights[:, 0, 0], is_word)
        return Loss(self.doubly * penalty.sum() - log_probs.sum(), is_word.sum(), carried)


class SampledCaptionLoss:
    """Cross-entropy of each word, and REINFORCE for the regions that were sampled (section 4.1).

    The gradient is that of ``log p(y|s) + reinforce (log p(y|s) - b) log p(s) + entropy H[α]`` of
    each caption: the reward of its samples s is how likely they made the words, above a
    ``baseline`` b, which is carried: ``b ← momentum b + (1 - momentum) log p(y|s)``, the mean of a
    batch. Neither reward nor baseline has a gradient. A picture that was read softly adds nothing
    to the second term: ``Σ α ∇ log α`` is 0.

    Where we differ: a batch is compared with the baseline of those before it (the first with its
    own mean), so that the estimate has no bias.
    """

    def __init__(self, *, reinforce: float = 1.0, entropy: float = 0.002, momentum: float = 0.9) -> None:
        if min(reinforce, entropy) < 0 or not 0 <= momentum < 1:
            raise ConfigError(
                "objective takes reinforce and entropy ≥ 0, and momentum from 0 to below 1, not "
                f"{reinforce}, {entropy} and {momentum}"
            )
        self.reinforce, self.entropy, self.momentum = reinforce, entropy, momentum

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        output = network(batch.inputs)
        log_probs, is_word = score_words(output.logits, batch.targets)
        samples, log_attention = (
            output.reading.weights[:, 0, 0].detach(),
            output.reading.scores[:, 0, 0].log_softmax(-1),
        )
        log_samples = ((samples * log_attention).sum(-1) * is_word).sum(1)  # b, log p(s)
        entropy = -((log_attention.exp() * log_attention).sum(-1) * is_word).sum(1)  # b
        rewards = log_probs.sum(1).detach()  # b
        mean = gather_rows_of_processes(rewards).mean()
        baseline = mean if carried is None else carried[BASELINE]
        objective = log_probs.sum(1) + self.reinforce * (rewards - baseline) * log_samples + self.entropy * entropy
        next_baseline = self.momentum * baseline + (1 - self.momentum) * mean
        means = {"words": -rewards.sum() / is_word.sum(), "entropy": entropy.detach().sum() / is_word.sum()}
        return Loss(-objective.sum(), is_word.sum(), {BASELINE: next_baseline}, means)


def score_words(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log-probability of each target, 0 at padding, and a mask."""
    is_word = targets != IGNORE
    log_probs = logits.log_softmax(-1).gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return torch.where(is_word, log_probs, 0.0), is_word


def doubly_stochastic_penalty(weights: Tensor, is_word: Tensor) -> Tensor:
    """Compute ``Σ_i (1 - Σ_t α_ti)²`` per picture (b) from the gaze (b m s)."""
    totals = (weights * is_word.unsqueeze(-1)).sum(1)  # b s
    return (1 - totals).square().sum(1)
