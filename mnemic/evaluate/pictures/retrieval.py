"""Find pictures by texts and texts by pictures, with a language model.

Section 4 of Kiros et al. (2014): C(w|x) is the perplexity of a text w with a picture x.

Shapes: k texts, b pictures, m words, d width of a picture's vector.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.data.pictures.batches import SceneDataset
from mnemic.models.evaluating import evaluating
from mnemic.objectives.captions import score_words
from mnemic.predict.captions import PICTURES_PER_BATCH

TEXTS_PER_BATCH = 32  # compared with all pictures at once; changes memory use, not results


class TextScores(NamedTuple):
    """The logarithm of the perplexity of texts with each picture, and with the mean picture."""

    with_picture: Tensor  # k b, log C(w|x)
    with_mean: Tensor  # k, log C(w|x̄)

    def rank_pictures(self) -> Tensor:
        """Order the pictures of each text, the lowest C(w|x) first: k b."""
        return self.with_picture.argsort(dim=1, stable=True)

    def rank_texts(self) -> Tensor:
        """Order the texts of each picture, the lowest C(w|x) / C(w|x̄) first: b k."""
        return (self.with_picture - self.with_mean.unsqueeze(1)).mT.argsort(dim=1, stable=True)


@torch.no_grad()
def compute_features(network: Any, dataset: SceneDataset) -> Tensor:
    """Compute the vectors x of all pictures: b d."""
    with evaluating(network):
        rows = torch.arange(len(dataset), device=dataset.device).split(PICTURES_PER_BATCH)
        return torch.cat(
            [network.respond.read_features(network.encode(dataset.read_pictures(batch))) for batch in rows]
        )


@torch.no_grad()
def score_texts(network: Any, texts: SceneDataset, features: Tensor, mean: Tensor) -> TextScores:
    """Compute how well captions fit pictures (b d) and the mean picture (d)."""
    with evaluating(network):
        with_picture = list(iterate_scores(network, texts, features))
        with_mean = list(iterate_scores(network, texts, mean.unsqueeze(0)))
    return TextScores(torch.cat(with_picture), torch.cat(with_mean).squeeze(1))


def iterate_scores(network: Any, texts: SceneDataset, features: Tensor) -> Iterator[Tensor]:
    """Yield log C(w|x) of a few captions at a time, with all pictures."""
    for rows in torch.arange(len(texts), device=texts.device).split(TEXTS_PER_BATCH):
        batch, num_pictures = texts.batch(rows), len(features)
        earlier_words: Any = batch.inputs.words
        words = earlier_words.repeat_interleave(num_pictures, 0)  # (k b) m
        targets = batch.targets.repeat_interleave(num_pictures, 0)
        logits = network.respond.score_texts(words, features.repeat(len(rows), 1))
        log_probs, is_word = score_words(logits, targets)
        yield (-log_probs.sum(1) / is_word.sum(1)).unflatten(0, (len(rows), num_pictures))


def compute_retrieval_metrics(network: Any, dataset: SceneDataset, train: SceneDataset) -> dict[str, float]:
    """Compute R@1 and R@10 both ways among scenes, in percent; their captions should differ.

    The mean picture is that of ``train``.
    """
    features = compute_features(network, dataset)
    scores = score_texts(network, dataset, features, compute_features(network, train).mean(0))
    target = torch.arange(len(dataset), device=features.device).unsqueeze(1)
    metrics: dict[str, float] = {}
    for name, ranking in (("picture", scores.rank_pictures()), ("text", scores.rank_texts())):
        rank = (ranking == target).long().argmax(1)
        metrics |= {f"{name} R@{top_k}": 100 * float((rank < top_k).double().mean()) for top_k in (1, 10)}
    return metrics


def select_distinct(dataset: SceneDataset, count: int) -> SceneDataset:
    """Select the first ``count`` scenes with different captions."""
    rows: dict[tuple[int, ...], int] = {}
    for row, words in enumerate(dataset.words.tolist()):
        rows.setdefault(tuple(words), row)
    return dataset.select(torch.tensor(list(rows.values())[:count]))
