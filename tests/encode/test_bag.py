"""The bag of words: counts equal lookups, padding is ignored, order matters only with positions."""

import pytest
import torch

from mnemic.encode.texts import bag
from mnemic.encode.texts.bag import Bag

# The bag of words ------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [True, False])
def test_counting_words_equals_looking_them_up(position: bool) -> None:
    encode = Bag(5, 20, tables=3, max_length=8, position=position).double()
    tokens = torch.randint(20, (7, 6))
    mask = torch.rand(7, 6) < 0.7
    counted, looked_up = encode.sum_by_counts(tokens, mask), encode.sum_by_lookup(tokens, mask)
    assert counted.shape == (7, 3, 5)
    torch.testing.assert_close(counted, looked_up)
    weights = torch.randn(7, 3, 5, dtype=torch.float64)
    tables = list(encode.tables)
    first = torch.autograd.grad((counted * weights).sum(), tables)
    second = torch.autograd.grad((looked_up * weights).sum(), tables)
    torch.testing.assert_close(first, second)


def test_large_vocabularies_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Bag(5, 20, max_length=8)
    tokens, mask = torch.randint(20, (7, 6)), torch.ones(7, 6, dtype=torch.bool)
    dense = encode(tokens, mask)
    monkeypatch.setattr(bag, "MAX_DENSE_VOCAB", 19)
    monkeypatch.setattr(encode, "sum_by_counts", None)
    torch.testing.assert_close(encode(tokens, mask), dense)


def test_a_masked_word_counts_nothing_and_padding_behind_changes_nothing() -> None:
    encode = Bag(5, 20, max_length=8)
    tokens = torch.randint(20, (3, 4))
    padded = torch.cat([tokens, torch.randint(20, (3, 5))], 1)
    mask = torch.arange(9).expand(3, -1) < 4
    torch.testing.assert_close(encode(padded, mask), encode(tokens, mask[:, :4]))
    assert encode(padded, torch.zeros_like(mask)).eq(0).all()


def test_order_matters_only_with_position() -> None:
    words, reversed_words, mask = torch.tensor([[2, 3, 4]]), torch.tensor([[4, 3, 2]]), torch.ones(1, 3) > 0
    with_positions, without_positions = Bag(5, 20), Bag(5, 20, position=False)
    assert not torch.allclose(with_positions(words, mask), with_positions(reversed_words, mask))
    torch.testing.assert_close(without_positions(words, mask), without_positions(reversed_words, mask))
