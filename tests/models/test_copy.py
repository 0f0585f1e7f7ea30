"""Masked words that are copied from memory: as likely as their slots were read."""

from typing import Any

import pytest
import torch
from test_segment_model import VOCAB, documents, make

from mnemic.models.copy import token_ids_at
from mnemic.recipe import ConfigError, build
from mnemic.respond import RESPONSES
from mnemic.respond.predictor import INITIAL_COPY_LOGIT, Predictor


def copying(kind: str, bias: float = 0.0) -> Any:
    network = make(kind, respond={"kind": "predictor", "copy": True}, unit="tokens")
    assert isinstance(network.respond, Predictor)
    assert network.respond.copies is not None
    torch.nn.init.constant_(network.respond.copies.bias, bias)
    return network


def test_chances_are_a_mixture_of_both() -> None:
    """Against a loop over slots; with nothing read, the scores' own chances."""
    torch.manual_seed(0)
    respond = build(RESPONSES, {"kind": "predictor", "copy": True}, width=8, vocab=6)
    scores, states = torch.randn(3, 6), torch.randn(3, 8)
    words = torch.tensor([[1, 4, 1], [0, 0, 5], [2, 3, 3]])
    shares = torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.0, 0.0, 0.0]])
    gate = torch.sigmoid(respond.copies(states)).squeeze(1)
    wanted = scores.softmax(1) * (1 - gate * torch.tensor([1.0, 1.0, 0.0])).unsqueeze(1)
    for row in range(2):
        for slot in range(3):
            wanted[row, words[row, slot]] += gate[row] * shares[row, slot]
    found = respond.mix_copies(scores, states, shares, words).exp()
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(found.sum(1), torch.ones(3))
    assert float(respond.copies.bias.detach()) == INITIAL_COPY_LOGIT


def test_only_words_of_the_same_document_that_came_before_are_copied() -> None:
    """With a gate that is open all the way; the first segment has nothing to copy from."""
    network, inputs = copying("selective", bias=40.0), documents(3, 2, 3)
    assert inputs.prediction_mask is not None
    chances = network(inputs).masked_logits.exp()  # p v, in the order of the hidden tokens
    for (row, segment, _), own in zip(inputs.prediction_mask.nonzero().tolist(), chances):
        likely = set((own > 1e-6).nonzero().flatten().tolist())
        before = inputs.tokens[row, :segment][inputs.text_mask[row, :segment]].tolist()
        if segment:
            assert likely
            assert likely <= set(before)
        else:
            assert len(likely) == VOCAB


@pytest.mark.parametrize("kind", ["blended", "selective"])
def test_chances_are_chances(kind: str) -> None:
    """Of a slot that knows not all it was blended from, what is lost stays with the scores."""
    chances = copying(kind, bias=1.0)(documents(3, 2, 3)).masked_logits.exp()
    torch.testing.assert_close(chances.sum(1), torch.ones(len(chances)))


def test_sources_are_counted_through_the_document() -> None:
    inputs = documents(2, 1)
    real = inputs.tokens[0][inputs.text_mask[0]]
    numbers = torch.arange(len(real)).expand(2, 2, -1)
    assert token_ids_at(inputs, numbers)[0, 1].tolist() == real.tolist()


def test_the_gate_learns_from_masked_words() -> None:
    network, inputs = copying("selective"), documents(3, 2, 3)
    network(inputs).masked_logits.sum().backward()
    for weight in (network.respond.copies.weight, network.memory.controller.weigh.weight):
        assert weight.grad is not None
        assert weight.grad.abs().sum() > 0


def test_sentences_are_no_words() -> None:
    with pytest.raises(ConfigError, match=r"segments\.unit is 'tokens'"):
        make("selective", respond={"kind": "predictor", "copy": True}, unit="sentences")
