"""How well pictures find their captions, captions their pictures, and words their objects.

Shapes: b pictures and captions, o objects, m words, n regions.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.pictures.alignment import AlignmentDataset
from mnemic.models.evaluating import evaluating
from mnemic.predict.pictures.align import list_region_boxes
from mnemic.predict.pictures.chain_decoding import decode_chain
from mnemic.respond.pictures.alignment import multiply_regions

POINTING, POINTING_SMALLEST = "pointing accuracy", "pointing accuracy, smallest region"
RANKS = (1, 10)  # the k of recall@k
PICTURES_PER_BATCH = 50  # compared with all captions at once; changes memory use, not results


class EncodedScenes(NamedTuple):
    """Regions and words of all scenes."""

    regions: Tensor  # b n d
    words: Tensor  # b m d
    mask: Tensor  # b m
    caption_ids: Tensor  # b
    objects: Tensor  # b m


@torch.no_grad()
def compute_alignment_metrics(network: nn.Module, dataset: AlignmentDataset, beta: float = 0.0) -> dict[str, float]:
    """Compute recall in both directions and how often words point at their object, in percent.

    ``captions r@k``: the share of pictures whose caption is among the best k of the dataset; one
    that says the same counts as the same. ``pictures r@k``: the reverse. ``pointing accuracy``: of
    the words that name an object, those whose region holds its center, and the same by chance, of a
    random region; regions may be large, so another one counts the smallest such regions alone.
    """
    with evaluating(network):
        scenes = encode_scenes(network, dataset)
        scores = score_all(network, scenes)
    is_same = scenes.caption_ids == scenes.caption_ids.unsqueeze(1)
    values: dict[str, float] = {}
    for name, rows in (("captions", scores), ("pictures", scores.mT)):
        ranks = count_better(rows, is_same)
        values |= {f"{name} r@{top_k}": float((ranks < top_k).double().mean()) for top_k in RANKS}
    values["captions r@1 by chance"] = float(is_same.double().mean())
    values |= measure_pointing(network, scenes, dataset, beta)
    return {name: 100 * value for name, value in values.items()}


def encode_scenes(network: Any, dataset: AlignmentDataset) -> EncodedScenes:
    """Encode all scenes, in batches of one width."""
    batches = []
    for rows in torch.arange(len(dataset), device=dataset.device).split(PICTURES_PER_BATCH):
        batch = dataset.batch(rows, compact=False)
        output = network(batch.inputs)
        batches.append((output.regions, output.words, batch.inputs.mask, batch.caption_ids, batch.objects))
    return EncodedScenes(*map(torch.cat, zip(*batches)))


def score_all(network: Any, scenes: EncodedScenes) -> Tensor:
    """Score each picture with each caption: b b."""
    rows = [network.respond(regions, scenes.words, scenes.mask) for regions in scenes.regions.split(PICTURES_PER_BATCH)]
    return torch.cat(rows)


def count_better(scores: Tensor, is_same: Tensor) -> Tensor:
    """Count the wrong columns that beat the right one of each row, b.

    A tie counts against the network; columns that say the same (b b) are right, too.
    """
    right = scores.diagonal().unsqueeze(1)
    return ((scores >= right) & ~is_same).sum(1)


def measure_pointing(network: Any, scenes: EncodedScenes, dataset: AlignmentDataset, beta: float) -> dict[str, float]:
    """Measure how many words are aligned with a region that holds their object."""
    boxes = list_region_boxes(network.encode).to(scenes.regions.device)  # n 4
    regions = decode_chain(multiply_regions(scenes.regions, scenes.words), scenes.mask, beta=beta)  # b m
    names_object = scenes.objects >= 0
    object_boxes = dataset.objects.boxes.gather(1, scenes.objects.clamp(min=0).unsqueeze(2).expand(-1, -1, 4))
    centers = (object_boxes[..., :2] + object_boxes[..., 2:]).unsqueeze(2) / 2  # b m 1 2
    holds = ((centers >= boxes[:, :2]) & (centers < boxes[:, 2:])).all(-1)  # b m n
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)  # n
    smallest = holds & (areas <= torch.where(holds, areas, 2.0).amin(-1, keepdim=True) + 1e-6)
    values = {}
    for name, is_right in ((POINTING, holds), (POINTING_SMALLEST, smallest)):
        hits = is_right.gather(2, regions.clamp(min=0).unsqueeze(2)).squeeze(2)  # b m
        values[name] = float(hits[names_object].double().mean())
        values[f"{name} by chance"] = float(is_right[names_object].double().mean())
    return values
