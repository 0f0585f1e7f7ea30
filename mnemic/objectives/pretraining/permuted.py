"""Permuted language modeling: tokens are predicted in a random order (XLNet).

Shapes: b batch, n tokens, s spans, t asked tokens of a text, m asked tokens of the batch.
"""

from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.packed import find_true_positions
from mnemic.encode.stacks.two_stream import SEEN_BY_ALL, FactorizationOrder
from mnemic.models import IGNORE, WindowBatch
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.pretraining.masked import MAX_DEVIATIONS, MaskedBatch, masked_token_loss
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError

NUM_UNIFORMS = 3  # per token: lengths of spans, what is before them, the order


@dataclass(frozen=True, kw_only=True)
class AskedSpans:
    """Choose spans of 1 to ``max_span`` tokens, each among ``context`` times as many others.

    A length has a probability proportional to its inverse, and a span's others are rounded down. So
    1 of ``context`` + 1 tokens is asked, the 1/K of Yang et al. 2019, section 2.3; lengths are
    those of the authors' code. Where we differ from it: spans are of tokens and not of whole words,
    and no further tokens are asked to reach the same number in each text.
    """

    context: float = 6.0
    max_span: int = 5

    def __post_init__(self) -> None:
        if self.context < 1 or self.max_span < 1:
            raise ConfigError(
                f"objective.context and objective.max_span are at least 1, not {self.context} and {self.max_span}"
            )

    def __call__(self, uniforms: Tensor) -> Tensor:
        """Choose tokens by uniform numbers, 2 b n → b n."""
        num_tokens = uniforms.shape[-1]
        num_spans = floor(num_tokens / (1 + floor(self.context))) + 1  # enough for the shortest ones
        length_uniforms, start_uniforms = uniforms[..., :num_spans]  # b s
        weights = 1 / torch.arange(1, self.max_span + 1, device=uniforms.device)
        bounds = (weights.cumsum(0) / weights.sum())[:-1]
        lengths = torch.bucketize(length_uniforms.contiguous(), bounds, right=True) + 1  # b s
        num_others = (lengths * self.context).long()
        block_ends = (lengths + num_others).cumsum(-1)
        starts = block_ends - lengths - num_others + (start_uniforms * num_others).long()
        edges = torch.zeros(uniforms.shape[1], num_tokens + 1, dtype=torch.long, device=uniforms.device)
        edges = edges.scatter_add(1, starts.clamp(max=num_tokens), torch.ones_like(starts))
        edges = edges.scatter_add(1, (starts + lengths).clamp(max=num_tokens), -torch.ones_like(starts))
        return edges.cumsum(1)[:, :-1] > 0

    def limit(self, num_tokens: int) -> int:
        """The largest number of tokens that a text of so many tokens is asked for."""
        return min(ceil(num_tokens / (1 + floor(self.context))) + self.max_span, num_tokens)


class PermutedLoss:
    """Predict tokens in a random order, each from those before it (XLNet).

    Yang et al. 2019, equation 3 and section 2.3, arXiv:1906.08237. Arguments are those of
    ``AskedSpans``, and ``block``: tokens are ordered within blocks of so many, one block after the
    other; 0: all at once. Tokens that are not asked come first, and all see them; special tokens
    are ordered, but never asked. Where we differ: sequences have no memory of others, and [CLS]
    stays at the front, in segment 0, where the heads of later tasks read it.
    """

    replaces = "masked"

    def __init__(self, *, context: float = 6.0, max_span: int = 5, block: int = 0) -> None:
        self.choose_spans = AskedSpans(context=context, max_span=max_span)
        if block < 0:
            raise ConfigError(f"objective.block is a number of tokens, or 0 for all, not {block}")
        self.block = block

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        permuted = permute_batch(batch, self.choose_spans, self.block)
        total, num_targets, *_ = masked_token_loss(network(permuted.inputs).logits, permuted)
        return Loss(total, num_targets, carried)


def permute_batch(batch: Any, choose_spans: AskedSpans, block: int = 0) -> MaskedBatch:
    """Choose asked tokens of a batch and their order; the tokens stay as they are."""
    num_tokens = batch.tokens.shape[1]
    uniforms = make_uniforms(batch.mask_seeds, num_tokens, NUM_UNIFORMS)  # 3 b n
    is_asked = choose_spans(uniforms[:2]) & ~batch.unmaskable
    ranks = draw_ranks(uniforms[2], block)
    ranks = ranks.masked_fill(~is_asked & ~batch.unmaskable, SEEN_BY_ALL)
    if batch.max_tokens:
        max_asked = choose_spans.limit(num_tokens)  # of each text
        mean_count = batch.max_tokens / (1 + floor(choose_spans.context))
        max_count = ceil(mean_count + MAX_DEVIATIONS * sqrt(mean_count))
        positions = find_true_positions(is_asked, min(max_count, max_asked * len(is_asked)))  # m
    else:
        max_asked = max(int(is_asked.sum(1).max()), 1)
        positions = is_asked.flatten().nonzero().squeeze(1)
    padded_targets = torch.cat([batch.tokens.flatten(), batch.tokens.new_full((1,), IGNORE)])
    order = FactorizationOrder(ranks, list_queries(is_asked, max_asked))
    windows = WindowBatch(batch.tokens, batch.mask, batch.segments, positions, batch.max_tokens, order=order)
    return MaskedBatch(windows, padded_targets[positions])


def draw_ranks(uniforms: Tensor, block: int) -> Tensor:
    """Draw a permutation of each row, b n; block by block, unless ``block`` is 0."""
    positions = torch.arange(uniforms.shape[1], device=uniforms.device)
    numbers = positions // block if block else torch.zeros_like(positions)
    order = uniforms.argsort(dim=-1, stable=True)
    order = order.gather(1, numbers.expand_as(order).gather(1, order).argsort(dim=-1, stable=True))
    return order.argsort(dim=-1)


def list_queries(is_asked: Tensor, limit: int) -> Tensor:
    """List the positions of each row's first ``limit`` asked tokens, b t; n = none."""
    positions = torch.arange(is_asked.shape[1], device=is_asked.device)
    return torch.where(is_asked, positions, is_asked.shape[1]).sort(-1).values[:, :limit]
