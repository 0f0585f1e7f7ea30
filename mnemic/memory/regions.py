"""A memory whose slots are regions of a picture, read once per word: the gaze.

Show, Attend and Tell (Xu et al. 2015, arXiv:1502.03044), with soft and with hard attention.

Shapes: b batch, n regions, m queries, s slots, t tables of a slot (2), d width.
"""

import torch
from torch import Tensor, nn

from mnemic.memory.append import AppendMemory, Slots
from mnemic.memory.contract import MASKED_SCORE, Reading, ReadLabels
from mnemic.recipe import ConfigError

CONTENT, KEY = 0, 1  # the tables of a slot
SOFT_UNIFORM, SLOT_UNIFORM = 0, 1  # the uniform random numbers of a sampled read
CAPTION = "How much of each {item} was read for the word; a column adds up to 1."


class RegionMemory(AppendMemory):
    """Append regions; read their mean, weighted by the gaze (soft attention).

    ``e_i = wᵀ tanh(W_a a_i + W_h h)`` and ``α = softmax(e)`` (equations 4 and 5) for a region a_i
    and a query h, the decoder's state; what is found is ``ẑ = Σ α_i a_i`` (equation 13). A slot
    has two tables, a_i and its key ``W_a a_i``, which the network computes once per picture.
    """

    holds_regions = True
    num_tables = 2
    labels = ReadLabels("gaze", CAPTION)

    def __init__(self, width: int, *, slots: int = 64) -> None:
        super().__init__()
        if slots < 1:
            raise ConfigError(f"model.memory.slots is at least 1, not {slots}")
        self.num_slots = slots
        self.query = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, 1, bias=False)

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m t d), of which the first table counts."""
        tables = state.states.unbind(2)  # b s d; faster than two selections, whose gradients are mostly zeros
        scores = self.score(tables[KEY], state.mask, query)
        weights = scores.softmax(-1) * state.mask.unsqueeze(1)  # b m s; an empty memory gives zeros
        return collect(tables[CONTENT], weights, scores)

    def score(self, keys: Tensor, mask: Tensor, query: Tensor) -> Tensor:
        """Score keys (b s d) for queries (b m t d): b m s."""
        scores: Tensor = self.out((keys.unsqueeze(1) + self.query(query[:, :, :1])).tanh()).squeeze(-1)
        return scores.masked_fill(~mask.unsqueeze(1), MASKED_SCORE)


class SampledRegionMemory(RegionMemory):
    """Append regions; read a single one (hard attention).

    In training it is drawn from α (equation 8), and with the probability ``expectation`` a picture
    is read softly instead (section 4.1 of the paper: ½). ``uniforms`` (b 2) decide: whether
    the picture is read softly, and the slot of the word. Otherwise it is the most likely region, as
    in the authors' code. ``Reading.weights`` are 1 for the region that was read, or α; ``scores``
    make α.

    Where we differ: gradients also flow through the expectation where it was read; the authors'
    code treats it as another sample.
    """

    num_uniforms = 2
    labels = ReadLabels("gaze", "Which {item} was read for the word; a column adds up to 1.")

    def __init__(self, width: int, *, slots: int = 64, expectation: float = 0.5) -> None:
        super().__init__(width, slots=slots)
        if not 0 <= expectation <= 1:
            raise ConfigError(f"model.memory.expectation is a share from 0 to 1, not {expectation}")
        self.expectation = expectation

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read one slot per query: the teacher's, a random or the best one."""
        tables = state.states.unbind(2)  # b s d
        scores = self.score(tables[KEY], state.mask, query)
        probabilities = scores.softmax(-1) * state.mask.unsqueeze(1)  # b m s
        if not probabilities.shape[-1]:
            return collect(tables[CONTENT], probabilities, scores)
        slots = probabilities.argmax(-1)  # b m
        is_sampled = uniforms is not None and self.training
        if uniforms is not None and is_sampled:
            slots = draw_slots(probabilities.detach(), uniforms[:, SLOT_UNIFORM, None])
        if teacher_slots is not None:
            slots = torch.where(teacher_slots[..., 0] >= 0, teacher_slots[..., 0], slots)
        weights = nn.functional.one_hot(slots, probabilities.shape[-1]).to(probabilities.dtype) * state.mask.unsqueeze(
            1
        )
        if uniforms is not None and is_sampled:
            weights = torch.where((uniforms[:, SOFT_UNIFORM] < self.expectation)[:, None, None], probabilities, weights)
        return collect(tables[CONTENT], weights, scores)


def collect(contents: Tensor, weights: Tensor, scores: Tensor) -> Reading:
    """Read contents (b s d) by weights (b m s), with one hop and head."""
    return Reading(weights @ contents, weights[:, None, None], scores[:, None, None])


def draw_slots(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Draw a slot from probabilities (b m s) by inverse distribution function: b m."""
    bounds = probabilities.cumsum(-1)
    # Scaled by the sum, so that a number just below 1 is not beyond the last slot with a share.
    return (bounds <= uniforms.unsqueeze(-1) * bounds[..., -1:]).sum(-1).clamp(max=probabilities.shape[-1] - 1)
