"""Where one sentence ends and the next begins in a stream of words, learned from sentences.

Shapes: u texts, w words of a text, b batch, n sentences, l words of a stream, d width.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Stream(NamedTuple):
    """A story cut anew: its segments as texts, and which sentences they came from."""

    texts: Tensor  # b n w′, word ids
    mask: Tensor  # b n w′
    shares: Tensor  # b n n, how much of each sentence (first) is in each segment (second)


class BagSegmenter(nn.Module):
    """``seg(c) = Wᵀ U Φ(c)`` for the words c since the last end; c is a segment if it is above γ.

    Weston et al. 2015a, section 3.2: Φ is a bag of words in a dictionary of its own. ``ranking``
    teaches it: a sentence should be above γ, every shorter beginning of it below −γ. Networks
    train on the sentences as they are told and cut for themselves in use.

    Where we differ: there are at most as many segments as sentences were told, the last takes the
    rest; and of a segment more than twice as long as any sentence, the end is lost.
    """

    def __init__(self, width: int, vocab: int, unseen: int = 0, *, margin: float = 0.1) -> None:
        super().__init__()
        self.margin = margin
        self.words = nn.Parameter(torch.randn(vocab + unseen, width) * 0.1)
        self.weight = nn.Parameter(torch.randn(width) * width**-0.5)

    def lost(self, texts: Tensor, mask: Tensor) -> Tensor:
        """How far each text (u w) is from being a segment and its beginnings from being none: u."""
        scores = (nn.functional.embedding(texts, self.words) @ self.weight * mask).cumsum(-1)
        after = nn.functional.pad(mask, (-1, 1))
        sign = torch.where(after, -1.0, 1.0)  # the last word's is the whole text's
        return ((self.margin - sign * scores).clamp(min=0) * mask).sum(-1)

    def number(self, stream: Tensor, mask: Tensor, *, most: int) -> Tensor:
        """The segment of every word of a stream (b l), from 0 to ``most`` − 1; any for padding."""
        scores = nn.functional.embedding(stream, self.words) @ self.weight * mask  # b l
        since = scores.new_zeros(scores.shape[0])
        ends = []
        for score in scores.unbind(1):
            since = since + score
            ends.append(since > self.margin)
            since = torch.where(ends[-1], 0.0, since)
        end = torch.stack(ends, 1) & mask if ends else mask
        return (end.long().cumsum(1) - end.long()).clamp(max=most - 1)

    def forward(self, texts: Tensor, mask: Tensor) -> Stream:
        """A story's sentences (b n w) as one stream of words, cut into at most n segments."""
        count, width = texts.shape[1:]
        stream, told = texts.flatten(1), mask.flatten(1)  # b l
        number = self.number(stream, told, most=count)
        own = (number.unsqueeze(2) == torch.arange(count, device=texts.device)) & told.unsqueeze(2)
        place = (own.long().cumsum(1) - 1).gather(2, number.unsqueeze(2)).squeeze(2)  # b l
        fits = told & (place < 2 * width)
        spot = torch.where(fits, number * 2 * width + place, count * 2 * width)
        room = stream.new_zeros(stream.shape[0], count * 2 * width + 1)
        cut = room.scatter(1, spot, stream)[:, :-1].unflatten(1, (count, 2 * width))
        real = room.scatter(1, spot, fits.long())[:, :-1].unflatten(1, (count, 2 * width)) > 0
        words = own.unflatten(1, (count, width)).sum(2)  # b n n
        return Stream(cut, real, words / mask.sum(2, keepdim=True).clamp(min=1))


SEGMENTERS: dict[str, Callable[..., Any]] = {"bag": BagSegmenter}
