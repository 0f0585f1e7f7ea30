"""Noisy texts, and their restoration by slow plain loops.

Shapes: b batch, n tokens.
"""

from typing import Any

import torch
from corpus_batches import FIRST_ORDINARY, VOCAB, make_batch
from torch import Tensor

from mnemic.data.corpora.batches import CorpusBatch
from mnemic.objectives.noises import NoiseVocabulary, NoisyTexts, apply_noises, build_noises, start_texts

SENTINELS = torch.arange(VOCAB, VOCAB + 12)
SENTENCE_ENDS = torch.tensor([5, 6, 7])
VOCABULARY = NoiseVocabulary(torch.tensor(4), torch.arange(FIRST_ORDINARY, VOCAB), SENTINELS, SENTENCE_ENDS)


def make_noise_batch(count: int = 6, length: int = 24, **fields: Any) -> CorpusBatch:
    """Make rows of two texts, whose last one is short, with sentinels and full stops."""
    return make_batch(count, length, sentinel_ids=SENTINELS, sentence_end_ids=SENTENCE_ENDS, **fields)


def make_copies(tokens: list[int], count: int) -> NoisyTexts:
    """Make ``count`` copies of one text of ordinary tokens, between [CLS] and [SEP]."""
    row = torch.tensor([2, *tokens, 3])
    batch = make_noise_batch(2, len(row))
    rows = row.expand(count, -1)
    return start_texts(
        batch._replace(
            tokens=rows,
            mask=torch.ones_like(rows, dtype=torch.bool),
            unmaskable=rows < FIRST_ORDINARY,
            word_starts=torch.ones_like(rows, dtype=torch.bool),
        )
    )


def apply(texts: NoisyTexts, *specs: dict[str, Any], keys: Tensor | None = None) -> NoisyTexts:
    return apply_noises(
        build_noises(specs), texts, torch.arange(len(texts.tokens)) if keys is None else keys, VOCABULARY
    )


def list_source(texts: NoisyTexts, row: int) -> list[int]:
    return texts.tokens[row][texts.mask[row]].tolist()


def list_origins(texts: NoisyTexts, row: int) -> list[int]:
    return texts.origins[row][texts.mask[row]].tolist()


def list_targets(texts: NoisyTexts, row: int) -> list[int]:
    return texts.targets[row][texts.target_mask[row]].tolist()


def restore_from_targets(kind: str, texts: NoisyTexts, row: int) -> list[int]:
    """Rebuild a text from its source and what the decoder says, as a reader would."""
    source, targets = list_source(texts, row), list_targets(texts, row)
    if kind == "sentinels":
        spans: dict[int, list[int]] = {}
        for token in targets[1:-1]:
            if token in SENTINELS:
                current = spans.setdefault(token, [])
            else:
                current.append(token)
        return [restored for token in source for restored in spans.get(token, [token])]
    if kind == "fragment":
        positions = texts.target_positions[row][texts.target_mask[row]].tolist()
        restored = list(source)
        for position, token in zip(positions[1:], targets[1:]):
            restored[position] = token
        return restored
    if kind == "prefix":
        return source[:-1] + targets[1:]
    return targets  # all of the text


def count_rows(rows: Tensor) -> dict[tuple[int, ...], int]:
    values, counts = rows.unique(dim=0, return_counts=True)
    return dict(zip(map(tuple, values.tolist()), counts.tolist()))
