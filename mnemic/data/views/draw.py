"""Draw two views of a text; the table of the kinds of views.

A view is up to two ranges of the text's tokens, which are read one after the other. What is drawn
depends on the uniform random numbers of its row alone.

Shapes: b texts of a batch, u uniforms.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from mnemic.data.text_tasks.retrieval_batches import draw_other
from mnemic.recipe import ConfigError

NUM_UNIFORMS = 6  # per row: what is drawn, then where each view that is too long begins


class TextTokens(NamedTuple):
    """The tokens of some texts in a pool, and where their sentences are."""

    start: Tensor  # b, in the pool
    length: Tensor  # b
    first_sentence: Tensor  # b, in ``sentence_lengths``
    num_sentences: Tensor  # b
    sentence_lengths: Tensor  # tokens of all sentences of all texts
    sentence_starts: Tensor  # where each begins in its text


class ViewRanges(NamedTuple):
    """The token ranges of two views: b 2 2, two starts and lengths each."""

    first: Tensor
    second: Tensor


class Views(Protocol):
    """Protocol of the ways to draw two views of a text, for contrastive learning."""

    min_tokens: int  # of a text that can be drawn from
    min_sentences: int
    are_equal: bool  # both are the same tokens, also of a text longer than a window

    def draw(self, texts: TextTokens, uniforms: Tensor) -> ViewRanges:
        """Draw two views of each text: ``uniforms`` are b u, from [0, 1)."""
        ...


class DropoutViews:
    """The same text twice: only dropout makes its vectors differ (Gao et al. 2021, SimCSE)."""

    min_tokens, min_sentences, are_equal = 1, 1, True

    def draw(self, texts: TextTokens, uniforms: Tensor) -> ViewRanges:
        """Return the whole text twice."""
        text = make_range(texts.start, texts.length)
        return ViewRanges(text, text)


class HalfViews:
    """The two halves of a text, to evaluate what learned from equal views."""

    min_tokens, min_sentences, are_equal = 2, 1, False

    def draw(self, texts: TextTokens, uniforms: Tensor) -> ViewRanges:
        """Return the first and the second half of the tokens."""
        half = texts.length // 2
        return ViewRanges(make_range(texts.start, half), make_range(texts.start + half, texts.length - half))


class CropViews:
    """Two different spans of a text, which may overlap (Izacard et al. 2022, Contriever).

    Each has ``shortest`` to ``longest`` of the text's tokens.
    """

    min_tokens, min_sentences, are_equal = 4, 1, False

    def __init__(self, *, shortest: float = 0.1, longest: float = 0.5) -> None:
        if not 0 < shortest <= longest < 1:
            raise ConfigError(f"crops have shares of a text, 0 < shortest ≤ longest < 1, not {shortest} and {longest}")
        self.shortest, self.longest = shortest, longest

    def draw(self, texts: TextTokens, uniforms: Tensor) -> ViewRanges:
        """Draw the lengths and starts of two spans that are never the same."""
        shares = self.shortest + (self.longest - self.shortest) * uniforms[:, :2]
        first_length, second_length = (shares * texts.length.unsqueeze(1)).long().clamp(min=1).unbind(1)
        first = (uniforms[:, 2] * (texts.length - first_length + 1)).long()
        num_starts = texts.length - second_length + 1
        second = (uniforms[:, 3] * num_starts).long()
        # A span is shorter than the text, so that one of the same length has somewhere to go.
        moved = draw_other(first, 0, num_starts, uniforms[:, 3])
        second = torch.where(first_length == second_length, moved, second)
        return ViewRanges(
            make_range(texts.start + first, first_length), make_range(texts.start + second, second_length)
        )


class ClozeViews:
    """A sentence, and the text without it: inverse cloze (Lee et al. 2019, ORQA).

    The share ``intact`` of the texts keeps the sentence, so that shared words count, too.
    """

    min_tokens, min_sentences, are_equal = 2, 2, False

    def __init__(self, *, intact: float = 0.0) -> None:
        if not 0 <= intact < 1:
            raise ConfigError(f"data.views.intact is a share from 0 to below 1, not {intact}")
        self.intact = intact

    def draw(self, texts: TextTokens, uniforms: Tensor) -> ViewRanges:
        """Draw a sentence; the other view has the tokens before and after it."""
        sentence = texts.first_sentence + (uniforms[:, 0] * texts.num_sentences).long()
        start, length = texts.sentence_starts[sentence], texts.sentence_lengths[sentence]
        end = torch.where(uniforms[:, 1] < self.intact, start, start + length)
        before = torch.stack([texts.start, start], 1)
        after = torch.stack([texts.start + end, texts.length - end], 1)
        return ViewRanges(make_range(texts.start + start, length), torch.stack([before, after], 1))


class NeighborViews:
    """A sentence and the next one of the same text."""

    min_tokens, min_sentences, are_equal = 2, 2, False

    def draw(self, texts: TextTokens, uniforms: Tensor) -> ViewRanges:
        """Draw a sentence that is not the last, and the one after it."""
        sentence = texts.first_sentence + (uniforms[:, 0] * (texts.num_sentences - 1)).long()
        first, second = (
            make_range(texts.start + texts.sentence_starts[number], texts.sentence_lengths[number])
            for number in (sentence, sentence + 1)
        )
        return ViewRanges(first, second)


VIEWS: dict[str, Callable[..., Views]] = {
    "dropout": DropoutViews,
    "crops": CropViews,
    "inverse-cloze": ClozeViews,
    "neighbors": NeighborViews,
}


def make_range(start: Tensor, length: Tensor) -> Tensor:
    """Make views of a single range: b and b → b 2 2."""
    return torch.stack([torch.stack([start, length], 1), torch.zeros(len(start), 2, dtype=torch.long)], 1)


def limit_length(ranges: Tensor, max_tokens: int, uniforms: Tensor) -> Tensor:
    """Draw ``max_tokens`` consecutive tokens of longer views: b 2 2 → b 2 2."""
    total = ranges[:, :, 1].sum(1)
    length = total.clamp(max=max_tokens)
    start = (uniforms * (total - length + 1)).long()
    bounds = torch.stack([torch.zeros_like(total), ranges[:, 0, 1], total], 1)  # of both ranges, in the view
    first, last = bounds[:, :2], bounds[:, 1:]  # b 2
    new_first = torch.maximum(first, start.unsqueeze(1)).minimum(last)
    new_last = torch.minimum(last, (start + length).unsqueeze(1)).maximum(new_first)
    return torch.stack([ranges[:, :, 0] + new_first - first, new_last - new_first], 2)
