"""Slot rewriting: sentence slots and question rewrite each other in steps of shared weights.

Shapes: b batch, m queries, s slots, r rows (the slots, then the question), k steps, h heads,
t tables (2), d width, c channels of one head.
"""

from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory.append import AppendMemory, Slots
from mnemic.memory.contract import MASKED_SCORE, Reading, ReadLabels
from mnemic.recipe import ConfigError, check_repeats

FEED_FACTOR = 4  # the feed-forward network is so many times as wide as a slot
NEAREST_BIAS = -3.0  # of a match's logit at the start: a head then looks at some 20 slots
QUESTION_BIAS = -1.0  # of the logit that a slot matches the question, at the start
STOP_BIAS = -1.0  # of the stop's logit at the start: all steps then have a share in the answer


class SlotRewritingMemory(AppendMemory):
    """Append sentences; rewrite slots and question together in several steps, then stop.

    A network of our own: its slots are sentences, as in MemN2N, rewritten as EntNet's, by several
    heads as WMN reads, in steps that share their weights and end when the network has learned to
    stop, as the Universal Transformer's. Rows are the slots x_i and, after the last of them, the
    question u. In each step every row attends and then goes through a feed-forward network::

        x_i ← x_i + W [o_i1; …; o_ih],   x_i ← x_i + FFN(norm(x_i)),
        o_i = Σ_j a_ij v_j + γ_i v_u,    γ_i = σ(q_i · k_u / √c + b)

    with queries, keys and values of norm(x). γ says how far a slot matches the question, which does
    not see itself. Heads are of three kinds. A quarter look back and a quarter ahead, and read the
    *nearest* match (geometric attention, Csordás et al. 2022, arXiv:2110.07732)::

        a_ij = β_ij Π_k (1 − β_ik),      β_ij = σ(q_i · k_j / √c + b),  k: the slots nearer than j

    All others read all matches: a softmax over the other slots, and over nothing with a score of 0;
    the score of a slot falls with the logarithm of its distance by a learned slope. To the question
    all slots are both behind, the latest first, and ahead, the earliest first. What decides most
    stories is order: where somebody went *last*, or *before* that. For a head that reads the
    nearest match, this is one read, the same in a story of five or of seventy sentences. So there
    are no vectors of times that a longer story could exceed.

    In step k the question stops with the probability λ_k = σ(w · norm(u) + b), in the last step
    with 1, and ``found`` is Σ_k p_k norm(u), p_k = λ_k Π_l (1 − λ_l), l < k. These shares of the
    steps are ``Reading.gates``; Σ_k k p_k is ``Reading.steps``, which the objective
    ``answer+steps`` makes small. ``Reading.weights`` are what the question read, times the
    probability that it had not stopped before.

    ``rewrite=False`` rewrites the question alone, by heads that read several times. ``stop=False``
    takes all steps. ``dropout`` acts on the first rows and on both updates of a step.
    """

    num_tables = 2
    labels = ReadLabels(
        "step {}",
        "How much of each sentence's slot the question read in each step, if it had not stopped before.",
        "(nothing, or stopped before)",
        "(stop: share of the answer)",
    )

    def __init__(
        self,
        width: int,
        *,
        steps: int = 6,
        heads: int = 8,
        slots: int = 70,
        rewrite: bool = True,
        stop: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_repeats(steps=steps)
        if steps < 1 or heads < 1 or slots < 1 or width % heads:
            values = f"{steps = }, {heads = }, {slots = }"
            raise ConfigError(f"slot-rewriting takes steps, slots ≥ 1, and heads that divide {width = }, not {values}")
        self.num_steps, self.num_slots = steps, slots
        self.norm_sentence, self.norm_question, self.norm_found = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.step = RewritingStep(width, heads=heads, rewrite=rewrite, dropout=dropout)
        self.stop = nn.Linear(width, 1) if stop and steps > 1 else None
        if self.stop is not None:
            nn.init.constant_(self.stop.bias, STOP_BIAS)

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m 2 d); soft reads do not use ``teacher_slots``."""
        question = self.norm_question(query[:, :, 1])  # b m d
        slots = self.norm_sentence(state.states[:, :, 0])  # b s d
        # Each question rewrites slots of its own, and one memory may be shared by a batch.
        slots, mask = (
            tensor.unsqueeze(1).expand(*question.shape[:2], *tensor.shape[1:]) for tensor in (slots, state.mask)
        )
        rows = self.dropout(torch.cat([slots, question.unsqueeze(2)], 2))  # b m r d
        geometry = build_slot_geometry(mask, rows.dtype)
        penalty = self.step.distance_penalty(geometry)
        running, mixture = torch.ones_like(question[..., 0]), torch.zeros_like(question)
        scores, weights, shares = [], [], []
        for number in range(self.num_steps):
            rows, score, weight = self.step(rows, geometry, penalty)
            output = self.norm_found(rows[:, :, -1])
            share = running * self.stop_probability(output, is_last=number == self.num_steps - 1)  # b m
            mixture = mixture + share.unsqueeze(-1) * output
            scores.append(score)
            weights.append(weight * running[..., None, None])
            shares.append(share)
            running = running - share
        weight, score = (torch.stack(tensors, 1).transpose(2, 3) for tensors in (weights, scores))  # b k h m s
        if self.stop is None:
            return Reading(mixture, weight, score)
        expected_steps = torch.stack([number * share for number, share in enumerate(shares, start=1)]).sum(0)
        return Reading(mixture, weight, score, gates=torch.stack(shares, 1), steps=expected_steps)

    def stop_probability(self, output: Tensor, *, is_last: bool) -> Tensor:
        """Compute the probability of stopping after a step, b m, from the question's vector."""
        if is_last or self.stop is None:
            return torch.full_like(output[..., 0], float(is_last))
        return self.stop(output).squeeze(-1).sigmoid()


class SlotGeometry(NamedTuple):
    """Which slots are hidden from rows, and how far away slots are."""

    not_behind: Tensor  # b m 1 r s; to the question, all slots are behind
    not_ahead: Tensor  # b m 1 r s; and all of them are ahead
    not_around: Tensor  # b m 1 r s; the row itself
    log_distance: Tensor  # b m 1 r s, in filled slots
    nearer_behind: Tensor  # s s, 1 where the first slot is nearer than the second to a row after both
    nearer_ahead: Tensor  # s s, likewise to a row before both

    def of_question(self) -> "SlotGeometry":
        """Return what the question sees, the last row."""
        return self._replace(
            not_behind=self.not_behind[..., -1:, :],
            not_ahead=self.not_ahead[..., -1:, :],
            not_around=self.not_around[..., -1:, :],
            log_distance=self.log_distance[..., -1:, :],
        )


def build_slot_geometry(mask: Tensor, dtype: torch.dtype) -> SlotGeometry:
    """Find what rows see of slots, from the mask of the slots (b m s)."""
    num_slots = mask.shape[-1]
    slots = torch.arange(num_slots, device=mask.device)
    rows = torch.arange(num_slots + 1, device=mask.device).unsqueeze(1)  # r 1
    is_behind, is_ahead = slots < rows, (slots > rows) | (rows == num_slots)
    free = ~mask[:, :, None, None]  # b m 1 1 s
    positions = nn.functional.pad(mask.long().cumsum(-1), (1, 0))[:, :, None]  # b m 1 r, filled slots before
    distance = (positions.unsqueeze(-1) - positions[..., :-1].unsqueeze(-2)).abs()
    return SlotGeometry(
        free | ~is_behind,
        free | ~is_ahead,
        free | ~(is_behind | is_ahead),
        distance.to(dtype).log1p(),
        (slots.unsqueeze(1) > slots).to(dtype),
        (slots.unsqueeze(1) < slots).to(dtype),
    )


class RewritingStep(nn.Module):
    """One step: every row reads its matches, then goes through a feed-forward network."""

    def __init__(self, width: int, *, heads: int, rewrite: bool, dropout: float) -> None:
        super().__init__()
        self.heads, self.rewrite = heads, rewrite
        num_all = heads // 2  # heads that read all matches
        self.num_behind, self.num_ahead = (heads - num_all + 1) // 2, (heads - num_all) // 2
        self.norm_read, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width, bias=False)  # to queries, keys and values
        self.join = nn.Linear(width, width, bias=False)
        self.nearest_bias = nn.Parameter(torch.full((heads - num_all, 1, 1), NEAREST_BIAS))
        # Behind and ahead: a score is less by the softplus of a slope times the log of a distance.
        self.slopes = nn.Parameter(torch.linspace(-2, 2, 2 * num_all).view(2, num_all, 1, 1)) if num_all else None
        self.question_bias = nn.Parameter(torch.full((heads, 1), QUESTION_BIAS)) if rewrite else None
        self.widen = nn.Linear(width, FEED_FACTOR * width)
        self.narrow = nn.Linear(FEED_FACTOR * width, width)
        self.dropout = nn.Dropout(dropout)

    def distance_penalty(self, geometry: SlotGeometry) -> Tensor | None:
        """Compute how far distance lowers the scores of softmax heads, b m h r s."""
        if self.slopes is None:
            return None
        slope_behind, slope_ahead = nn.functional.softplus(self.slopes)  # h 1 1
        return torch.where(geometry.not_behind, slope_ahead, slope_behind) * geometry.log_distance

    def forward(self, rows: Tensor, geometry: SlotGeometry, penalty: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Rewrite rows; return them, and the scores and weights of the question.

        ``rows`` b m r d → b m r d, b m h s, b m h s.
        """
        if not self.rewrite:
            geometry, penalty = geometry.of_question(), None if penalty is None else penalty[..., -1:, :]
        first = 0 if self.rewrite else -1  # row that is rewritten
        projections = self.project(self.norm_read(rows)).unflatten(-1, (3, self.heads, -1))  # b m r 3 h c
        queries, keys, values = projections.permute(3, 0, 1, 4, 2, 5).unbind()  # b m h r c
        products = (queries[..., first:, :] @ keys.mT).to(rows.dtype) / sqrt(queries.shape[-1])  # b m h r r
        scores, weights = self.weigh_slots(products[..., :-1], geometry, penalty)
        mixed = weights.to(values.dtype) @ values[..., :-1, :]
        if self.question_bias is not None:
            matches = (products[..., :-1, -1] + self.question_bias).sigmoid()  # b m h s
            from_question = matches.unsqueeze(-1).to(values.dtype) * values[..., -1:, :]
            mixed = mixed + nn.functional.pad(from_question, (0, 0, 0, 1))  # the question does not see itself
        rewritten = rows[:, :, first:] + self.dropout(self.join(mixed.transpose(2, 3).flatten(3)))
        hidden = nn.functional.gelu(self.widen(self.norm_feed(rewritten)))
        rewritten = rewritten + self.dropout(self.narrow(hidden))
        rows = rewritten if self.rewrite else torch.cat([rows[:, :, :-1], rewritten], 2)
        return rows, scores[..., -1, :], weights[..., -1, :]

    def weigh_slots(self, products: Tensor, geometry: SlotGeometry, penalty: Tensor | None) -> tuple[Tensor, Tensor]:
        """Turn products (b m h r s) into masked scores and weights."""
        num_nearest = self.num_behind + self.num_ahead
        logits = products[:, :, :num_nearest] + self.nearest_bias
        groups = [
            weigh_nearest(logits[:, :, : self.num_behind], geometry.not_behind, geometry.nearer_behind),
            weigh_nearest(logits[:, :, self.num_behind :], geometry.not_ahead, geometry.nearer_ahead),
        ]
        if penalty is not None:
            score = (products[:, :, num_nearest:] - penalty).masked_fill(geometry.not_around, MASKED_SCORE)
            with_nothing = nn.functional.pad(score, (0, 1))  # whose score is 0
            groups.append((score, with_nothing.softmax(-1)[..., :-1]))
        scores, weights = (torch.cat(tensors, 2) for tensors in zip(*groups))
        return scores, weights


def weigh_nearest(logits: Tensor, hidden: Tensor, is_nearer: Tensor) -> tuple[Tensor, Tensor]:
    """Weigh slots by the probability that each is the nearest one that matches.

    ``logits`` b m h r s of a match; ``hidden`` b m 1 r s. ``is_nearer`` s s is 1 where the slot of
    the first axis is nearer than that of the second. Returns the logits, masked, and the weights.
    """
    logits = logits.masked_fill(hidden, MASKED_SCORE)
    log_match = nn.functional.logsigmoid(logits)
    log_no_match = log_match - logits  # 0 where hidden
    return logits, (log_match + log_no_match @ is_nearer).exp()
