"""Arrange the tokens of texts: keep some, insert others, change their order.

Shapes: b batch, n tokens, p tokens to insert, m tokens of a stretch.
"""

import torch
from torch import Tensor

from mnemic.data.batches import locate_tokens
from mnemic.objectives.noises.contract import INSERTED, NoisyTexts

LAST = 2**62  # a key after those of all tokens
SOURCE_FIELDS = ("tokens", "is_fixed", "word_starts", "origins")


def keep_tokens(texts: NoisyTexts, keep: Tensor) -> NoisyTexts:
    """Keep the tokens of sources in ``keep`` (b n), in their order; padding goes."""
    return sort_tokens(texts, torch.arange(keep.shape[1], device=keep.device).expand_as(keep), keep & texts.mask)


def insert_tokens(texts: NoisyTexts, keep: Tensor, tokens: Tensor, before: Tensor, is_real: Tensor) -> NoisyTexts:
    """Insert ordinary ``tokens`` (b p) among the tokens in ``keep``.

    Each comes before the position ``before``; ``is_real`` (b p) marks those to be inserted.
    """
    columns = torch.arange(keep.shape[1], device=keep.device).expand_as(keep)
    wide = texts._replace(
        tokens=torch.cat([texts.tokens, tokens], 1),
        is_fixed=torch.cat([texts.is_fixed, torch.zeros_like(is_real)], 1),
        word_starts=torch.cat([texts.word_starts, torch.ones_like(is_real)], 1),
        origins=torch.cat([texts.origins, torch.full_like(tokens, INSERTED)], 1),
    )
    keys = torch.cat([2 * columns + 1, 2 * before], 1)
    return sort_tokens(wide, keys, torch.cat([keep & texts.mask, is_real], 1))


def sort_tokens(texts: NoisyTexts, keys: Tensor, keep: Tensor) -> NoisyTexts:
    """Sort the tokens of sources by ``keys``; leave out those not in ``keep``."""
    counts = keep.sum(1)
    width = max(int(counts.max()), 1)
    order = keys.masked_fill(~keep, LAST).argsort(dim=1, stable=True)[:, :width]
    mask = torch.arange(width, device=keys.device) < counts.unsqueeze(1)
    values = {name: getattr(texts, name).gather(1, order) for name in SOURCE_FIELDS}
    values = {name: value.masked_fill(~mask, 0) for name, value in values.items()}
    return texts._replace(**values, mask=mask)


def sort_ordinary(texts: NoisyTexts, keys: Tensor) -> NoisyTexts:
    """Sort the ordinary tokens by ``keys`` (b n, below 2^62); special tokens stay."""
    is_ordinary = texts.is_ordinary
    slots = (~is_ordinary).long().argsort(dim=1, stable=True)  # columns of ordinary tokens, then the others
    order = keys.masked_fill(~is_ordinary, LAST).argsort(dim=1, stable=True)
    index = torch.empty_like(order).scatter(1, slots, order)
    return texts._replace(**{name: getattr(texts, name).gather(1, index) for name in SOURCE_FIELDS})


def number_ordinary(texts: NoisyTexts) -> tuple[Tensor, Tensor]:
    """Number the ordinary tokens of each text, b n (others -1), and count them, b."""
    is_ordinary = texts.is_ordinary
    numbers = (is_ordinary.cumsum(1) - 1).masked_fill(~is_ordinary, -1)
    return numbers, is_ordinary.sum(1)


def find_columns(numbers: Tensor) -> Tensor:
    """Find the column of each ordinary token by its number, b n; else 0."""
    width = numbers.shape[1]
    columns = torch.arange(width, device=numbers.device).expand_as(numbers)
    slots = torch.where(numbers < 0, width, numbers)
    return columns.new_zeros(len(numbers), width + 1).scatter(1, slots, columns)[:, :width]


def cut_stretch(values: Tensor, starts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Cut ``lengths`` values from the columns ``starts`` on, with their mask: b m each."""
    columns, mask = locate_tokens(starts, lengths)
    return values.gather(1, columns.clamp(max=values.shape[1] - 1)).masked_fill(~mask, 0), mask
