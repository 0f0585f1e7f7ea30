"""Generated copying: both halves are equal, and only the second is predicted."""

import pytest
import torch

from mnemic.data.language_modeling.batches import END
from mnemic.data.language_modeling.copies import GeneratedCopies
from mnemic.models import IGNORE
from mnemic.recipe import ConfigError

SMALL = {"length": 16, "count": 50, "validation_size": 10, "test_size": 20}


def test_a_text_is_two_equal_halves_after_a_start() -> None:
    data = GeneratedCopies(**SMALL).load()
    batch = data.train.batch(torch.arange(50))
    assert batch.inputs.tokens.shape == (50, 16)
    assert len(data.tokenizer) == 2 + 1 + 128
    for tokens, targets in zip(batch.inputs.tokens.tolist(), batch.targets.tolist()):
        end, *words = data.tokenizer.decode(tokens).split()
        assert end == END
        assert words[0] == words[8] == "0"
        assert words[1:8] == [*words[9:], data.tokenizer.decode(targets[-1:])]
        assert all(1 <= int(word) <= 127 for word in words[1:8])
        assert targets[:9] == [IGNORE] * 9
        assert targets[9:15] == tokens[10:]  # 0 is no target: it is no part of w


def test_splits_and_seeds_have_texts_of_their_own() -> None:
    data = GeneratedCopies(**SMALL).load()
    texts = {split: set(map(tuple, getattr(data, split).ids.view(-1, 17).tolist())) for split in ("train", "test")}
    assert (len(texts["train"]), len(texts["test"]), len(data.validation)) == (50, 20, 10)
    assert not texts["train"] & texts["test"]
    assert torch.equal(GeneratedCopies(**SMALL).load().train.ids, data.train.ids)
    assert not torch.equal(GeneratedCopies(**SMALL, seed=1).load().train.ids, data.train.ids)
    again = GeneratedCopies(**SMALL).dataset("test", data.tokenizer)
    assert torch.equal(again.ids, data.test.ids)


def test_training_texts_may_be_shorter() -> None:
    data = GeneratedCopies(**SMALL, min_length=6).load()
    lengths = data.train.lengths
    assert set(lengths.tolist()) == {6, 8, 10, 12, 14, 16}
    assert (data.test.lengths == 16).all()
    batch = data.train.batch(torch.arange(50))
    num_targets = (batch.targets != IGNORE).sum(1)
    assert torch.equal(num_targets, lengths // 2 - 1)
    assert int(num_targets.sum()) == data.train.num_targets
    for length, tokens, targets in zip(lengths.tolist(), batch.inputs.tokens.tolist(), batch.targets.tolist()):
        text = [*tokens[1:length], targets[length - 1]]
        assert text[: length // 2] == text[length // 2 :]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 15}, "an even number .* not 15 and 0"),
        ({"length": 8, "min_length": 10}, "not 8 and 10"),
        ({"symbols": 0}, "data.symbols is from 1 to 10,000, not 0"),
        ({"test_size": 0}, "data.test_size is at least 1, not 0"),
        ({"count": 1_000_000, "length": 1024}, "at most 500,000,000 tokens, not 1,024,000,000"),
        ({"count": 3_000_000}, "data.count makes 3,000,000 examples"),
    ],
)
def test_mistakes_are_named(options: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GeneratedCopies(**options)
