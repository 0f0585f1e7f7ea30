"""The contract of all responses: their source, methods and networks."""

import pytest

from mnemic.encode import TransformerEncoder
from mnemic.models import build_model
from mnemic.recipe import select_kinds
from mnemic.respond import RESPONSES

SIZES = {"vocab": 20, "classes": 3, "max_length": 12}
SOURCES = ("memory", "text", "carried memory", "picture")


def test_every_response_has_one_source() -> None:
    kinds = [kind for source in SOURCES for kind in select_kinds(RESPONSES, source=source)]
    assert sorted(kinds) == sorted(RESPONSES)
    assert set(select_kinds(RESPONSES, source="carried memory")) == {"predictor", "quote"}
    assert set(select_kinds(RESPONSES, reads_segments=True)) == {"classes", "spans", "tags"}


@pytest.mark.parametrize("kind", RESPONSES)
def test_methods_follow_from_the_source(kind: str) -> None:
    response = RESPONSES[kind]
    expected = {"memory": {"ask_story"}, "carried memory": {"remember", "ask", "load_state"}}
    expected["picture"] = {"align", "caption", "detect"}
    text_methods = {"classify", "rate", "tag", "answer", "rerank", "complete", "perplexity", "generate", "embed"}
    text_methods |= {"select_task"}
    assert set(response.methods) <= expected.get(response.source, text_methods)
    assert response.methods or response.replaces or kind == "masked"  # which only trains encoders


@pytest.mark.parametrize("kind", select_kinds(RESPONSES, source="text"))
def test_a_network_of_each_response_from_texts_is_built(kind: str) -> None:
    encode = {"kind": "causal"} if RESPONSES[kind].needs_causal else {"kind": "transformer"}
    encode = {"kind": "elmo"} if RESPONSES[kind].needs_directions else encode
    network = build_model({"width": 8, "encode": encode, "respond": {"kind": kind}}, SIZES)
    needs_other = RESPONSES[kind].needs_causal or RESPONSES[kind].needs_directions
    assert isinstance(network.encode, TransformerEncoder) != needs_other
    assert type(network.respond) is RESPONSES[kind]
