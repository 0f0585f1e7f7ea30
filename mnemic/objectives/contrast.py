"""Contrastive losses over the vectors of a batch.

Shapes: k queries, p keys, n pairs of views, d width.
"""

import torch
from torch import Tensor, nn

from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Loss


def info_nce(
    similarities: Tensor,
    gold_keys: Tensor,
    *,
    temperature: float,
    key_ids: Tensor | None = None,
    hidden: Tensor | None = None,
) -> Loss:
    """Cross-entropy of each query's key among all keys: InfoNCE (van den Oord et al. 2018).

    ``similarities`` k p are divided by ``temperature``; ``gold_keys`` k are the columns of the
    positives, or IGNORE. All other columns are negatives: those of other queries (in-batch) and
    those of no query (hard negatives). Two kinds of false negatives are left out: keys with the
    ``key_ids`` (p) of the positive, and pairs that are ``hidden`` (k p).

    >>> similarities = torch.tensor([[1.0, 0.0]])
    >>> loss = info_nce(similarities, torch.tensor([0]), temperature=1.0)
    >>> round(float(loss.total), 4)  # log(1 + 1/e)
    0.3133
    """
    logits = similarities.float() / temperature
    columns, positives = torch.arange(logits.shape[1], device=logits.device), gold_keys.clamp(min=0)
    is_false = torch.zeros_like(logits, dtype=torch.bool) if hidden is None else hidden
    if key_ids is not None:
        is_false = is_false | (key_ids == key_ids[positives].unsqueeze(1))
    is_positive = columns == positives.unsqueeze(1)
    return Loss(*cross_entropy(logits.masked_fill(is_false & ~is_positive, float("-inf")), gold_keys))


def nt_xent(first: Tensor, second: Tensor, *, temperature: float, text_ids: Tensor | None = None) -> Loss:
    """Contrast two views of each text with all other views: NT-Xent (Chen et al. 2020).

    ``first`` and ``second`` n d are the vectors of the views. Each of the 2n views has 2n - 2
    negatives, among them those of its own side. As ``info_nce`` with cosines, where a view is no
    candidate for itself. Texts with the same ``text_ids`` (n) are no negatives of each other.
    """
    vectors = nn.functional.normalize(torch.cat([first, second]).float(), dim=1)  # 2n d
    columns = torch.arange(len(vectors), device=vectors.device)
    return info_nce(
        vectors @ vectors.mT,
        columns.roll(len(first)),
        temperature=temperature,
        key_ids=None if text_ids is None else text_ids.repeat(2),
        hidden=columns == columns.unsqueeze(1),
    )
