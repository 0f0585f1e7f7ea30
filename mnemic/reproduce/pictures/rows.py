"""The rows of the table of pictures: recipes, and what is measured.

A new row is a recipe and a line in ``ROWS``; what it measures is a function of its checkpoint.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from mnemic.checkpoint.folder import Checkpoint
from mnemic.data import DATASETS
from mnemic.evaluate.pictures.captions import compute_caption_metrics
from mnemic.evaluate.pictures.retrieval import compute_retrieval_metrics, select_distinct
from mnemic.recipe import build

RETRIEVAL_SCENES = 100  # among which pictures and texts are found
MEAN_SCENES = 1000  # of training, whose mean picture texts are compared with

Metrics = dict[str, float]
Measure = Callable[[Checkpoint], Metrics]


class PictureRow(NamedTuple):
    """A network of the table."""

    recipe: str
    sets: Sequence[str]  # that differ from the recipe
    measures: Sequence[Measure]


def load_scenes(checkpoint: Checkpoint, **changes: Any) -> Any:
    """Generate the test scenes of a network's recipe, with some keys of its data changed."""
    spec: Mapping[str, Any] = {**checkpoint.recipe["data"], **changes}
    return build(DATASETS, spec).dataset("test", checkpoint.tokenizer).to(checkpoint.network.device)


def measure_captions(checkpoint: Checkpoint) -> Metrics:
    """Measure captions on test scenes, and on scenes with new pairs."""
    metrics = compute_caption_metrics(checkpoint.network, load_scenes(checkpoint))
    unseen = compute_caption_metrics(checkpoint.network, load_scenes(checkpoint, test_pairs="held-out"))
    return metrics | {"exact, new pairs": unseen["exact"]}


def measure_retrieval(checkpoint: Checkpoint) -> Metrics:
    """Find test pictures by their captions, and captions by their pictures."""
    scenes = select_distinct(load_scenes(checkpoint), RETRIEVAL_SCENES)
    train = build(DATASETS, {**checkpoint.recipe["data"], "count": MEAN_SCENES}).dataset("train", checkpoint.tokenizer)
    with torch.inference_mode():
        metrics = compute_retrieval_metrics(checkpoint.network, scenes, train.to(checkpoint.network.device))
    return metrics | {"R@1 by chance": 100 / len(scenes)}


ROWS: dict[str, PictureRow] = {
    "blind": PictureRow("show-attend-tell", ('model.encode={kind="blind"}', "objective.doubly=0"), [measure_captions]),
    "soft": PictureRow("show-attend-tell", (), [measure_captions]),
    "hard": PictureRow("show-attend-tell-hard", (), [measure_captions]),
    "lbl": PictureRow("lbl", (), [measure_captions]),
    "mlbl-b": PictureRow("mlbl-b", (), [measure_captions, measure_retrieval]),
    "mlbl-f": PictureRow("mlbl-f", (), [measure_captions, measure_retrieval]),
}
