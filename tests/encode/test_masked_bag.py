"""The masked bag of words: a mask per position and table; counts equal lookups."""

import pytest
import torch

from mnemic.encode.texts import masked_bag
from mnemic.encode.texts.masked_bag import MaskedBag

# The masked bag --------------------------------------------------------------------------------


def test_a_bag_of_words_at_first() -> None:
    encode = MaskedBag(5, 20, tables=2, max_length=8)
    tokens, mask = torch.randint(20, (7, 6)), torch.rand(7, 6) < 0.7
    summed = (encode.words[tokens] * mask.unsqueeze(-1)).sum(1)
    states = encode(tokens, mask)
    torch.testing.assert_close(states, summed.unsqueeze(1).expand(-1, 2, -1))
    torch.manual_seed(0)
    masks = MaskedBag(5, 20, tables=2, init="noise").masks
    assert masks[0].abs().max() < 0.5
    assert masks[1].eq(1).all()


def test_each_position_and_table_has_its_mask() -> None:
    encode = MaskedBag(5, 20, tables=2, max_length=8)
    with torch.no_grad():
        encode.masks.copy_(torch.randn_like(encode.masks))
    tokens, mask = torch.randint(20, (7, 6)), torch.rand(7, 6) < 0.7
    states = encode(tokens, mask)
    for text in range(7):
        for table in range(2):
            expected = torch.zeros(5)
            for position in range(6):
                if mask[text, position]:
                    expected += encode.masks[table, position] * encode.words[tokens[text, position]]
            torch.testing.assert_close(states[text, table], expected)


def test_counting_words_equals_looking_them_up(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = MaskedBag(5, 20, tables=2, max_length=8).double()
    tokens, mask = torch.randint(20, (7, 6)), torch.rand(7, 6) < 0.7
    weights = torch.randn(7, 2, 5, dtype=torch.float64)
    counted = encode(tokens, mask)
    monkeypatch.setattr(masked_bag, "MAX_DENSE_VOCAB", 19)
    monkeypatch.setattr(encode, "sum_by_one_hot", None)
    looked_up = encode(tokens, mask)
    torch.testing.assert_close(counted, looked_up)
    first, second = (
        torch.autograd.grad((states * weights).sum(), list(encode.parameters())) for states in (counted, looked_up)
    )
    torch.testing.assert_close(first, second)


def test_padding_changes_no_text_and_too_long_a_text_is_refused() -> None:
    encode = MaskedBag(5, 20, max_length=8)
    tokens = torch.randint(20, (3, 4))
    padded = torch.cat([tokens, torch.randint(20, (3, 4))], 1)
    mask = torch.arange(8).expand(3, -1) < 4
    torch.testing.assert_close(encode(padded, mask), encode(tokens, mask[:, :4]))
    with pytest.raises(ValueError, match="9 words"):
        encode(torch.zeros(1, 9, dtype=torch.long), torch.ones(1, 9) > 0)
