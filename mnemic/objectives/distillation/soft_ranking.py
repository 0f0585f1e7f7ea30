"""Distillation of a ranking: an embedder learns how a cross-encoder scores its candidates.

Shapes: k questions, p passages of the batch, c candidates of a question, n pairs, w windows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.text_tasks.retrieval_pairs import make_pairs
from mnemic.objectives.contract import CarriedState, Loss, sum_weighted
from mnemic.objectives.distillation.soft_labels import DistilLoss, OutputRecorder, average_probabilities, compute_frozen
from mnemic.objectives.distillation.soft_weight import SoftLossSchedule
from mnemic.objectives.retrieve_and_read import RetrieveAndReadLoss, compare_texts
from mnemic.recipe import ConfigError, build

HARD_LOSSES: dict[str, Callable[..., Any]] = {"distil": DistilLoss, "retrieve-and-read": RetrieveAndReadLoss}
PAIRS_PER_CALL = 512  # that a teacher scores at once; changes memory use, not results


class RankingDistilLoss:
    """The loss ``hard`` plus ``weight`` times a loss of rankings, from cross-encoders.

    A teacher scores a question together with each of ``candidates`` passages: its right one, and
    those of the batch that the student finds nearest. The loss is KL(softmax(t / temperature) ‖
    softmax(cosine / τ)) over them, where τ is the temperature of ``hard``; several teachers are the
    mean of their probabilities. It is the mean of ``keys`` and ``passages`` by their weights in
    ``hard``. This is Xu et al. 2020 (arXiv:1907.05171, figure 4): a student of inner products,
    whose vectors are computed in advance, and a teacher that reads both sides at once. ``delay``
    and ``ramp_up`` are those of ``distil``, which ``hard`` may be, too.
    """

    needs_teacher = True
    ranks_texts = True
    needs_trained_teacher = True
    wraps = "hard"

    def __init__(
        self,
        *,
        hard: Mapping[str, Any],
        weight: float = 1.0,
        candidates: int = 8,
        temperature: float = 1.0,
        delay: int = 0,
        ramp_up: int = 0,
        teachers: Sequence[nn.Module] = (),
    ) -> None:
        if not weight >= 0 or not temperature > 0 or candidates < 2:
            values = f"weight = {weight}, temperature = {temperature}, candidates = {candidates}"
            raise ConfigError(
                f"distil-ranking takes a weight ≥ 0, a temperature > 0, and 2 or more candidates, not {values}"
            )
        self.cross_encoders = tuple(teacher for teacher in teachers if is_cross_encoder(teacher))
        self.hard = build(
            HARD_LOSSES, hard, teachers=[teacher for teacher in teachers if not is_cross_encoder(teacher)]
        )
        self.reading = getattr(self.hard, "hard", self.hard)  # the innermost objective
        weights = {name: self.reading.weights[name] for name in ("keys", "passages")}
        if not any(weights.values()):
            raise ConfigError("distil-ranking needs a hard objective that retrieves: keys or passages above 0")
        self.weights = {name: value / sum(weights.values()) for name, value in weights.items()}
        self.soft_weight = SoftLossSchedule(weight, delay=delay, ramp_up=ramp_up, name="ranking_step")
        self.temperature, self.num_candidates = temperature, candidates

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        recorder = OutputRecorder(network)
        hard = self.hard(recorder, batch, carried)
        losses, weight = {"hard": hard}, self.soft_weight.read(carried)
        if weight:
            with torch.autocast(recorder.output.states.device.type, enabled=False):
                losses["ranking"] = self.ranking_loss(compare_texts(recorder.output, batch), batch)
        loss = sum_weighted(losses, {"hard": 1.0, "ranking": weight})
        means = {**(loss.means or {}), **(hard.means or {})}
        return loss._replace(carried=self.soft_weight.count(hard.carried), means=means)

    def ranking_loss(self, cosines: Mapping[str, Tensor], batch: Any) -> Loss:
        """Compare the student's rankings (k p, by name) with those of the teachers."""
        name = max(self.weights, key=lambda name: self.weights[name])  # that candidates are chosen by
        candidates = choose_candidates(cosines[name].detach(), batch.gold_texts, batch.text_ids, self.num_candidates)
        scores = [score_candidates(cross_encoder, batch, candidates) for cross_encoder in self.cross_encoders]
        probabilities = average_probabilities(scores, self.temperature)
        losses = {
            name: ranking_divergence(cosines[name].gather(1, candidates) / self.reading.temperature, probabilities)
            for name in self.weights
        }
        return sum_weighted(losses, self.weights)


def is_cross_encoder(network: Any) -> bool:
    """Whether a network answers for a whole text or pair, as a cross-encoder does."""
    return bool(network.respond.pools_text)


def choose_candidates(similarities: Tensor, gold_texts: Tensor, text_ids: Tensor, count: int) -> Tensor:
    """Choose each question's own passage and those with the greatest similarity: k c.

    Another passage with the text of the right one is none of them, unless there are too few.

    >>> choose_candidates(torch.tensor([[0.1, 0.9, 0.3]]), torch.tensor([0]), torch.arange(3), 2)
    tensor([[0, 1]])
    """
    columns = torch.arange(similarities.shape[1], device=similarities.device)
    is_gold = columns == gold_texts.unsqueeze(1)
    is_copy = (text_ids == text_ids[gold_texts].unsqueeze(1)) & ~is_gold
    order = similarities.masked_fill(is_copy, -torch.inf).masked_fill(is_gold, torch.inf)
    return order.topk(min(count, len(columns)), 1).indices


def score_candidates(cross_encoder: nn.Module, batch: Any, candidates: Tensor) -> Tensor:
    """Score each question with each of its candidates: k c, in batches of similar length."""
    questions = torch.arange(len(candidates), device=candidates.device).unsqueeze(1).expand_as(candidates).flatten()
    texts = candidates.flatten()
    windows = batch.inputs.mask.cu_seqlens.diff()[batch.window_ranks]  # lengths, in the batch's order
    order = windows[len(batch.targets) + len(batch.gold_texts) + texts].argsort(stable=True)
    scores = [
        compute_frozen(cross_encoder, make_pairs(batch, questions[pairs], texts[pairs])).logits.squeeze(-1).float()
        for pairs in order.split(PAIRS_PER_CALL)
    ]
    return torch.cat(scores)[order.argsort()].view_as(candidates)


def ranking_divergence(logits: Tensor, probabilities: Tensor) -> Loss:
    """Return the summed KL(probabilities ‖ softmax(logits)) and the number of questions.

    ``logits`` and ``probabilities`` k c.
    """
    log_probs = logits.float().log_softmax(-1)
    divergence = nn.functional.kl_div(log_probs, probabilities, reduction="sum")
    return Loss(divergence, torch.tensor(len(logits), device=logits.device))
