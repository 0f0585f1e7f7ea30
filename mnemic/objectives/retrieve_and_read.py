"""Learn to find a text and to read the answer in it, with one encoder.

Shapes: b windows, m texts of a row, t tokens, k questions, p texts to be found, s keys, d width.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.models import Row
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Carried, Loss, weighted
from mnemic.objectives.pretraining import check_weights
from mnemic.recipe import ConfigError


class ReadingLoss:
    """``spans`` · loss of the answer's ends + ``keys``, ``passages`` · losses of the right text.

    A question's text is told from all other texts of the batch by a cosine over ``temperature``
    (Karpukhin et al. 2020, section 3.2, with the cosine instead of the product): that of the text's
    key that is nearest to the question, or that of the whole text's vector. ``smooth`` of each
    end's target is spread over all tokens that may be one.
    """

    def __init__(
        self,
        *,
        spans: float = 1.0,
        keys: float = 1.0,
        passages: float = 0.2,
        temperature: float = 0.05,
        smooth: float = 0.0,
    ) -> None:
        self.weights = {"spans": spans, "keys": keys, "passages": passages}
        check_weights(self.weights)
        if not temperature > 0 or not 0 <= smooth < 1:
            came = f"temperature = {temperature}, smooth = {smooth}"
            raise ConfigError(f"reading takes a temperature > 0 and 0 ≤ smooth < 1, not {came}")
        self.temperature, self.smooth = temperature, smooth

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        return weighted(self.parts(network, batch), self.weights)._replace(carried=carried)

    def parts(self, network: nn.Module, batch: Any) -> dict[str, Loss]:
        """Each loss by its name."""
        read = network(batch.inputs)
        with torch.autocast(read.states.device.type, enabled=False):
            spans = smooth_ends(read.scores.float(), batch.targets, self.smooth)
            states, keys = read.states[0].float(), batch.keys
            order = batch.windows[len(batch.targets) :]
            lengths = batch.inputs.mask.edges.diff().long()
            vectors = mean_vectors(states, batch.inputs, lengths).index_select(0, order)
            asked, texts = vectors.split([len(batch.right), len(batch.same)])
            stretches = mean_vectors(states, batch.inputs, keys.lengths)  # s d
            near = stretches[keys.texts] @ stretches[keys.questions].mT
            best = torch.segment_reduce(near, "max", lengths=keys.counts, axis=0, unsafe=True)
            return {
                "spans": spans,
                "keys": self.found(best.mT, batch),
                "passages": self.found(asked @ texts.mT, batch),
            }

    def found(self, cosines: Tensor, batch: Any) -> Loss:
        """The loss of each question's own text, among others: ``cosines`` k p."""
        scores = cosines / self.temperature
        twice = batch.same == batch.same[batch.right].unsqueeze(1)
        own = torch.arange(scores.shape[1], device=scores.device) == batch.right.unsqueeze(1)
        return Loss(*cross_entropy(scores.masked_fill(twice & ~own, float("-inf")), batch.right))


def mean_vectors(states: Tensor, row: Row, lengths: Tensor) -> Tensor:
    """The mean state, of length 1, of each stretch of so many tokens: ``states`` t d → s d.

    Special tokens are left out.
    """
    inside = states * row.inside[0].unsqueeze(1)
    # ``unsafe`` leaves out a check of the lengths, for which a GPU would have to be waited for.
    sums = torch.segment_reduce(inside, "sum", lengths=lengths, axis=0, unsafe=True)
    return nn.functional.normalize(sums, dim=1)


def smooth_ends(scores: Tensor, targets: Tensor, smooth: float) -> Loss:
    """As ``span_loss``, with ``smooth`` of each target spread over what may be answered."""
    total, ends = cross_entropy(scores, targets)
    if smooth:
        seen = scores > torch.finfo(scores.dtype).min / 2  # b 2 1+n
        every = scores.log_softmax(-1).masked_fill(~seen, 0).sum(-1) / seen.sum(-1)
        total = (1 - smooth) * total - smooth * every.sum()
    return Loss(total / 2, ends / 2)
