"""Measure captions of scenes: exact ones, perplexity, and the gaze on objects.

Shapes: b pictures, m words, s regions, o objects, v vocabulary.
"""

from collections.abc import Sequence
from math import exp
from typing import Any

import torch
from torch import Tensor

from mnemic.data.pictures.batches import CaptionBatch, SceneDataset
from mnemic.data.pictures.captions import describe_scene
from mnemic.data.pictures.regions import grid_boxes, overlap_areas
from mnemic.data.pictures.scenes import SIDE
from mnemic.models.evaluating import evaluating
from mnemic.objectives.captions import score_words
from mnemic.predict.captions import PICTURES_PER_BATCH, describe_scenes


def compute_caption_metrics(network: Any, dataset: SceneDataset) -> dict[str, float]:
    """Compute the metrics of captions; the one that selects the best weights is first.

    ``exact``: of the captions that the network writes greedily, those without a mistake, in
    percent. ``perplexity`` per word of the right captions, ends included. ``gaze``: how much of the
    weights is on regions that the object touches which the word names, and ``uniform gaze`` how
    much it would be if all regions weighed the same.
    """
    sums = measure_right_captions(network, dataset)
    captions = [describe_scene(scene).text for scene in dataset.scenes]
    is_exact = [caption == text for caption, text in zip(describe_scenes(network, dataset), captions)]
    metrics = {"exact": 100 * sum(is_exact) / len(is_exact), "perplexity": exp(sums["loss"] / sums["words"])}
    first = getattr(network.respond, "selects_by", "exact")
    metrics = {first: metrics[first]} | metrics
    if "gaze" in sums:
        metrics |= {name: 100 * sums[name] / sums["named"] for name in ("gaze", "uniform gaze")}
    return metrics


@torch.no_grad()
def measure_right_captions(network: Any, dataset: SceneDataset) -> dict[str, float]:
    """Sum the losses of right captions, and the gaze of words that name objects."""
    sums: dict[str, float] = {}
    with evaluating(network):
        for rows in torch.arange(len(dataset), device=dataset.device).split(PICTURES_PER_BATCH):
            batch = dataset.batch(rows)
            output = network(batch.inputs)
            log_probs, is_word = score_words(output.logits, batch.targets)
            batch_sums = {"loss": -log_probs.sum(), "words": is_word.sum()}
            if output.reading is not None and network.encode.num_regions > 1:
                boxes = dataset.objects.boxes[rows] * SIDE
                batch_sums |= sum_gaze(output.reading.weights[:, 0, 0], batch, boxes, network.encode.grid)
            for name, value in batch_sums.items():
                sums[name] = sums.get(name, 0.0) + float(value)
    return sums


def sum_gaze(weights: Tensor, batch: CaptionBatch, boxes: Tensor, grid: Sequence[int]) -> dict[str, Tensor]:
    """Sum the gaze (b m s) on regions that named objects (b o 4) touch."""
    touches = overlap_areas(boxes, grid_boxes(*grid).to(boxes)) > 0  # b o s
    is_named = batch.objects >= 0  # b m
    rows = torch.arange(len(touches), device=touches.device).unsqueeze(1)
    on_object = touches[rows, batch.objects.clamp(min=0)] & is_named.unsqueeze(-1)  # b m s
    uniform = on_object.float().mean(-1)
    return {"gaze": (weights * on_object).sum(), "uniform gaze": uniform.sum(), "named": is_named.sum()}
