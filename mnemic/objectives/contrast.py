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
    logits = similarities.to(torch.promote_types(similarities.dtype, torch.float32)) / temperature
    columns, positives = torch.arange(logits.shape[1], device=logits.device), gold_keys.clamp(min=0)
    is_false = torch.zeros_like(logits, dtype=torch.bool) if hidden is None else hidden
    if key_ids is not None:
        is_false = is_false | (key_ids == key_ids[positives].unsqueeze(1))
    is_positive = columns == positives.unsqueeze(1)
    return Loss(*cross_entropy(logits.masked_fill(is_false & ~is_positive, float("-inf")), gold_keys))


def nt_xent(
    first: Tensor,
    second: Tensor,
    *,
    temperature: float,
    text_ids: Tensor | None = None,
    negatives: Tensor | None = None,
    negative_ids: Tensor | None = None,
    max_cosine: float = 1.0,
) -> Loss:
    """Contrast two views of each text with all other views: NT-Xent (Chen et al. 2020).

    ``first`` and ``second`` n d are the vectors of the views. Each of the 2n views has 2n - 2
    negatives, among them those of its own side, and the hard ``negatives`` (m d) of all. As
    ``info_nce`` with cosines, where a view is no candidate for itself. Texts with the same
    ``text_ids`` (n) and ``negative_ids`` (m) are no negatives of each other, nor are views with a
    cosine above ``max_cosine``, if that is below 1.
    """
    views, candidates = stack_candidates(torch.cat([first, second]), negatives)
    columns = torch.arange(len(candidates), device=views.device)
    cosines = views @ candidates.mT
    return info_nce(
        cosines,
        columns[: len(views)].roll(len(first)),
        temperature=temperature,
        key_ids=None if text_ids is None else join_ids(text_ids.repeat(2), negative_ids),
        hidden=(columns == columns[: len(views)].unsqueeze(1)) | is_too_similar(cosines, max_cosine),
    )


def stack_candidates(keys: Tensor, negatives: Tensor | None) -> tuple[Tensor, Tensor]:
    """Normalize keys, alone and with hard negatives below them, in float32 at least."""
    keys = nn.functional.normalize(keys.to(torch.promote_types(keys.dtype, torch.float32)), dim=1)
    if negatives is None:
        return keys, keys
    return keys, torch.cat([keys, nn.functional.normalize(negatives.to(keys.dtype), dim=1)])


def join_ids(text_ids: Tensor, negative_ids: Tensor | None) -> Tensor:
    """Join the numbers of texts and of hard negatives."""
    return text_ids if negative_ids is None else torch.cat([text_ids, negative_ids])


def is_too_similar(cosines: Tensor, max_cosine: float) -> Tensor:
    """Mark pairs that are taken for false negatives because of their cosine."""
    return cosines.detach() > max_cosine if max_cosine < 1 else torch.zeros_like(cosines, dtype=torch.bool)
