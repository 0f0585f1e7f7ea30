"""Tokens counted from the beginning of their sentence: against a loop, and through an encoder."""

from typing import Any

import pytest
import torch

from mnemic.network import assemble
from mnemic.network.segments import Segments, places_in_sentences
from mnemic.recipe import ConfigError

SENTENCES = torch.tensor([[-1, 0, 0, 0, 1, 1, -1, -1], [-1, 0, 1, 1, 1, 1, 2, -1]])
MODEL: dict[str, Any] = {
    "width": 16, "encode": {"kind": "transformer"}, "memory": {"kind": "keeps"},
    "respond": {"kind": "predictor"}, "carry": {"unit": "sentences", "places": "sentence"},
}  # fmt: skip
SIZES = {"vocab": 30, "longest": 8}


def counted(row: list[int]) -> list[int]:
    """One token after another."""
    found: list[int] = []
    for place, own in enumerate(row):
        goes_on = place > 0 and own == row[place - 1]
        found.append(0 if own < 0 else found[-1] + 1 if goes_on else 1)
    return found


def test_places_are_those_of_a_loop() -> None:
    found = places_in_sentences(SENTENCES)
    assert found.tolist() == [counted(row) for row in SENTENCES.tolist()]
    assert found[0].tolist() == [0, 1, 2, 3, 1, 2, 0, 0]
    assert places_in_sentences(SENTENCES.view(2, 1, 8)).shape == (2, 1, 8)


def inputs(tokens: torch.Tensor, sentences: torch.Tensor | None) -> Segments:
    question = torch.tensor([[5, 9]])
    inside = tokens > 2
    return Segments(
        tokens, tokens > 0, inside, question, question > 0, question, sentences=sentences
    )


def test_a_sentence_alone_is_the_same_wherever_it_stands() -> None:
    """Nothing else is seen, so nothing but its place could change it."""
    torch.manual_seed(0)
    first = torch.tensor([[[5, 6, 7, 0, 0, 0, 0, 0]]])
    later, own = first.roll(4, -1), torch.tensor([[[0, 0, 0, -1, -1, -1, -1, -1]]])
    for places, same in (("sentence", True), ("segment", False)):
        carry = {"unit": "sentences", "places": places}
        network = assemble(MODEL | {"carry": carry}, SIZES).eval()
        here = network.encoded(inputs(first, own)).units[0, 0, 0]
        there = network.encoded(inputs(later, own.roll(4, -1))).units[0, 0, 0]
        assert torch.allclose(here, there, atol=1e-6) == same


def test_mistakes_are_named() -> None:
    network = assemble(MODEL, SIZES)
    with pytest.raises(ValueError, match="needs to know where these are"):
        network(inputs(torch.tensor([[[1, 5, 6, 2, 0, 0, 0, 0]]]), None))
    with pytest.raises(ConfigError, match=r"carry\.places = 'sentence' is for an encoder of kind"):
        assemble(MODEL | {"encode": {"kind": "recurrent"}}, SIZES)
