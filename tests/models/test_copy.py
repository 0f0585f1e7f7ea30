"""Masked words copied from memory, with the probability that their slots were read."""

from typing import Any

import pytest
import torch
from test_segment_model import VOCAB, documents, make_model

from mnemic.models.copy import token_ids_at
from mnemic.recipe import ConfigError, build
from mnemic.respond import RESPONSES
from mnemic.respond.predictor import INITIAL_COPY_LOGIT, Predictor


def make_copying_model(kind: str, bias: float = 0.0) -> Any:
    network = make_model(kind, respond={"kind": "predictor", "copy": True}, unit="tokens")
    assert isinstance(network.respond, Predictor)
    assert network.respond.copies is not None
    torch.nn.init.constant_(network.respond.copies.bias, bias)
    return network


def test_probabilities_are_a_mixture_of_logits_and_copies() -> None:
    """Against a loop over slots; without a read only the logits count."""
    torch.manual_seed(0)
    respond = build(RESPONSES, {"kind": "predictor", "copy": True}, width=8, vocab=6)
    logits, states = torch.randn(3, 6), torch.randn(3, 8)
    slot_words = torch.tensor([[1, 4, 1], [0, 0, 5], [2, 3, 3]])
    read_weights = torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.0, 0.0, 0.0]])
    gate = torch.sigmoid(respond.copies(states)).squeeze(1)
    expected = logits.softmax(1) * (1 - gate * torch.tensor([1.0, 1.0, 0.0])).unsqueeze(1)
    for row in range(2):
        for slot in range(3):
            expected[row, slot_words[row, slot]] += gate[row] * read_weights[row, slot]
    actual = respond.mix_copies(logits, states, read_weights, slot_words).exp()
    torch.testing.assert_close(actual, expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(actual.sum(1), torch.ones(3))
    assert float(respond.copies.bias.detach()) == INITIAL_COPY_LOGIT


def test_only_words_of_the_same_document_that_came_before_are_copied() -> None:
    """With a fully open gate; the first segment has nothing to copy from."""
    network, inputs = make_copying_model("selective", bias=40.0), documents(3, 2, 3)
    assert inputs.prediction_mask is not None
    probabilities = network(inputs).masked_logits.exp()  # p v, in the order of the masked tokens
    for (row, segment, _), word_probabilities in zip(inputs.prediction_mask.nonzero().tolist(), probabilities):
        likely_ids = set((word_probabilities > 1e-6).nonzero().flatten().tolist())
        earlier_ids = inputs.tokens[row, :segment][inputs.text_mask[row, :segment]].tolist()
        if segment:
            assert likely_ids
            assert likely_ids <= set(earlier_ids)
        else:
            assert len(likely_ids) == VOCAB


@pytest.mark.parametrize("kind", ["blended", "selective"])
def test_probabilities_sum_to_one(kind: str) -> None:
    """The share of unknown sources of a blended slot goes to the logits."""
    probabilities = make_copying_model(kind, bias=1.0)(documents(3, 2, 3)).masked_logits.exp()
    torch.testing.assert_close(probabilities.sum(1), torch.ones(len(probabilities)))


def test_sources_are_counted_through_the_document() -> None:
    inputs = documents(2, 1)
    token_ids = inputs.tokens[0][inputs.text_mask[0]]
    indices = torch.arange(len(token_ids)).expand(2, 2, -1)
    assert token_ids_at(inputs, indices)[0, 1].tolist() == token_ids.tolist()


def test_the_gate_learns_from_masked_words() -> None:
    network, inputs = make_copying_model("selective"), documents(3, 2, 3)
    network(inputs).masked_logits.sum().backward()
    for weight in (network.respond.copies.weight, network.memory.controller.weigh.weight):
        assert weight.grad is not None
        assert weight.grad.abs().sum() > 0


def test_copying_needs_tokens_as_units() -> None:
    with pytest.raises(ConfigError, match=r"segments\.unit is 'tokens'"):
        make_model("selective", respond={"kind": "predictor", "copy": True}, unit="sentences")
