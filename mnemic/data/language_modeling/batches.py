"""Dataset of running text for language models, and its batches.

Documents are concatenated, with an ``END`` token before, between and after them. A span is a part
of one document: its tokens are the inputs, and the token after each is its target. In a stream
spans go on from document to document, each where the one before ended.

Shapes: t tokens of all documents, r spans, b spans of a batch, n tokens of a span.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mnemic.data.batches import TensorDataset, locate_tokens
from mnemic.models import IGNORE, WindowBatch
from mnemic.recipe import ConfigError
from mnemic.text import WordTokenizer

END = "¶"  # the token where a document starts or ends; not a word of any text


class TokenBatch(NamedTuple):
    """A batch of spans, and the next token of each token."""

    inputs: WindowBatch
    targets: Tensor  # b n, IGNORE for context and padding


@dataclass(frozen=True, kw_only=True)
class TokenDataset(TensorDataset):
    """Spans of running text on one device."""

    metrics: ClassVar[str] = "perplexity"
    ids: Tensor  # t
    starts: Tensor  # r, position of a span's first input token
    lengths: Tensor  # r, number of input tokens
    context_lengths: Tensor  # r, how many of these are context, without a target
    max_tokens: int  # of a span
    unknown_id: int  # of words that are not in the vocabulary
    stream: bool = False  # each span goes on where the one before it ended

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def is_stream(self) -> bool:
        """Return whether the spans are pieces of one text, to be read in order."""
        return self.stream

    @property
    def num_targets(self) -> int:
        """Number of tokens to predict, each document's end included."""
        return int((self.lengths - self.context_lengths).sum())

    @property
    def num_unknown(self) -> int:
        """Number of tokens to predict that are not in the vocabulary."""
        return int((self.ids == self.unknown_id).sum())

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> TokenBatch:
        """Return the spans ``rows`` (b); with ``compact`` padded only to the longest of them."""
        width = 0 if compact else max_length or self.max_tokens
        positions, mask = locate_tokens(self.starts[rows], self.lengths[rows], width)  # b n
        tokens = self.ids[positions].long().masked_fill(~mask, 0)
        column = torch.arange(mask.shape[1], device=rows.device)
        is_target = mask & (column >= self.context_lengths[rows].unsqueeze(1))
        targets = self.ids[positions + 1].long().masked_fill(~is_target, IGNORE)
        inputs = WindowBatch(tokens, mask, torch.zeros_like(tokens), mask)
        if self.stream:
            inputs = inputs._replace(stream_starts=self.starts[rows])
        return TokenBatch(inputs, targets)


def make_token_dataset(
    ids: np.ndarray, tokenizer: WordTokenizer, *, max_tokens: int, context: int = 0, stream: bool = False
) -> TokenDataset:
    """Cut documents, separated by ``END``, into spans of at most ``max_tokens`` tokens.

    Without ``context`` spans are adjacent, for training. With it each span starts that many tokens
    earlier, which have no target there: every token is predicted once and, except at the start of a
    document, from at least ``context`` tokens. As a ``stream`` all documents are one text, whose
    spans are adjacent.
    """
    context = 0 if stream else context
    if max_tokens < 2 or not 0 <= context < max_tokens:
        raise ConfigError(
            f"data.length is at least 2 and data.context from 0 to below it, not {max_tokens} and {context}"
        )
    document_ends = np.flatnonzero(ids == tokenizer.id_of(END)).tolist()
    if stream:  # as if all were one document
        document_ends = document_ends[:1] + document_ends[1:][-1:]
    rows = [row for start, end in pairwise(document_ends) for row in cut_document(start, end, max_tokens, context)]
    starts, lengths, context_lengths = torch.tensor(rows, dtype=torch.long).view(-1, 3).unbind(1)
    return TokenDataset(
        ids=torch.from_numpy(np.ascontiguousarray(ids, dtype=np.int32)),
        starts=starts,
        lengths=lengths,
        context_lengths=context_lengths,
        max_tokens=max_tokens,
        unknown_id=tokenizer.unknown,
        stream=stream,
    )


def cut_document(start: int, end: int, max_tokens: int, context: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, length and context length of each span of one document."""
    yield start, min(max_tokens, end - start), 0
    for first in range(start + max_tokens - context, end - context, max_tokens - context):
        yield first, min(max_tokens, end - first), context


def join_documents(documents: Sequence[Sequence[int]], end_id: int) -> np.ndarray:
    """Concatenate documents with ``end_id`` before, between and after; skip empty ones."""
    arrays = [np.array([end_id], dtype=np.uint16)]
    for document in documents:
        if len(document):
            arrays.append(np.array([*document, end_id], dtype=np.uint16))
    return np.concatenate(arrays)
