"""The Star-Transformer: a ring of tokens around a relay that all of them share.

Shapes: b batch, n tokens, d width, h heads, c channels of one head.
"""

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.encode.attention.full import FullAttention, HeadProjection
from mnemic.encode.stacks.whole_text import check_whole_texts, gather_tokens, order_real_first, scatter_tokens
from mnemic.recipe import check_repeats

Variant = Literal["paper", "published"]


class RingAttention(nn.Module):
    """Attend from each token to its neighbors, its embedding and the relay.

    The context of token i is [h_{i−1}; h_i; h_{i+1}; e_i; s] (Guo et al. 2019, section 3).
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.project = HeadProjection(width, heads)

    def forward(self, x: Tensor, embeddings: Tensor, relay: Tensor, mask: Tensor) -> Tensor:
        """Attend from tokens to neighbors, their embeddings and the relay."""
        query = self.project.project_query(x)  # b h n c
        states, tokens, center = (self.project.project_key_values(source) for source in (x, embeddings, relay))
        neighbor_keys, neighbor_values = shift_both_ways(states.keys), shift_both_ways(states.values)
        keys = (*neighbor_keys, tokens.keys, center.keys)  # five times b h n|1 c
        values = (*neighbor_values, tokens.values, center.values)
        before, itself, after = shift_both_ways(mask.unsqueeze(1))  # b 1 n
        visible = torch.stack([before, itself, after, itself, torch.ones_like(itself)], -1)  # b 1 n 5
        scores = torch.stack([(query * key).sum(-1) for key in keys], -1) * query.shape[-1] ** -0.5  # b h n 5
        weights = scores.masked_fill(~visible, float("-inf")).softmax(-1)
        mixed = sum(weight.unsqueeze(-1) * value for weight, value in zip(weights.unbind(-1), values))
        return self.project.merge_heads(mixed)


class StarBlock(nn.Module):
    """One layer: the ring updates the tokens, then the star updates the relay."""

    def __init__(self, width: int, heads: int, *, variant: Variant, epsilon: float) -> None:
        super().__init__()
        self.is_published = variant == "published"
        self.ring = RingAttention(width, heads)
        self.star = FullAttention(width, heads=heads, fused=False)  # one query
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.relay_norm = nn.Identity() if self.is_published else nn.LayerNorm(width, eps=epsilon)

    def forward(self, x: Tensor, embeddings: Tensor, relay: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Update tokens b n d and relay b 1 d; ``mask`` b n."""
        if self.is_published:
            x = nn.functional.leaky_relu(self.ring(self.norm(x), embeddings, relay, mask))
        else:
            x = self.norm(self.ring(x, embeddings, relay, mask).relu())
        context = torch.cat([relay, x], 1)  # b 1+n d
        visible = nn.functional.pad(mask, (1, 0), value=True)[:, None, None]  # b 1 1 1+n
        relay = self.star(relay, context, visible)
        relay = nn.functional.leaky_relu(relay) if self.is_published else self.relay_norm(relay.relu())
        return x, relay


class StarStack(nn.Module):
    """The Star-Transformer (Guo et al. 2019, section 3), at a cost linear in the length.

    Each token sees its two neighbors, its own embedding and the relay; the relay sees all tokens. A
    layer is h = norm(relu(attention)), with weights of its own for ring and star, and without
    residual or feed-forward network. Neighbors give the order: no positions are needed.
    ``variant="published"`` is what the authors published as code: the norm comes before the ring's
    attention, the relay has none, and the activation is leaky.

    Where we differ: a text has states of its tokens alone here, so the last relay is added to each,
    after a linear map. Pooled with ``pool = "max"``, that is the paper's MLP([s; max H]); the
    published code adds and halves, and so does that variant. What is beyond the ends of a text is
    hidden, and so is padding; in the published code both are keys of zeros.
    """

    supports_packing = supports_context = False
    max_length = None

    def __init__(
        self, width: int, *, depth: int = 2, heads: int = 4, variant: Variant = "paper", epsilon: float = 1e-5
    ) -> None:
        super().__init__()
        check_repeats(depth=depth)
        self.blocks: Any = nn.ModuleList(
            StarBlock(width, heads, variant=variant, epsilon=epsilon) for _ in range(depth)
        )
        self.add_relay = None if variant == "published" else nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Run all layers; the relay is added at the end."""
        check_whole_texts("star", mask, context)
        order = order_real_first(mask)
        *_, (states, relay) = self.run_blocks(gather_tokens(x, order), mask.gather(1, order))
        states = (states + relay) / 2 if self.add_relay is None else states + self.add_relay(relay)
        return scatter_tokens(states, order) * mask.unsqueeze(-1)

    def iterate_layers(self, x: Tensor, mask: Tensor, context: None = None) -> Iterator[Tensor]:
        """Yield the input, then the tokens' states after each layer, without the relay."""
        check_whole_texts("star", mask, context)
        order = order_real_first(mask)
        for states, _ in self.run_blocks(gather_tokens(x, order), mask.gather(1, order)):
            yield scatter_tokens(states, order)

    def run_blocks(self, x: Tensor, mask: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield tokens and relay before the first layer and after each; padding comes last."""
        embeddings, real = x, mask.unsqueeze(-1).to(x.dtype)  # b n 1
        relay = (x * real).sum(1, keepdim=True) / real.sum(1, keepdim=True).clamp(min=1)  # b 1 d
        yield x, relay
        for block in self.blocks:
            x, relay = block(x, embeddings, relay, mask)
            yield x, relay


def shift_both_ways(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the values before each token, at it and after it; zeros beyond the ends.

    Tokens are axis 2: b h n c, or b 1 n.
    """
    length = x.shape[2]
    padded = nn.functional.pad(x, (0,) * (2 * (x.dim() - 3)) + (1, 1))
    return padded[:, :, :length], x, padded[:, :, 2:]
