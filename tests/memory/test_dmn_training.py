"""Tiny DMN and DMN+ learn to answer, and which sentence to read first.

Shapes: b batch, s slots.
"""

from typing import Any

import torch
from story_runs import trained

from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.recipe import load_recipe
from mnemic.train.run import load_data

# Learning --------------------------------------------------------------------------------------

FUSED = [f"model.{module}.recurrent.fused=true" for module in ("fuse", "ask")]


def test_a_tiny_dmn_plus_learns_one_supporting_fact() -> None:
    data = 'data={kind="generated", tasks=[1], count=1000}'
    overrides = ["train.epochs=6", "train.batch=32", "train.rate=0.003", "model.width=24"]
    recipe = load_recipe("dmn-plus", [data, *overrides, *FUSED])
    stories: Any = load_data(recipe)
    assert compute_task_errors(trained(recipe, stories, 0), stories.test)[1] < 10


def test_a_tiny_dmn_is_taught_which_sentence_to_read() -> None:
    """Two facts: with supervision the first pass finds who had the object last."""
    data = 'data={kind="generated", tasks=[2], count=1000, sentences=12}'
    overrides = ["train.rate=0.003", "model.width=32", "model.memory.passes=2", "phases=[{}]"]
    overrides += ["train.batch=32", "train.buckets=1", 'train.schedule={kind="constant"}']
    overrides += ["train.epochs=3", "train.keep=last", "train.patience=0"]
    recipe = load_recipe("dmn", [data, *overrides, *FUSED])
    stories: Any = load_data(recipe)
    hits = {}
    for facts in (0.0, 1.0):
        weighted_recipe = recipe | {"objective": recipe["objective"] | {"facts": facts}}
        network = trained(weighted_recipe, stories, 0).eval()
        batch = stories.test.batch((stories.test.chain[:, 0] >= 0).nonzero()[:300, 0])
        with torch.no_grad():
            gates = network(batch.inputs).reading.weights[:, 0, 0, 0]  # b s, of the first pass
        hits[facts] = float((gates.argmax(-1) == batch.chain[:, 0]).double().mean())
    assert hits[1.0] > 0.9
    assert hits[0.0] < 0.5  # answers alone do not teach it in so few steps
