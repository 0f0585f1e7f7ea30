"""Training dataset of pairs of views, and its batches.

Every text is stored once, as ids without special tokens; windows are assembled when they are drawn.

Shapes: e rows, p texts, t tokens of all, n rows of a batch, m hard negatives of a batch, w windows
(2n + m), l tokens of the longest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from mnemic.data.batches import AssembledDataset, locate_tokens, move_batch
from mnemic.data.text_tasks.retrieval import compute_spans, shared_special_tokens
from mnemic.data.text_tasks.retrieval_batches import concatenate_ranges
from mnemic.data.views.draw import NUM_UNIFORMS, TextTokens, ViewRanges, Views, limit_length, make_range
from mnemic.models import WindowBatch
from mnemic.text import Tokenizer
from mnemic.text.sentence_spans import count_sentence_tokens


class ViewBatch(NamedTuple):
    """A batch of pairs of views in one window each, with hard negatives."""

    inputs: WindowBatch  # w: first views, second views, hard negatives
    text_ids: Tensor  # n; views of texts with the same number are no negatives of each other
    negative_ids: Tensor  # m, numbers of the hard negatives


class TextPool(NamedTuple):
    """Texts as token ids, with the special tokens of a window at the end."""

    tokens: Tensor  # t
    spans: Tensor  # p 2, start and length of each text
    sentence_lengths: Tensor
    sentence_starts: Tensor
    sentence_ranges: Tensor  # p 2, first sentence and number of sentences of each text
    num_special: tuple[int, int]  # before and after a text

    def select(self, texts: Tensor) -> TextTokens:
        """Return the tokens of some texts."""
        sentences = (*self.sentence_ranges[texts].unbind(1), self.sentence_lengths, self.sentence_starts)
        return TextTokens(*self.spans[texts].unbind(1), *sentences)


@dataclass(frozen=True, kw_only=True)
class ViewDataset(AssembledDataset):
    """Rows with two views each: of one text, or the two texts of a pair."""

    metrics: ClassVar[str] = "views"
    pool: TextPool
    views: Views | None  # None: the views are the two texts of a row
    texts: Tensor  # e 2, the texts of each row, twice the same if views are drawn from one
    text_ids: Tensor  # p; texts that say the same have one number
    negatives: Tensor  # texts that are hard negatives, row by row
    negative_ranges: Tensor  # e 2, first and number of those of each row
    num_negatives: int  # per row of a batch
    max_tokens: int  # of a window

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def num_uniforms(self) -> int:
        """Random numbers per row: for its views and for its negatives."""
        return NUM_UNIFORMS + 2 * self.num_negatives

    @property
    def lengths(self) -> Tensor:
        """Count the tokens of the longer text of each row, e."""
        return self.pool.spans[:, 1][self.texts].amax(1).clamp(max=self.max_tokens)

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> ViewBatch:
        """Return two views of the rows (n), and hard negatives of some of them."""
        numbers = (torch.zeros(len(rows), self.num_uniforms) if uniforms is None else uniforms).double()
        first, second = self.draw_views(rows, numbers)
        negatives, negative_starts = self.draw_negatives(rows, numbers[:, NUM_UNIFORMS:])
        spans = self.pool.select(negatives)
        are_equal = self.views is not None and self.views.are_equal
        starts = torch.cat([numbers[:, 4], numbers[:, 4 if are_equal else 5], negative_starts])
        ranges = torch.cat([first, second, make_range(spans.start, spans.length)])
        ranges = limit_length(ranges, self.max_tokens - sum(self.pool.num_special), starts)
        ids = self.text_ids[self.texts[rows, 1]]
        tensors = (self.make_windows(ranges, 0 if compact else self.max_tokens), ids, self.text_ids[negatives])
        return ViewBatch(*move_batch(tensors, self.batch_device))

    def draw_views(self, rows: Tensor, uniforms: Tensor) -> ViewRanges:
        """Draw the token ranges of both views, of any length."""
        first, second = (self.pool.select(texts) for texts in self.texts[rows].unbind(1))
        if self.views is None:
            return ViewRanges(make_range(first.start, first.length), make_range(second.start, second.length))
        return self.views.draw(first, uniforms)

    def draw_negatives(self, rows: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """Draw hard negatives of the rows that have any, and a random number each."""
        first, count = self.negative_ranges[rows].unbind(1)
        which, start = uniforms.view(len(rows), self.num_negatives, 2).unbind(2)
        index = first.unsqueeze(1) + (which * count.unsqueeze(1)).long()
        has_any = (count > 0).unsqueeze(1).expand_as(index)
        return self.negatives[index[has_any]], start[has_any]

    def make_windows(self, ranges: Tensor, width: int = 0) -> WindowBatch:
        """Assemble windows of token ranges (w 2 2) with special tokens around them."""
        before, after = self.pool.num_special
        special_start = len(self.pool.tokens) - before - after
        first, second = torch.tensor([[special_start, before], [special_start + before, after]])
        count = len(ranges)
        sections = torch.cat([first.expand(count, 1, 2), ranges, second.expand(count, 1, 2)], 1)  # w 4 2
        sources = concatenate_ranges(*sections.flatten(0, 1).unbind(1))
        lengths = sections[:, :, 1].sum(1)
        positions, mask = locate_tokens(lengths.cumsum(0) - lengths, lengths, width)  # w l
        tokens = self.pool.tokens[sources][positions].long().masked_fill(~mask, 0)
        column = torch.arange(mask.shape[1])
        is_text = (column >= before) & (column < (lengths - after).unsqueeze(1))
        return WindowBatch(tokens, mask, torch.zeros_like(tokens), is_text)


def make_text_pool(texts: Sequence[str], tokenizer: Tokenizer) -> TextPool:
    """Encode texts and find their sentences."""
    encodings = [tokenizer.encode(text, special=False) for text in texts]
    before, _, after = shared_special_tokens(tokenizer)
    sentence_lengths = [count_sentence_tokens(text, encoding.offsets) for text, encoding in zip(texts, encodings)]
    sequences = [*(encoding.ids for encoding in encodings), before, after]
    lengths = torch.tensor([length for counts in sentence_lengths for length in counts], dtype=torch.long)
    sentence_ranges = compute_spans(sentence_lengths)
    first_sentences = sentence_ranges[:, 0].repeat_interleave(sentence_ranges[:, 1])
    ends = lengths.cumsum(0)
    starts = ends - lengths
    return TextPool(
        tokens=torch.tensor([token_id for ids in sequences for token_id in ids], dtype=torch.int32),
        spans=compute_spans(sequences)[: len(texts)],
        sentence_lengths=lengths,
        sentence_starts=starts - starts[first_sentences] if len(lengths) else starts,
        sentence_ranges=sentence_ranges,
        num_special=(len(before), len(after)),
    )
