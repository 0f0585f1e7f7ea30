"""Sequences as batches of tensors, cut by the tokens that a batch has room for.

Shapes: b batch, n tokens, v vocabulary.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mnemic.data.corpora.sequences import Example
from mnemic.data.corpora.stream import Dealt
from mnemic.recipe import ConfigError
from mnemic.text import Subwords


class Batch(NamedTuple):
    """What an objective of pre-training corrupts, and what it asks for."""

    tokens: Tensor  # b n, as they stand in the text
    mask: Tensor  # b n, True = no padding
    segments: Tensor  # b n, token types
    starts: Tensor  # b n, True where a word begins
    fixed: Tensor  # b n, True where nothing may be masked: special tokens and padding
    follows: Tensor  # b, 1, 0 or IGNORE
    keys: Tensor  # b, one for the dice of each sequence
    hidden: Tensor  # the id of [MASK]
    ordinary: Tensor  # v, the ids that a random token may have

    def to(self, device: torch.device | str) -> "Batch":
        return Batch(*(part.to(device, non_blocking=True) for part in self))


def cut(dealt: Iterable[Dealt[Example]], tokens: int) -> Iterator[list[Dealt[Example]]]:
    """As many sequences a batch as make at most ``tokens`` tokens when padded; one at least.

    Where a batch begins does not depend on the batches before it, so a stream can go on behind any
    of them: ``batch[-1].after``.
    """
    if tokens < 1:
        raise ConfigError(f"a batch has room for at least 1 token, not {tokens}")
    batch: list[Dealt[Example]] = []
    longest = 0
    for one in dealt:
        longest = max(longest, len(one.item.ids))
        if batch and longest * (len(batch) + 1) > tokens:
            yield batch
            batch, longest = [], len(one.item.ids)
        batch.append(one)
    if batch:
        yield batch


def collate(dealt: Sequence[Dealt[Example]], tokenizer: Subwords) -> Batch:
    """The batch of these sequences, each padded to the longest."""
    examples = [one.item for one in dealt]
    longest = max(len(example.ids) for example in examples)

    def padded(rows: list[np.ndarray], value: int) -> Tensor:
        whole = np.full((len(rows), longest), value, dtype=rows[0].dtype)
        for number, row in enumerate(rows):
            whole[number, : len(row)] = row
        return torch.from_numpy(whole)

    fixed = padded([example.fixed for example in examples], True)
    sizes = torch.tensor([len(example.ids) for example in examples])
    return Batch(
        tokens=padded([example.ids for example in examples], tokenizer.pad).long(),
        mask=torch.arange(longest) < sizes[:, None],
        segments=padded([example.segments for example in examples], 0).long(),
        starts=padded([example.starts for example in examples], True),
        fixed=fixed,
        follows=torch.tensor([example.follows for example in examples]),
        keys=torch.tensor([one.key for one in dealt]),
        hidden=torch.tensor(tokenizer.mask),
        ordinary=ordinary_ids(tokenizer),
    )


@lru_cache(maxsize=8)
def ordinary_ids(tokenizer: Subwords) -> Tensor:
    """All ids but those of special tokens, v; made once for each tokenizer."""
    return torch.tensor(sorted(set(range(len(tokenizer))) - tokenizer.specials))
