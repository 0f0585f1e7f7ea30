"""Reading slots over several hops, for memories whose slots are vectors.

Shapes: b batch, m queries, s slots, k hops, h heads, d width, c channels of one head.
"""

import torch
from torch import Tensor, nn

from mnemic.memory.contract import Reading
from mnemic.recipe import ConfigError

HIDDEN = -1e30  # the score of a slot that may not be seen


class Hops(nn.Module):
    """Each hop attends over the slots with several heads; what it found moves the next query.

    ``q ← norm(q + o_i)``, and what was found is Σ o_i: the query itself is not in it, so all that
    it says comes from memory. ``alike``: queries and slots are normalised, and what compares them
    begins as the identity, so that a read begins with the slots most like the query: for an encoder
    that already puts what belongs together close together.
    """

    def __init__(self, width: int, *, hops: int, heads: int, alike: bool = False) -> None:
        super().__init__()
        if hops < 1 or heads < 1 or width % heads:
            raise ConfigError(
                f"reading takes hops ≥ 1, and heads that divide the width {width}, not "
                f"{hops = }, {heads = }"
            )
        self.heads = heads
        self.asks, self.keys, self.values, self.joins = (
            nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(hops))
            for _ in range(4)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(hops - 1))
        self.of_query, self.of_slots = (
            nn.LayerNorm(width) if alike else nn.Identity() for _ in range(2)
        )
        for part in [*self.asks, *self.keys] if alike else []:
            nn.init.eye_(part.weight)

    def forward(
        self,
        contents: Tensor,
        mask: Tensor,
        query: Tensor,
        worth: Tensor | None = None,
        values: Tensor | None = None,
    ) -> Reading:
        """``contents`` b s d, ``mask`` b s, ``query`` b m d; ``worth`` b s is added to all scores.

        ``values`` b s d are what is given, if not what is looked at. Without a slot to see, nothing
        is found.
        """
        seen = mask[:, None, None]  # b 1 1 s
        given = contents if values is None else values
        contents = self.of_slots(contents)
        found, scores, weights = torch.zeros_like(query), [], []
        for hop, (ask, key, value, join) in enumerate(
            zip(self.asks, self.keys, self.values, self.joins)
        ):
            asked, looked, held = (
                self.split(part)
                for part in (ask(self.of_query(query)), key(contents), value(given))
            )
            score = (asked @ looked.mT).float() * asked.shape[-1] ** -0.5  # b h m s
            score = score if worth is None else score + worth[:, None, None]
            score = score.masked_fill(~seen, HIDDEN)
            weight = score.softmax(-1) * seen
            output = join((weight.to(held.dtype) @ held).transpose(1, 2).flatten(2))  # b m d
            found = found + output
            if hop < len(self.norms):
                query = self.norms[hop](query + output)
            scores.append(score)
            weights.append(weight)
        kind = query.dtype
        stacked = (torch.stack(part, 1).to(kind) for part in (weights, scores))
        return Reading(found, *stacked)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # b n d → b h n c
