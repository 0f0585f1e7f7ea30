"""Align the words of a sentence with regions, so that neighbors prefer the same region.

Shapes: b sentences, n words, r regions.
"""

import torch
from torch import Tensor


def decode_chain(scores: Tensor, mask: Tensor, *, beta: float = 0.0) -> Tensor:
    """Find the best chain of regions, one per word: b n, -1 at padding.

    It maximizes Σ_j scores[j, a_j] + ``beta`` Σ_j [a_j = a_j+1] (Karpathy and Fei-Fei 2015,
    arXiv:1412.2306, equations 10 to 12) by dynamic programming (Viterbi 1967). ``scores`` b n r are
    the products of words and regions; ``mask`` b n is False at padding, which follows the words.
    With a ``beta`` of 0 each word is aligned by itself; a large one gives a sentence one region.

    >>> scores, mask = torch.tensor([[[2.0, 0.0], [0.0, 0.5], [2.0, 0.0]]]), torch.ones(1, 3) > 0
    >>> [decode_chain(scores, mask, beta=beta).tolist() for beta in (0, 1)]
    [[[0, 1, 0]], [[0, 0, 0]]]
    """
    if not beta >= 0:
        raise ValueError(f"beta rewards neighbors with one region: it is at least 0, not {beta}")
    regions = torch.arange(scores.shape[2], device=scores.device)
    # Padding adds the same to all chains, so the best one of the words stays the best.
    words = scores.masked_fill(~mask.unsqueeze(2), 0.0).unbind(1)
    best = words[0]  # b r, of the chains that end with each region
    previous = []  # b r each, the region before
    for word in words[1:]:
        top, top_region = best.max(1, keepdim=True)  # b 1
        stays = best + beta >= top
        previous.append(torch.where(stays, regions, top_region))
        best = word + torch.where(stays, best + beta, top)
    region = best.argmax(1, keepdim=True)  # b 1
    chain = [region]
    for pointers in reversed(previous):
        region = pointers.gather(1, region)
        chain.append(region)
    return torch.cat(chain[::-1], 1).masked_fill(~mask, -1)
