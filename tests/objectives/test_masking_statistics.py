"""Choices of single tokens and whole words, by χ² on 100,000 of them."""

import pytest
import torch
from chi_square import fits
from scipy.stats import binom

from mnemic.objectives.pretraining.masking import MASKINGS, mask_rows
from mnemic.recipe import build

ROWS, LENGTH, MASK_ID = 5_000, 22, 4
ORDINARY = torch.arange(5, 30)


def choose(kind: str, word_length: int) -> torch.Tensor:
    """Choose tokens of rows between two special ones, whose words have equal lengths: b n."""
    tokens = torch.randint(5, 30, (ROWS, LENGTH), generator=torch.Generator().manual_seed(0))
    unmaskable = torch.zeros_like(tokens, dtype=torch.bool)
    unmaskable[:, [0, -1]] = True
    word_starts = ((torch.arange(LENGTH) - 1) % word_length == 0).expand(ROWS, LENGTH) | unmaskable
    rows = mask_rows(
        build(MASKINGS, {"kind": kind}), tokens, unmaskable, word_starts, torch.arange(ROWS),
        mask_id=MASK_ID, random_ids=ORDINARY,
    )  # fmt: skip
    assert not (rows.mask & unmaskable).any()
    assert torch.equal(torch.where(rows.mask, rows.targets, rows.inputs), tokens)  # it can be undone
    return rows.mask[:, 1:-1]


@pytest.mark.parametrize("kind", ["tokens", "words", "entities"])
@pytest.mark.parametrize("word_length", [1, 4])
def test_units_are_chosen_independently_at_the_rate(kind: str, word_length: int) -> None:
    """The number of chosen units of a row is binomial, and all places are equally likely."""
    mask = choose(kind, word_length)
    unit = 1 if kind == "tokens" else word_length
    units = mask.unflatten(1, (-1, unit))
    assert torch.equal(units.all(2), units.any(2))
    num_units = units.shape[1]
    counts = torch.bincount(units.all(2).sum(1), minlength=num_units + 1)
    limit = min(num_units - 1, 6)
    expected = torch.tensor([binom.pmf(count, num_units, 0.15) for count in range(num_units + 1)])
    pooled = torch.cat([counts[:limit], counts[limit:].sum().unsqueeze(0)])
    assert fits(pooled, torch.cat([expected[:limit], expected[limit:].sum().unsqueeze(0)]))
    assert fits(units.all(2).sum(0), [1 / num_units] * num_units)
