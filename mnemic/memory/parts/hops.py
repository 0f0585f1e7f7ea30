"""Multi-hop attention over slots that are vectors.

Shapes: b batch, m queries, s slots, k hops, h heads, d width, c channels of one head.
"""

import torch
from torch import Tensor, nn

from mnemic.memory.contract import MASKED_SCORE, Reading
from mnemic.recipe import ConfigError, check_repeats


class MultiHopAttention(nn.Module):
    """Attend over the slots in several hops; each hop's output updates the query.

    ``q ← norm(q + o_i)``, and the result is Σ o_i, without the query itself, so that all of it
    comes from memory. ``similarity_first``: queries and slots are normalized, and the projections
    of queries and keys start as the identity, so that a read starts with the slots most similar to
    the query: for an encoder whose similarities are already useful.
    """

    def __init__(self, width: int, *, hops: int, heads: int, similarity_first: bool = False) -> None:
        super().__init__()
        check_repeats(hops=hops)
        if hops < 1 or heads < 1 or width % heads:
            raise ConfigError(
                f"reading takes hops ≥ 1, and heads that divide the width {width}, not {hops = }, {heads = }"
            )
        self.heads = heads
        self.asks, self.keys, self.values, self.joins = (
            nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(hops)) for _ in range(4)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(hops - 1))
        self.of_query, self.of_slots = (nn.LayerNorm(width) if similarity_first else nn.Identity() for _ in range(2))
        for layer in [*self.asks, *self.keys] if similarity_first else []:
            nn.init.eye_(layer.weight)

    def forward(
        self,
        contents: Tensor,
        mask: Tensor,
        query: Tensor,
        salience: Tensor | None = None,
        values: Tensor | None = None,
    ) -> Reading:
        """Read slots (``contents`` b s d, ``mask`` b s) with queries (``query`` b m d).

        ``salience`` b s is added to all scores. ``values`` b s d replace ``contents`` as values.
        If all slots are masked, the result is zero.
        """
        slot_mask = mask[:, None, None]  # b 1 1 s
        value_inputs = contents if values is None else values
        contents = self.of_slots(contents)
        total_output, scores, weights = torch.zeros_like(query), [], []
        for hop, (ask, key, value, join) in enumerate(zip(self.asks, self.keys, self.values, self.joins)):
            q, k, v = (
                self.split_heads(tensors) for tensors in (ask(self.of_query(query)), key(contents), value(value_inputs))
            )
            score = (q @ k.mT).float() * q.shape[-1] ** -0.5  # b h m s
            score = score if salience is None else score + salience[:, None, None]
            score = score.masked_fill(~slot_mask, MASKED_SCORE)
            weight = score.softmax(-1) * slot_mask
            output = join((weight.to(v.dtype) @ v).transpose(1, 2).flatten(2))  # b m d
            total_output = total_output + output
            if hop < len(self.norms):
                query = self.norms[hop](query + output)
            scores.append(score)
            weights.append(weight)
        dtype = query.dtype
        stacked = (torch.stack(tensors, 1).to(dtype) for tensors in (weights, scores))
        return Reading(total_output, *stacked)

    def split_heads(self, x: Tensor) -> Tensor:
        """Split the channels into heads."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # b n d → b h n c
