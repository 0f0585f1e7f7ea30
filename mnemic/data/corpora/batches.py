"""Dataset of pre-training sequences, and its batches.

Shapes: r sequences of the dataset, t tokens of all of them, b batch, n tokens, v vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, sqrt
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from mnemic.data.batches import TensorDataset, locate_tokens, ordinary_ids_of, sentence_end_ids_of
from mnemic.data.corpora.sequence_folder import SequenceArrays
from mnemic.data.corpora.word_keys import find_rare_words, find_rows, key_words
from mnemic.text import SubwordTokenizer

MAX_RESIDENT_BYTES = 4 * 2**30  # larger token arrays stay on the disk, whatever the device
UNIFORM_BITS = 24  # of a uniform number: the precision of float32
NUM_DEVIATIONS = 8  # of a batch's tokens above the mean: 1 batch in 10^15 has more
TOKEN_MULTIPLE = 64  # of ``max_batch_tokens``, for fast kernels
NO_IDS = torch.empty(0, dtype=torch.long)


class CorpusBatch(NamedTuple):
    """A batch of sequences that an objective of pre-training masks."""

    tokens: Tensor  # b n, not yet masked
    mask: Tensor  # b n, True = no padding
    segments: Tensor  # b n, token types
    word_starts: Tensor  # b n, True where a word starts
    unmaskable: Tensor  # b n, True for special tokens and padding
    next_sentence_labels: Tensor  # b, target of next-sentence prediction: 1, 0 or IGNORE
    mask_seeds: Tensor  # b, the seed of each sequence's random masking
    mask_id: Tensor  # the id of [MASK]
    ordinary_ids: Tensor  # v, the ids of ordinary tokens, for random replacement
    max_tokens: int = 0  # bound on tokens that are not padding; 0: unknown
    note_rows: Tensor | None = None  # b n, the number of each token's rare word; -1: it is in none
    num_notes: int = 0  # rare words of the corpus
    sentinel_ids: Tensor = NO_IDS  # of tokens that stand for spans, in order
    sentence_end_ids: Tensor = NO_IDS  # of full stops and the like


@dataclass(frozen=True, kw_only=True)
class CorpusDataset(TensorDataset):
    """The sequences of one split of a corpus.

    Tokens are on the device if they fit into ``MAX_RESIDENT_BYTES``; else each batch is read from
    the disk and copied. ``copies`` is for static masking (the original BERT had 10): each sequence
    has that many masking keys, of which one is drawn; 0: a new key at each draw (dynamic masking,
    RoBERTa).
    """

    metrics: ClassVar[str] = "masked"
    num_unknown: ClassVar[int] = 0
    num_uniforms: ClassVar[int] = 2  # from which the masking seed of a sequence is made
    offsets: Tensor  # r+1, where each sequence starts in tokens
    tokens: Tensor  # t, unsigned numbers stored as int16 or int32; see ``sequence_folder``
    second_starts: Tensor  # r, where the second segment starts
    next_sentence_labels: Tensor  # r
    special_ids: Tensor
    mask_id: Tensor
    ordinary_ids: Tensor
    sentinel_ids: Tensor
    sentence_end_ids: Tensor
    pad_id: int
    copies: int = 0
    rare_keys: Tensor | None = None  # of rare words, sorted
    denoising: Any = None  # the objective whose noises a network learnt to undo, for its metrics

    def __len__(self) -> int:
        return len(self.next_sentence_labels)

    @cached_property
    def lengths(self) -> Tensor:
        return self.offsets[1:] - self.offsets[:-1]

    @cached_property
    def max_length(self) -> int:
        return int(self.lengths.max()) if len(self) else 0

    @property
    def token_counts(self) -> Tensor:
        """Return the tokens read and the tokens of each sequence, r 2: the same numbers."""
        return torch.stack([self.lengths, self.lengths], 1)

    @cached_property
    def length_mean_and_std(self) -> tuple[float, float]:
        """Mean and standard deviation of the lengths."""
        lengths = self.lengths.double()
        return float(lengths.mean()), float(lengths.std(correction=0))

    def max_batch_tokens(self, num_sequences: int) -> int:
        """Bound the tokens of a batch of random sequences; 1 batch in 10^15 has more."""
        mean, deviation = self.length_mean_and_std
        tokens = num_sequences * mean + NUM_DEVIATIONS * sqrt(num_sequences) * deviation
        return min(ceil(tokens / TOKEN_MULTIPLE) * TOKEN_MULTIPLE, num_sequences * self.max_length)

    def to(self, device: torch.device | str) -> Self:
        """Return this dataset on another device; large token arrays stay on the disk."""
        if self.tokens.nbytes <= MAX_RESIDENT_BYTES:
            return super().to(device)
        return replace(replace(self, tokens=self.tokens[:0]).to(device), tokens=self.tokens)

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> CorpusBatch:
        """Return the sequences ``rows`` (b); masking keys come from ``uniforms`` (b 2) or rows.

        Without ``compact`` the batch is as wide as the longest of all sequences, so that no GPU is
        synchronized to learn lengths, and ``max_tokens`` bounds its tokens.
        """
        starts = self.offsets[rows]
        width = 0 if compact else max_length or self.max_length
        positions, mask = locate_tokens(starts, self.offsets[rows + 1] - starts, width)  # b n
        column = torch.arange(mask.shape[1], device=rows.device)
        packed = self.read_tokens(positions)
        tokens = (packed >> 1).masked_fill(~mask, self.pad_id)
        word_starts = (packed & 1).bool() | ~mask
        unmaskable = torch.isin(tokens, self.special_ids) | ~mask
        note_rows = None
        if self.rare_keys is not None:
            note_rows = find_rows(key_words(tokens, word_starts), self.rare_keys).masked_fill(unmaskable, -1)
        return CorpusBatch(
            tokens=tokens,
            mask=mask,
            segments=((column >= self.second_starts[rows].unsqueeze(1)) & mask).long(),
            word_starts=word_starts,
            unmaskable=unmaskable,
            next_sentence_labels=self.next_sentence_labels[rows].long(),
            mask_seeds=self.draw_mask_seeds(rows, uniforms),
            mask_id=self.mask_id,
            ordinary_ids=self.ordinary_ids,
            max_tokens=0 if compact or max_length else self.max_batch_tokens(len(rows)),
            note_rows=note_rows,
            num_notes=0 if self.rare_keys is None else len(self.rare_keys),
            sentinel_ids=self.sentinel_ids,
            sentence_end_ids=self.sentence_end_ids,
        )

    def read_tokens(self, positions: Tensor) -> Tensor:
        """Read the stored tokens at ``positions`` (b n) as unsigned numbers."""
        packed = self.tokens[positions.to(self.tokens.device)].to(positions.device, non_blocking=True)
        return packed.long() & (2 ** (8 * packed.element_size()) - 1)

    def draw_mask_seeds(self, rows: Tensor, uniforms: Tensor | None) -> Tensor:
        """Return the seed of each sequence's random masking, b."""
        if uniforms is None:
            return rows
        integers = (uniforms.double() * 2**UNIFORM_BITS).long()  # b 2
        if not self.copies:
            return (integers[:, 0] << UNIFORM_BITS) + integers[:, 1]
        return rows * self.copies + integers[:, 0] * self.copies // 2**UNIFORM_BITS


def make_corpus_dataset(
    sequences: SequenceArrays, tokenizer: SubwordTokenizer, *, copies: int = 0, rare_words: Sequence[int] = ()
) -> CorpusDataset:
    """Make a dataset of stored sequences, on the CPU.

    ``rare_words`` are the least and the largest number of times that words with a note occur.
    """
    signed_dtype = np.dtype(f"<i{sequences.tokens.dtype.itemsize}")
    offsets = np.zeros(len(sequences.lengths) + 1, dtype=np.int64)
    np.cumsum(sequences.lengths, out=offsets[1:])
    special_ids = torch.tensor(sorted(tokenizer.special_ids))
    rare_keys = None
    if rare_words:
        min_count, max_count = rare_words
        bounds = {"min_count": min_count, "max_count": max_count}
        rare_keys = find_rare_words(sequences.tokens, sequences.lengths, special_ids, **bounds)
    return CorpusDataset(
        tokens=torch.from_numpy(sequences.tokens.view(signed_dtype)),
        offsets=torch.from_numpy(offsets),
        second_starts=torch.from_numpy(sequences.seconds),
        next_sentence_labels=torch.from_numpy(sequences.follows),
        special_ids=special_ids,
        mask_id=torch.tensor(tokenizer.mask),
        ordinary_ids=ordinary_ids_of(tokenizer),
        sentinel_ids=torch.tensor(tokenizer.sentinels, dtype=torch.long),
        sentence_end_ids=sentence_end_ids_of(tokenizer),
        pad_id=tokenizer.pad,
        copies=copies,
        rare_keys=rare_keys,
    )
