"""Loss of one encoder that retrieves a passage and extracts the answer from it.

Shapes: b windows, m texts of a packed row, t tokens, k questions, p passages, s sentence keys,
d width.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.models import PackedBatch
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss, sum_weighted
from mnemic.objectives.contrast import info_nce
from mnemic.objectives.pretraining.masked import check_weights
from mnemic.recipe import ConfigError
from mnemic.respond.spans import NO_ANSWER


class RetrieveAndReadLoss:
    """The weighted sum of a span loss and two retrieval losses, ``keys`` and ``passages``.

    The retrieval losses are cross-entropies of a question's passage among all passages of the
    batch (``info_nce``; Karpukhin et al. 2020, section 3.2), with the cosine divided by
    ``temperature`` instead of the dot product. ``keys`` compares the question with the nearest
    sentence of a passage, ``passages`` with the mean of the whole passage. ``smooth`` is the share
    of the target of each span end that is spread over all tokens that may be one (label
    smoothing). ``relevance`` weights the loss of a network that scores how well a text answers
    (``model.respond.relevance``).
    """

    def __init__(
        self,
        *,
        spans: float = 1.0,
        keys: float = 1.0,
        passages: float = 0.2,
        temperature: float = 0.05,
        label_smoothing: float = 0.0,
        relevance: float = 0.0,
    ) -> None:
        self.weights = {"spans": spans, "keys": keys, "passages": passages, "relevance": relevance}
        check_weights(self.weights)
        if not temperature > 0 or not 0 <= label_smoothing < 1:
            values = f"temperature = {temperature}, label_smoothing = {label_smoothing}"
            raise ConfigError(f"reading takes a temperature > 0 and 0 ≤ label_smoothing < 1, not {values}")
        self.temperature, self.smooth = temperature, label_smoothing

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        return sum_weighted(self.compute_losses(network, batch), self.weights)._replace(carried=carried)

    def compute_losses(self, network: nn.Module, batch: Any) -> dict[str, Loss]:
        """Compute the losses spans, keys and passages, and relevance if it is scored, by name."""
        output = network(batch.inputs)
        if (output.relevance is None) != (self.weights["relevance"] == 0):
            raise ConfigError(
                "model.respond.relevance = true and objective.relevance > 0 go together: the head "
                "learns by this loss alone; set both or none"
            )
        with torch.autocast(output.states.device.type, enabled=False):
            spans = smoothed_span_loss(output.logits.float(), batch.targets, self.smooth)
            cosines = compare_texts(output, batch)
            losses = {"spans": spans, **{name: self.retrieval_loss(cosines[name], batch) for name in cosines}}
            if output.relevance is None:
                return losses
            return losses | {"relevance": relevance_loss(output.relevance.float(), batch.targets)}

    def retrieval_loss(self, cosines: Tensor, batch: Any) -> Loss:
        """Cross-entropy of each question's passage among all passages: ``cosines`` k p.

        Other passages with the same text are left out.
        """
        return info_nce(cosines, batch.gold_texts, temperature=self.temperature, key_ids=batch.text_ids)


def compare_texts(output: Any, batch: Any) -> dict[str, Tensor]:
    """Compute the cosines k p of questions and passages by name: ``keys`` and ``passages``.

    That of the nearest sentence of a passage, and that of the mean of the whole passage.
    """
    states, keys = output.states[0].float(), batch.spans
    order = batch.window_ranks[len(batch.targets) :]
    lengths = batch.inputs.mask.cu_seqlens.diff().long()
    vectors = pool_spans(states, batch.inputs, lengths).index_select(0, order)
    question_vectors, text_vectors = vectors.split([len(batch.gold_texts), len(batch.text_ids)])
    key_vectors = pool_spans(states, batch.inputs, keys.lengths)  # s d
    cosines = key_vectors[keys.text_spans] @ key_vectors[keys.question_spans].mT
    best_cosines = torch.segment_reduce(cosines, "max", lengths=keys.spans_per_text, axis=0, unsafe=True)
    return {"keys": best_cosines.mT, "passages": question_vectors @ text_vectors.mT}


def pool_spans(states: Tensor, batch: PackedBatch, lengths: Tensor) -> Tensor:
    """Average the states of consecutive spans and normalize them: ``states`` t d → s d.

    ``lengths`` s are the spans' numbers of tokens. Special tokens are left out.
    """
    text_states = states * batch.answer_mask[0].unsqueeze(1)
    # ``unsafe`` skips a check of the lengths, which would wait for the GPU.
    sums = torch.segment_reduce(text_states, "sum", lengths=lengths, axis=0, unsafe=True)
    return nn.functional.normalize(sums, dim=1)


def relevance_loss(logits: Tensor, targets: Tensor) -> Loss:
    """Binary cross-entropy of whether a window has an answer: ``logits`` b, ``targets`` b 2.

    As a cross-encoder learns to rank (Nogueira and Cho 2019, arXiv:1901.04085, section 2).

    >>> loss = relevance_loss(torch.zeros(2), torch.tensor([[3, 4], [0, 0]]))  # 0: "no answer"
    >>> round(float(loss.total), 4)  # 2 log 2
    1.3863
    """
    has_answer = (targets[:, 0] != NO_ANSWER).to(logits.dtype)
    total = nn.functional.binary_cross_entropy_with_logits(logits, has_answer, reduction="sum")
    return Loss(total, torch.tensor(len(logits), device=logits.device))


def smoothed_span_loss(logits: Tensor, targets: Tensor, smooth: float) -> Loss:
    """Compute ``span_loss`` with label smoothing over the tokens that may be an answer."""
    total, num_ends = cross_entropy(logits, targets)
    if smooth:
        allowed = logits > torch.finfo(logits.dtype).min / 2  # b 2 1+n
        mean_log_probs = logits.log_softmax(-1).masked_fill(~allowed, 0).sum(-1) / allowed.sum(-1)
        total = (1 - smooth) * total - smooth * mean_log_probs.sum()
    return Loss(total / 2, num_ends / 2)
