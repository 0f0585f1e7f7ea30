"""MemNN, the first memory network, with hard reads (Weston et al. 2015a, 2015b).

a: Memory Networks, arXiv:1410.3916. b: the bAbI tasks, arXiv:1502.05698, with AM, NG and NL.

Shapes: b batch, n inputs, m queries, s slots, c candidates (the slots, then "nothing"), k hops,
h heads (2 with write times, else 1), t tables (5), f facts, d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory.append import AppendMemory, Slots, append_inputs
from mnemic.memory.contract import MASKED_SCORE, Reading, ReadLabels, Written
from mnemic.memory.parts.contest import PairwiseScores, WriteTimeScorer, find_winner, margins_over, pair_without_time
from mnemic.memory.parts.forget import FORGETS
from mnemic.memory.parts.match import MATCHES
from mnemic.recipe import build, check_repeats

DEFAULT_MATCH: Mapping[str, Any] = {"kind": "linear"}
DEFAULT_FORGET: Mapping[str, Any] = {"kind": "oldest"}
QUESTION, FACT, CANDIDATE, QUESTION_R, FACT_R = range(5)  # the tables: dictionaries of O, then of R


class MemNN(AppendMemory):
    """Append sentences; each hop reads the best match of the question and earlier facts.

    ``o₁ = argmax s_O(x, mᵢ)``, ``o₂ = argmax s_O([x, m_o₁], mᵢ)`` … (a, eqs. 2 and 3), and
    ``found`` is UΦ([x, m_o₁, …]) in the dictionaries of R. Words of the question, of facts read
    and of candidates have separate vectors: these are the encoder's tables.
    ``match`` is the embedding E in ``s = E(x)·E(y)``; any other than ``linear`` is NL of b.
    ``time``: two memories are also compared by their time of writing (``memory.parts.contest``).
    ``stop`` adds the candidate "nothing": once it is selected, no later hop reads (AM of b).
    ``forget`` is H: which sentences leave a full memory (``memory.parts.forget``).
    ``order`` gives each hop a gain per channel, initially 1 ± ``order``, for the fact it reads:
    then [x, m_o₁, m_o₂] is not [x, m_o₂, m_o₁]. The papers have no such gain (``order=0``).

    Where we differ: time features are added after E, not before it, and "nothing" has no time.

    ``scores`` are relative to the slot that was read, whose score is 0; ``nothing`` likewise.
    """

    num_tables = 5
    labels = ReadLabels(
        "hop {}",
        "Each hop read one slot and no other; how much of each sentence is in it.",
        "(nothing: it had read enough)",
    )

    def __init__(
        self,
        width: int,
        *,
        hops: int = 2,
        slots: int = 50,
        time: bool = True,
        stop: bool = False,
        match: Mapping[str, Any] = DEFAULT_MATCH,
        order: float = 0.0,
        forget: Mapping[str, Any] = DEFAULT_FORGET,
    ) -> None:
        super().__init__()
        check_repeats(hops=hops)
        if hops < 1 or slots < 1:
            raise ValueError(f"memnn takes hops and slots ≥ 1, not {hops = }, {slots = }")
        self.hops, self.num_slots = hops, slots
        self.match = build(MATCHES, match, width=width)
        self.times = WriteTimeScorer(width) if time else None
        self.forget = build(FORGETS, forget, width=width)
        self.gains = nn.Parameter(1 + order * torch.randn(2, hops, width)) if order else None
        self.nothing = nn.Parameter(torch.randn(width) * 0.1) if stop else None

    def write(self, state: Slots, states: Tensor, mask: Tensor) -> Written:
        """Append the inputs as new slots; ``forget`` decides which slots leave."""
        return append_inputs(state, states, mask, max_slots=self.num_slots, salience=self.forget.score_salience)

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read one slot per hop with ``query`` (b m 5 d), or read the ``teacher_slots``.

        ``teacher_slots`` are b m f. A slot below 0 is "nothing" for a memory that can stop; any
        other memory reads its last fact again. A teacher-forced read that can stop ends one hop
        after the longest chain of facts.
        """
        candidates, mask = self.encode_candidates(state, query)  # b c d, b m c
        slot_indices = torch.arange(mask.shape[-1] - 1, device=mask.device)  # s
        read_query, response_query = query[:, :, QUESTION], query[:, :, QUESTION_R]  # b m d
        no_slot = torch.full(mask.shape[:2], mask.shape[-1] - 1, device=mask.device)  # b m
        last_slot = no_slot
        scores, weights = [], []
        num_hops = self.hops
        if teacher_slots is not None and self.nothing is not None:
            num_hops = min(num_hops, teacher_slots.shape[-1] + 1)
        for hop in range(num_hops):
            pair_scores = self.score_candidates(self.match(read_query), candidates, last_slot)
            selected = last_slot if self.nothing is None else no_slot
            if teacher_slots is None or (self.nothing is None and not hop):
                selected = self.select_candidate(pair_scores, mask)
            if teacher_slots is not None and hop < teacher_slots.shape[-1]:
                selected = torch.where(teacher_slots[..., hop] >= 0, teacher_slots[..., hop], selected)
            if self.nothing is not None and hop:
                selected = torch.where(last_slot == no_slot, no_slot, selected)  # once stopped, always stopped
            weight = (selected.unsqueeze(-1) == slot_indices).to(read_query.dtype)  # b m s
            read_query = read_query + self.hop_gain(0, hop) * (weight @ state.states[:, :, FACT])
            response_query = response_query + self.hop_gain(1, hop) * (weight @ state.states[:, :, FACT_R])
            scores.append(margins_over(pair_scores, selected).masked_fill(~mask.unsqueeze(1), MASKED_SCORE))
            weights.append(weight)
            last_slot = selected
        heads = 1 if self.times is None else 2
        score = torch.stack(scores, 1)[:, :, :heads]  # b k h m c
        weight = torch.stack(weights, 1).unsqueeze(2).expand(-1, -1, heads, -1, -1)
        nothing = None if self.nothing is None else score[..., -1]
        salience = self.forget.score_salience(state.states)
        if salience is not None:
            salience = salience.masked_fill(~state.mask, MASKED_SCORE)  # b s
        return Reading(response_query, weight, score[..., :-1], nothing=nothing, salience=salience)

    def hop_gain(self, stage: int, hop: int) -> Tensor | float:
        """Return the gain (d) of a hop's fact, for stage 0 (O) or 1 (R)."""
        return 1.0 if self.gains is None else self.gains[stage, hop]

    def encode_candidates(self, state: Slots, query: Tensor) -> tuple[Tensor, Tensor]:
        """Embed all slots and "nothing" (b c d); mask the invalid ones (b m c)."""
        slots = state.states[:, :, CANDIDATE]  # b s d
        nothing = slots.new_zeros(slots.shape[-1]) if self.nothing is None else self.nothing
        vectors = torch.cat([slots, nothing.expand(slots.shape[0], 1, -1)], 1)
        nothing_mask = state.mask.new_full((slots.shape[0], 1), self.nothing is not None)
        mask = torch.cat([state.mask, nothing_mask], 1).unsqueeze(1)  # b 1 c
        return self.match(vectors), mask.expand(*query.shape[:2], -1)

    def score_candidates(self, query: Tensor, candidates: Tensor, last_slot: Tensor) -> PairwiseScores:
        """Score all candidates against the query (b m d), with write times if used."""
        scores = query @ candidates.mT  # b m c
        return pair_without_time(scores) if self.times is None else self.times(query, scores, last_slot)

    def select_candidate(self, scores: PairwiseScores, mask: Tensor) -> Tensor:
        """Select the best candidate: its index (b m)."""
        if self.times is not None:
            return find_winner(scores, mask)
        best = scores.as_winner.masked_fill(~mask, MASKED_SCORE).argmax(-1)
        return torch.where(mask.any(-1), best, mask.shape[-1] - 1)
