"""Dataset of texts in windows, as tensors without padding, and its batches.

Shapes: e texts of the dataset, w windows, t tokens of all windows, b texts of a batch, n tokens.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from mnemic.data.batches import TensorDataset, locate_tokens
from mnemic.models import IGNORE, WindowBatch
from mnemic.text import Encoding, Tokenizer, WindowedText
from mnemic.text.windows import Window

Kind = Literal["classes", "numbers", "multi-task", "spans", "tags", "retrieval", "views"]
TOKEN_MULTIPLE = 8  # widths that matrix products and attention on a GPU are fastest with


class TextBatch(NamedTuple):
    """A batch of texts in windows, with their targets."""

    inputs: WindowBatch
    targets: Any  # classes, numbers: b; spans: w 2, columns of the logits; tags: w n; of several tasks: a tuple
    owner: Tensor  # w, the index in the batch of each window's text; b: padding
    teacher: Any = None  # the same texts as a teacher reads them, if it reads more: a TextBatch


class EncodedExample(NamedTuple):
    """A text in windows and its targets."""

    windowed: WindowedText
    targets: Any  # one number, or a list: pairs per window, or numbers per token


class RetrievalTest(NamedTuple):
    """Questions, and the texts among which each question's text is to be retrieved."""

    questions: "TextDataset"
    texts: "TextDataset"
    gold_texts: tuple[int, ...]  # of each question, the index of its text
    text_groups: tuple[int, ...] = ()  # a number for each text; texts with the same are equally right


@dataclass(frozen=True, kw_only=True)
class TextDataset(TensorDataset):
    """Texts in windows on one device, with their targets."""

    metrics: Kind  # that networks are measured by
    metric: str  # of these, the one that selects the best weights
    examples: Sequence[Any]  # as they were read
    tokenizer: Tokenizer
    labels: tuple[str, ...]
    tokens: Tensor  # t, ids of all windows, concatenated
    segments: Tensor  # t
    answer_mask: Tensor  # t, True where an answer may be (see ``make_answer_mask``)
    targets: Tensor  # e, w 2 or t
    window_starts: Tensor  # w+1, where each window starts in tokens
    first_window: Tensor  # e+1, the first window of each text
    text_start: Tensor  # w, position in the window of the text's first token
    token_range: Tensor  # w 2, the tokens of the text that a window holds
    token_counts: Tensor  # e 2, tokens in windows and tokens of the text
    retrieval: RetrievalTest | None = None  # for models that also retrieve texts
    teacher: "TextDataset | None" = None  # the same examples as a teacher reads them, if it reads more

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def lengths(self) -> Tensor:
        """Count the tokens of all windows of each text."""
        return self.window_starts[self.first_window[1:]] - self.window_starts[self.first_window[:-1]]

    @property
    def num_unknown(self) -> int:
        """Count the texts whose label does not occur in training."""
        return int((self.targets == IGNORE).sum()) if self.metrics == "classes" else 0

    @cached_property
    def encode_text(self) -> Callable[[str], Encoding]:
        """Encode a text, with a cache: questions about one text are neighbors."""
        return lru_cache(maxsize=8)(lambda text: self.tokenizer.encode(text, special=False))

    def token_offsets(self, index: int) -> list[tuple[int, int]]:
        """Return the character span of each token of a text."""
        return self.encode_text(self.examples[index].text).offsets

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> TextBatch:
        """Return the texts ``rows`` (b) with all their windows, padded to the longest window.

        Without ``compact`` the batch fits any texts of at most ``max_length`` tokens: the batches
        of a bucket have one shape, and no GPU is synchronized to learn lengths. The rest is
        padding, also whole windows, whose owner is b.
        """
        counts = self.first_window[rows + 1] - self.first_window[rows]
        ends = counts.cumsum(0)
        max_windows, width = (0, 0) if compact else self.max_shape(max_length)
        column = torch.arange(max_windows * len(rows) or int(ends[-1]), device=rows.device)
        owner = torch.searchsorted(ends, column, right=True)  # w
        is_real = owner < len(rows)
        first_windows = (self.first_window[rows] - ends + counts)[owner.clamp(max=len(rows) - 1)]
        windows = torch.where(is_real, first_windows + column, 0)
        inputs, positions = self.make_windows(windows, is_real, width)
        inputs = inputs._replace(document_windows=list_windows(counts, max_windows))
        if self.metrics in ("classes", "numbers", "multi-task"):
            targets = self.targets[rows]
        elif self.metrics in ("spans", "retrieval"):
            targets = self.targets[windows].masked_fill(~is_real.unsqueeze(1), IGNORE)
        else:
            targets = self.targets[positions].masked_fill(~inputs.mask, IGNORE)
        return TextBatch(inputs, targets, owner, self.teacher and self.teacher.batch(rows, compact=compact))

    @cached_property
    def max_shape(self) -> Callable[[int | None], tuple[int, int]]:
        """Find the maximal windows per text and tokens per window, by ``max_length``."""
        lengths, first_window, window_starts = self.lengths.cpu(), self.first_window.cpu(), self.window_starts.cpu()
        counts = first_window.diff()
        widths = window_starts.diff()[first_window[:-1]]  # a text's first window is its longest

        @cache
        def find_max_shape(max_length: int | None) -> tuple[int, int]:
            fits = lengths <= (int(lengths.max()) if max_length is None else max_length)
            tokens = -(-int(widths[fits].max()) // TOKEN_MULTIPLE) * TOKEN_MULTIPLE
            return int(counts[fits].max()), min(tokens, int(widths.max()))

        return find_max_shape

    def make_windows(
        self, windows: Tensor, is_real: Tensor | None = None, width: int = 0
    ) -> tuple[WindowBatch, Tensor]:
        """Return windows (w) as model inputs, and the position of each token in ``tokens``.

        Windows where ``is_real`` (w) is False are padding. ``width`` 0: as wide as the longest.
        """
        starts = self.window_starts[windows]
        lengths = self.window_starts[windows + 1] - starts
        if is_real is not None:
            lengths = lengths.masked_fill(~is_real, 0)
        positions, mask = locate_tokens(starts, lengths, width)  # w n
        if not len(self.tokens):  # no text has a token, and nothing frames it
            empty = positions.new_zeros(positions.shape)
            return WindowBatch(empty, mask, empty, mask), positions
        ids, segments = (values[positions].long().masked_fill(~mask, 0) for values in (self.tokens, self.segments))
        return WindowBatch(ids, mask, segments, self.answer_mask[positions] & mask), positions


def list_windows(counts: Tensor, max_windows: int = 0) -> Tensor:
    """Number the windows of each text: window counts b → b s, -1 is padding.

    ``max_windows`` 0: as many columns as the largest count.
    """
    column = torch.arange(max_windows or int(counts.max()), device=counts.device)
    numbers = (counts.cumsum(0) - counts).unsqueeze(1) + column
    return numbers.masked_fill(column >= counts.unsqueeze(1), -1)


def make_text_dataset(
    kind: Kind,
    encoded_examples: Iterable[EncodedExample],
    examples: Sequence[Any],
    tokenizer: Tokenizer,
    *,
    labels: Sequence[str] = (),
    metric: str = "",
) -> TextDataset:
    """Concatenate encoded examples into a dataset on the CPU."""
    windows: list[Window] = []
    targets: list[Any] = []
    window_counts, token_counts = [], []
    for windowed, target in encoded_examples:
        windows += windowed.windows
        window_counts.append(len(windowed.windows))
        token_counts.append((windowed.covered_tokens, windowed.total_tokens))
        targets.extend(target if isinstance(target, list) else [target])

    def concatenate(rows: Iterable[Any], dtype: torch.dtype) -> Tensor:
        return torch.cat([torch.zeros(0, dtype=dtype), *(torch.as_tensor(row, dtype=dtype) for row in rows)])

    return TextDataset(
        metrics=kind,
        metric=metric,
        examples=examples,
        tokenizer=tokenizer,
        labels=tuple(labels),
        tokens=concatenate((window.ids for window in windows), torch.int32),
        segments=concatenate((window.segments for window in windows), torch.uint8),
        answer_mask=concatenate((make_answer_mask(kind, window, tokenizer) for window in windows), torch.bool),
        targets=torch.tensor(targets, dtype=torch.float if kind == "numbers" else torch.long),
        window_starts=torch.tensor([0, *accumulate(len(window.ids) for window in windows)]),
        first_window=torch.tensor([0, *accumulate(window_counts)]),
        text_start=torch.tensor([window.text_start for window in windows], dtype=torch.long),
        token_range=torch.tensor([window.token_range for window in windows], dtype=torch.long).view(-1, 2),
        token_counts=torch.tensor(token_counts, dtype=torch.long).view(-1, 2),
    )


def make_answer_mask(kind: Kind, window: Window, tokenizer: Tokenizer) -> Tensor:
    """Mark the tokens of a window that an answer may be about, n.

    For classes these are all ordinary tokens, of both texts of a pair; else those of the text.
    """
    if kind in ("classes", "numbers"):
        special_ids = torch.tensor(sorted(tokenizer.special_ids), dtype=torch.long)
        return ~torch.isin(torch.tensor(window.ids, dtype=torch.long), special_ids)
    token = torch.arange(len(window.ids)) - window.text_start + window.token_range.start
    return (token >= window.token_range.start) & (token < window.token_range.end)
