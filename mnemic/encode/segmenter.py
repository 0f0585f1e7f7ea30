"""A learned segmenter: find the sentence ends in a stream of words.

Shapes: u texts, w words of a text, b batch, n sentences, l words of a stream, d width.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class SegmentedStory(NamedTuple):
    """A story cut into new segments, and the share of each sentence in each segment."""

    texts: Tensor  # b n w′, word ids
    mask: Tensor  # b n w′
    shares: Tensor  # b n n, fraction of each sentence (axis 1) in each segment (axis 2)


class BagSegmenter(nn.Module):
    """A linear segmenter on a bag of the words since the last segment end.

    ``seg(c) = Wᵀ U Φ(c)`` above γ ends a segment. Weston et al. 2015a, section 3.2: c are the words
    since the last end, Φ is a bag of words in a dictionary of its own. ``ranking`` trains it: a
    sentence should be above γ, every shorter beginning of it below −γ. Networks train on the given
    sentences and segment for themselves in use.

    Where we differ: there are at most as many segments as given sentences, the last takes the rest;
    and a segment more than twice as long as any sentence loses its end.
    """

    def __init__(self, width: int, vocab: int, unseen: int = 0, *, margin: float = 0.1) -> None:
        super().__init__()
        self.margin = margin
        self.words = nn.Parameter(torch.randn(vocab + unseen, width) * 0.1)
        self.weight = nn.Parameter(torch.randn(width) * width**-0.5)

    def margin_loss(self, texts: Tensor, mask: Tensor) -> Tensor:
        """Return each text's hinge loss for ending a segment at its last word only.

        ``texts``, ``mask``: u w → u.
        """
        scores = (nn.functional.embedding(texts, self.words) @ self.weight * mask).cumsum(-1)
        has_next = nn.functional.pad(mask, (-1, 1))
        sign = torch.where(has_next, -1.0, 1.0)  # the last word completes the text
        return ((self.margin - sign * scores).clamp(min=0) * mask).sum(-1)

    def assign_segments(self, stream: Tensor, mask: Tensor, *, max_segments: int) -> Tensor:
        """Assign each word of a stream (b l) to a segment, 0 to ``max_segments`` − 1.

        Padding gets any number.
        """
        scores = nn.functional.embedding(stream, self.words) @ self.weight * mask  # b l
        running_score = scores.new_zeros(scores.shape[0])
        ends = []
        for score in scores.unbind(1):
            running_score = running_score + score
            ends.append(running_score > self.margin)
            running_score = torch.where(ends[-1], 0.0, running_score)
        is_end = torch.stack(ends, 1) & mask if ends else mask
        return (is_end.long().cumsum(1) - is_end.long()).clamp(max=max_segments - 1)

    def forward(self, texts: Tensor, mask: Tensor) -> SegmentedStory:
        """Join a story's sentences (b n w) and cut them into at most n segments."""
        num_sentences, max_words = texts.shape[1:]
        stream, stream_mask = texts.flatten(1), mask.flatten(1)  # b l
        segment_ids = self.assign_segments(stream, stream_mask, max_segments=num_sentences)
        segment_numbers = torch.arange(num_sentences, device=texts.device)
        in_segment = (segment_ids.unsqueeze(2) == segment_numbers) & stream_mask.unsqueeze(2)  # b l n
        position = (in_segment.long().cumsum(1) - 1).gather(2, segment_ids.unsqueeze(2)).squeeze(2)  # b l
        fits = stream_mask & (position < 2 * max_words)
        index = torch.where(fits, segment_ids * 2 * max_words + position, num_sentences * 2 * max_words)
        buffer = stream.new_zeros(stream.shape[0], num_sentences * 2 * max_words + 1)
        segments = buffer.scatter(1, index, stream)[:, :-1].unflatten(1, (num_sentences, 2 * max_words))
        segment_mask = buffer.scatter(1, index, fits.long())[:, :-1].unflatten(1, (num_sentences, 2 * max_words)) > 0
        word_counts = in_segment.unflatten(1, (num_sentences, max_words)).sum(2)  # b n n
        return SegmentedStory(segments, segment_mask, word_counts / mask.sum(2, keepdim=True).clamp(min=1))


SEGMENTERS: dict[str, Callable[..., Any]] = {"bag": BagSegmenter}
