"""Losses of pre-training add up: over parts of a batch, as processes and microbatches need it."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from pretraining_runs import VOCAB, make_corpus_batch

from mnemic.models import build_model
from mnemic.objectives import OBJECTIVES
from mnemic.recipe import build

ROWS = ("tokens", "mask", "segments", "word_starts", "unmaskable", "next_sentence_labels", "mask_seeds")
PLAIN = {"kind": "transformer", "embeddings": {"kind": "sum", "segments": 2}}
XLNET = {"kind": "transformer", "embeddings": {"kind": "sum", "norm": False, "positions": {"kind": "none"}}}
MASKED = {"kind": "masked", "repeats": True, "next_sentence": True}
LOSS = {"kind": "masked", "masking": {"kind": "tokens", "rate": 0.4}}
CASES: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]] = {
    "repeats": (PLAIN, MASKED, LOSS | {"nsp": 0.5, "repeats": 2.0}),
    "views": (
        PLAIN | {"embeddings": {"kind": "sum", "segments": 6}},
        {"kind": "masked", "next_sentence": True},
        LOSS | {"nsp": 0.5, "views": {"both": 1, "left": 1, "right": 1, "source-target": 1}},
    ),
    "tasks": (
        PLAIN | {"embeddings": {"kind": "sum", "segments": 2, "tasks": 3}},
        MASKED,
        LOSS | {"nsp": 1.0, "repeats": 1.0, "tasks": {"mlm": 1, "repeats": 1, "nsp": 1}},
    ),
    "permuted": (
        XLNET | {"stack": {"kind": "two-stream"}},
        {"kind": "permuted"},
        {"kind": "permuted", "context": 2.0, "block": 5},
    ),
    "next-subword": ({"kind": "causal"}, {"kind": "next-token"}, {"kind": "next-subword", "label_smoothing": 0.1}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("max_tokens", [0, 70])
def test_parts_of_a_batch_add_up(name: str, max_tokens: int) -> None:
    """Also packed to a fixed number of tokens, as on a GPU."""
    encode, respond, objective_spec = CASES[name]
    torch.manual_seed(0)
    network = build_model({"width": 16, "encode": encode, "respond": respond}, {"vocab": VOCAB, "max_length": 12})
    objective = build(OBJECTIVES, objective_spec, network=network, shards=1, batch=6)
    batch = make_corpus_batch([1, 0, 1, 1, 0, 1])
    with torch.no_grad():
        whole = objective(network.eval(), batch._replace(max_tokens=max_tokens))
        parts = [
            objective(network, batch._replace(**{field: getattr(batch, field)[rows] for field in ROWS}))
            for rows in (slice(0, 1), slice(1, 4), slice(4, 6))
        ]
    torch.testing.assert_close(whole.total, torch.stack([part.total for part in parts]).sum())
    assert whole.num_targets == sum(int(part.num_targets) for part in parts) > 6
