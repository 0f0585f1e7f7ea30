"""Whether a token is in the other text of its pair, too (ERNIE 2).

Shapes: b batch, n tokens.
"""

from typing import Any

from torch import Tensor, nn

from mnemic.recipe import ConfigError


def find_repeated_tokens(tokens: Tensor, segments: Tensor, unmaskable: Tensor) -> Tensor:
    """Mark tokens that are in both texts of a pair: b n."""
    is_same = (tokens.unsqueeze(2) == tokens.unsqueeze(1)) & (segments.unsqueeze(2) != segments.unsqueeze(1))  # b n n
    return (is_same & ~unmaskable.unsqueeze(1)).any(2) & ~unmaskable


def sum_repeat_losses(logits: Tensor | None, batch: Any, rate: float) -> Tensor:
    """Sum the binary cross-entropies of all tokens of pairs, each times ``rate``.

    ``logits`` b n. As many tokens are masked on average as ``rate`` times those that are asked, so
    that a mean over masked tokens is one over these.
    """
    if logits is None:
        raise ConfigError(
            "objective.repeats is above 0, but the network has no head for it: set model.respond.repeats=true and a "
            "format of pairs, or objective.repeats=0"
        )
    labels = find_repeated_tokens(batch.tokens, batch.segments, batch.unmaskable)
    losses = nn.functional.binary_cross_entropy_with_logits(logits.float(), labels.float(), reduction="none")
    is_pair = ((batch.segments == 1) & ~batch.unmaskable).any(1, keepdim=True)  # b 1
    return rate * losses.masked_fill(batch.unmaskable | ~is_pair, 0).sum()
