"""A small batch of a corpus, for objectives of pre-training."""

from typing import Any

import torch

from mnemic.data.corpora.batches import CorpusBatch
from mnemic.models import IGNORE

VOCAB = 30
CLS, SEP, MASK, FIRST_ORDINARY = 2, 3, 4, 5
ROW_FIELDS = ("tokens", "mask", "segments", "word_starts", "unmaskable", "next_sentence_labels", "mask_seeds")


def make_batch(count: int = 6, length: int = 24, **fields: Any) -> CorpusBatch:
    """Make rows of two texts, with [SEP] after each; the second one of the last row is missing."""
    tokens = torch.randint(FIRST_ORDINARY, VOCAB, (count, length), generator=torch.Generator().manual_seed(0))
    tokens[:, 0], tokens[:, length // 2], tokens[:, -1] = CLS, SEP, SEP
    tokens[-1, length // 2 + 1 :] = 0
    batch = CorpusBatch(
        tokens=tokens,
        mask=tokens != 0,
        segments=torch.zeros_like(tokens),
        word_starts=torch.rand(count, length, generator=torch.Generator().manual_seed(1)) < 0.7,
        unmaskable=tokens < FIRST_ORDINARY,
        next_sentence_labels=torch.full((count,), IGNORE),
        mask_seeds=torch.arange(count),
        mask_id=torch.tensor(MASK),
        ordinary_ids=torch.arange(FIRST_ORDINARY, VOCAB),
    )
    return batch._replace(**fields)


def select_rows(batch: CorpusBatch, rows: slice) -> CorpusBatch:
    return batch._replace(**{name: getattr(batch, name)[rows] for name in ROW_FIELDS})
