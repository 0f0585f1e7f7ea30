"""Compute how well vectors find the text that belongs to another.

Shapes: n pairs of texts, p second texts, d width.
"""

from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.encode_windows import encode_labeled
from mnemic.data.text_tasks.examples import LabeledExample
from mnemic.evaluate.ranking_metrics import summarize_ranks
from mnemic.predict.windows import compute_text_vectors
from mnemic.recipe import ConfigError
from mnemic.text import WindowOptions

RECALL_RANKS = (1, 5)  # the k of recall@k
TEXTS_PER_BATCH = 1000  # compared with each other at once; changes memory use, not results


def compute_view_metrics(network: nn.Module, dataset: TextDataset) -> dict[str, float]:
    """Compute recall, MRR and nDCG among the second texts in percent, alignment and uniformity.

    Alignment is the mean squared distance of texts that belong together, uniformity the logarithm
    of the mean of exp(-2 · squared distance) over all first texts (Wang and Isola 2020); both are
    better when smaller.
    """
    test = dataset.retrieval
    if test is None:
        raise ConfigError("there are no texts to find among these")
    first, second = (compute_text_vectors(network, texts) for texts in (test.questions, test.texts))
    gold, groups = torch.tensor(test.gold_texts), torch.tensor(test.text_groups)
    ranks = rank_partners(first, second, gold, groups)
    values = {f"recall@{top_k}": 100 * float((ranks < top_k).double().mean()) for top_k in RECALL_RANKS}
    values |= {name: 100 * value for name, value in summarize_ranks(ranks.tolist()).items()}
    values["alignment"] = float((first - second[gold]).square().sum(1).mean())
    values["uniformity"] = compute_uniformity(first)
    return values


def compute_pair_cosines(network: nn.Module, dataset: TextDataset) -> Tensor:
    """Compute the cosine of both texts of each example, n."""
    if any(example.pair is None for example in dataset.examples):
        raise ConfigError("a network that embeds predicts numbers for pairs of texts: set data.kind=pairs")
    max_tokens = int(dataset.window_starts.diff().max())  # a text has less than its pair
    options = WindowOptions(max_tokens, max_tokens // 4)
    first, second = (
        encode_labeled([LabeledExample(text, None, "") for text in texts], dataset.tokenizer, options, labels=())
        for texts in ([row.text for row in dataset.examples], [row.pair for row in dataset.examples])
    )
    vectors = [compute_text_vectors(network, texts.to(dataset.device)) for texts in (first, second)]
    return (vectors[0] * vectors[1]).sum(1)


def rank_partners(first: Tensor, second: Tensor, gold: Tensor, groups: Tensor) -> Tensor:
    """Count the wrong second texts (p d) that are nearer than each partner, n."""
    ranks = []
    for vectors, columns in zip(first.split(TEXTS_PER_BATCH), gold.split(TEXTS_PER_BATCH)):
        scores = vectors @ second.mT
        is_wrong = groups != groups[columns].unsqueeze(1)
        # A tie counts against the network, so that equal vectors find nothing.
        is_nearer = scores >= scores.gather(1, columns.unsqueeze(1))
        ranks.append((is_nearer & is_wrong).sum(1))
    return torch.cat(ranks)


def compute_uniformity(vectors: Tensor) -> float:
    """Compute the logarithm of the mean Gaussian potential of all pairs."""
    count = len(vectors)
    if count < 2:
        return 0.0
    chunks = vectors.double().split(TEXTS_PER_BATCH)
    total: Any = sum(torch.exp(4 * (a @ b.mT) - 4).sum() for a, b in product(chunks, chunks))  # d² = 2 - 2 cos
    return float(((total - count) / (count * (count - 1))).log())
