"""Inputs and outputs of networks that carry a memory from segment to segment.

Shapes: b documents, s segments of the longest, n tokens of a segment, p items of a segment (its
tokens or sentences), q tokens of a question, w words of an answer, l probes of a segment, d width,
v vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.memory import Reading, Written

IGNORE = -100  # a target that no loss counts
# In place of a fact's number: a sentence of the story that is no fact; any other token.
NOT_A_FACT, OUTSIDE_STORY = -1, -2


class BatchSizes(NamedTuple):
    """Facts of a batch that decide the shapes of tensors."""

    segment_rows: Tensor  # r, indices of the (b s) segments that are not empty
    max_sentences: int  # sentences of the longest segment
    num_tokens: int = 0  # of all segments, special tokens too; 0 = not counted


class SegmentBatch(NamedTuple):
    """A batch of documents cut into segments, with one question per document.

    Shorter documents are padded with empty segments. Without questions, ``question`` has no column.
    """

    tokens: Tensor  # b s n, ids
    mask: Tensor  # b s n, True = a real token
    text_mask: Tensor  # b s n, True = a token of the text, not a special one
    question: Tensor  # b q, ids
    question_mask: Tensor  # b q, True = a real token
    answer_ids: Tensor  # b w, the answer; each word is scored after the words before it
    prediction_mask: Tensor | None = None  # b s n, True = a masked token, to be predicted
    sentence_ids: Tensor | None = None  # b s n, the token's sentence in its segment; -1 = none
    sizes: BatchSizes | None = None  # counted on the CPU, so that no code waits for the GPU


class WriteProbe(NamedTuple):
    """One segment's write, and a read of some written items: inputs of the write losses."""

    state_before: Any  # the memory's state, b …
    written: Written  # weights b p s
    mask: Tensor  # b p, True = a real item
    reading: Reading | None = None  # a read with l written items as queries, if requested
    slots: Tensor | None = None  # b l, the slot with the largest share of each; -1 = none
    logits: Tensor | None = None  # b l v, of the words that the read gives
    targets: Tensor | None = None  # b l j, the tokens of each item, padded with IGNORE


class SegmentOutput(NamedTuple):
    """Logits of the answer, with the reading and the memory that they come from."""

    logits: Tensor  # b 1 v, of the first word
    rest_logits: Tensor  # b w-1 v, of the other words, each after the words before it
    nsp_logits: Tensor  # b 2, next-sentence prediction: does the question continue the document?
    reading: Reading  # of the question
    state: Any  # the memory after the last segment
    masked_logits: Tensor | None  # p v, at the masked tokens, in their order
    write_probes: tuple[WriteProbe, ...]  # one per segment, or one for a merged write


def pool_sentences(values: Tensor, sentence_ids: Tensor, num_sentences: int, *, root_scaled: bool = False) -> Tensor:
    """Average ``values`` (b n d) over the tokens of each sentence: b p d.

    An empty sentence gives zeros. With ``root_scaled`` the sum is divided by the square root of
    the number of tokens instead, so that the result still carries that number.
    """
    index = sentence_ids.clamp(min=0)
    is_text = (sentence_ids >= 0).to(values.dtype)
    num_tokens = values.new_zeros(values.shape[0], num_sentences).scatter_add(1, index, is_text)
    wide_index = index.unsqueeze(-1).expand_as(values)
    total = values.new_zeros(values.shape[0], num_sentences, values.shape[-1])
    total = total.scatter_add(1, wide_index, values * is_text.unsqueeze(-1))
    num_tokens = num_tokens.clamp(min=1).unsqueeze(-1)
    return total / (num_tokens.sqrt() if root_scaled else num_tokens)


def any_per_sentence(flags: Tensor, sentence_ids: Tensor, num_sentences: int) -> Tensor:
    """Mark the sentences (b p) that have a token whose flag (b n) is set."""
    index, is_set = sentence_ids.clamp(min=0), (sentence_ids >= 0) & flags
    return flags.new_zeros(flags.shape[0], num_sentences, dtype=torch.long).scatter_add(1, index, is_set.long()).bool()


def measure_batch(inputs: SegmentBatch) -> BatchSizes:
    """Return the batch's sizes, or count them, which waits for the GPU."""
    if inputs.sizes is not None:
        return inputs.sizes
    rows = inputs.mask.flatten(0, 1).any(1).nonzero().squeeze(1)
    sentence_ids = inputs.sentence_ids
    return BatchSizes(rows, 0 if sentence_ids is None or not sentence_ids.numel() else int(sentence_ids.max()) + 1)
