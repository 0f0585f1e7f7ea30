"""Choose and replace tokens for masked language modeling.

How tokens are chosen is a kind (``MASKINGS``); how they are replaced is the same for all kinds, but
a kind may replace all tokens of a span alike. Whether masks are static or dynamic depends on the
random numbers: equal keys give equal masks.

Shapes: b batch, n tokens, v random ids.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mnemic.models import IGNORE
from mnemic.objectives.pretraining.span_masking import NgramMasking, SpanMasking, shift_right
from mnemic.objectives.pretraining.token_masking import (
    EntityMasking,
    TokenMasking,
    TokensAndNgramsMasking,
    WordMasking,
    find_unit_starts,
)
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError

MASKINGS: dict[str, Callable[..., TokenMasking]] = {
    "tokens": TokenMasking,
    "tokens-and-ngrams": TokensAndNgramsMasking,
    "words": WordMasking,
    "entities": EntityMasking,
    "ngrams": NgramMasking,
    "spans": SpanMasking,
}


class ReplacementShares(NamedTuple):
    """Shares of chosen tokens: masked, and kept; the rest become random tokens."""

    mask: float = 0.8
    keep: float = 0.1


BERT_SHARES = ReplacementShares()
NUM_REPLACEMENT_UNIFORMS = 2  # per token: how is it replaced, by which random token


class MaskedRows(NamedTuple):
    """Rows of tokens after masking."""

    inputs: Tensor  # b n, ids
    targets: Tensor  # b n, the original ids of chosen tokens, else IGNORE
    mask: Tensor  # b n, True = chosen


def mask_rows(
    masking: TokenMasking,
    ids: Tensor,
    unmaskable: Tensor,
    word_starts: Tensor,
    keys: Tensor,
    *,
    mask_id: Tensor | int,
    random_ids: Tensor,
    shares: ReplacementShares = BERT_SHARES,
) -> MaskedRows:
    """Mask tokens (b n) with random numbers that the ``keys`` (b) of rows decide.

    Of the numbers of a token the first says whether it is chosen and the next two how it is
    replaced, for every kind; those that only some kinds need come after them.
    """
    count = NUM_REPLACEMENT_UNIFORMS + masking.num_uniforms
    uniforms = make_uniforms(keys, ids.shape[1], count)  # r b n
    replacement = uniforms[1 : 1 + NUM_REPLACEMENT_UNIFORMS]
    choice = torch.cat([uniforms[:1], uniforms[1 + NUM_REPLACEMENT_UNIFORMS :]])
    mask = masking(unmaskable, word_starts, choice)
    if masking.replaces_runs:
        replacement = torch.stack([replacement[0].gather(-1, find_run_starts(mask)), replacement[1]])
    inputs, targets = mask_tokens(ids, mask, replacement, mask_id=mask_id, random_ids=random_ids, shares=shares)
    return MaskedRows(inputs, targets, mask)


def find_run_starts(mask: Tensor) -> Tensor:
    """Find where each chosen token's run of chosen tokens begins: b n."""
    return find_unit_starts(mask & ~shift_right(mask))


def mask_tokens(
    ids: Tensor,
    mask: Tensor,
    uniforms: Tensor,
    *,
    mask_id: Tensor | int,
    random_ids: Tensor,
    shares: ReplacementShares = BERT_SHARES,
) -> tuple[Tensor, Tensor]:
    """Replace the tokens in ``mask``, by default 80 % by ``mask_id``, 10 % by random ids.

    Return the new ids and the targets: the original id of tokens in ``mask``, else IGNORE.
    ``ids``, ``mask``: b n; ``uniforms`` 2 b n; ``random_ids`` v: the ids to draw from.
    """
    action, choice = uniforms
    index = (choice * len(random_ids)).long().clamp(max=len(random_ids) - 1)
    inputs = torch.where(mask & (action < shares.mask), mask_id, ids)
    inputs = torch.where(mask & (action >= shares.mask + shares.keep), random_ids[index], inputs)
    return inputs, torch.where(mask, ids, IGNORE)


def check_shares(shares: ReplacementShares) -> None:
    """Raise an error unless the shares are shares, and not more than one together."""
    if not (0 <= shares.mask <= 1 and 0 <= shares.keep <= 1 and shares.mask + shares.keep <= 1):
        raise ConfigError(
            f"mask_share and keep_share are shares from 0 on, at most 1 together, not {shares.mask} and {shares.keep}"
        )
