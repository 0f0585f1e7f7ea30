"""Keys of words and n-grams, one number each, and which words are rare.

Shapes: b batch, n tokens, w rare words.
"""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from mnemic.recipe import ConfigError

MULTIPLIER = 0x9E3779B97F4A7C15 - 2**64  # odd, so that no digit is lost modulo 2^64
BLOCK_TOKENS = 2_000_000  # that are looked at together


def weigh_tokens(ids: Tensor, offsets: Tensor) -> Tensor:
    """Compute what tokens add to the keys of their words, by their offset.

    A key is the sum of (id + 1) · multiplier^(offset + 1) modulo 2^64: of 10^6 random words two
    have the same key with a probability of 1 in 10^7.
    """
    powers = torch.full(ids.shape[-1:], MULTIPLIER, device=ids.device).cumprod(0)
    return (ids + 1) * powers[offsets]


def key_words(ids: Tensor, word_starts: Tensor) -> Tensor:
    """Compute the key of each token's word: b n → b n.

    The first token of a row starts a word.
    """
    positions = torch.arange(ids.shape[1], device=ids.device)
    numbers = number_words(word_starts)  # b n
    starts = torch.where(word_starts, positions, 0).cummax(1).values
    weights = weigh_tokens(ids, positions - starts)
    return torch.zeros_like(ids).scatter_add(1, numbers, weights).gather(1, numbers)


def number_words(word_starts: Tensor) -> Tensor:
    """Number the words of each row from 0 on: b n → b n, per token."""
    return (word_starts.long().cumsum(1) - 1).clamp(min=0)


def find_rare_words(
    tokens: np.ndarray, lengths: np.ndarray, special_ids: Tensor, *, min_count: int, max_count: int
) -> Tensor:
    """List the keys of words that occur from ``min_count`` to ``max_count`` times: w, sorted.

    ``tokens`` are those of a folder of sequences, twice each id plus 1 where a word starts, and
    ``lengths`` those of the sequences. A word at the border of two sequences is cut there, and
    words with special tokens are left out.
    """
    if not 1 <= min_count <= max_count:
        raise ConfigError(
            "data.rare_words are the least and the largest number of times that a word occurs, such as [5, 50], not "
            f"[{min_count}, {max_count}]"
        )
    ends = np.cumsum(lengths)
    block_ends = np.unique(np.searchsorted(ends, np.arange(BLOCK_TOKENS, len(tokens) + BLOCK_TOKENS, BLOCK_TOKENS)))
    borders = [0, *(int(ends[min(number, len(ends) - 1)]) for number in block_ends)] if len(ends) else []
    keys, counts = [torch.zeros(0, dtype=torch.long)], [torch.zeros(0, dtype=torch.long)]
    for start, end in pairwise(borders):
        packed = torch.from_numpy(tokens[start:end].astype(np.int64)).unsqueeze(0)
        ids, word_starts = packed >> 1, (packed & 1).bool()
        is_ordinary = word_starts & ~torch.isin(ids, special_ids)
        unique = key_words(ids, word_starts)[is_ordinary].unique(return_counts=True)
        keys.append(unique[0])
        counts.append(unique[1])
    all_keys, index = torch.cat(keys).unique(return_inverse=True)
    totals = torch.zeros_like(all_keys).index_add(0, index, torch.cat(counts))
    return all_keys[(totals >= min_count) & (totals <= max_count)]


def find_rows(keys: Tensor, rare_keys: Tensor) -> Tensor:
    """Find keys (b n) in sorted keys (w): the row of each, or -1."""
    if not len(rare_keys):
        return torch.full_like(keys, -1)
    rows = torch.searchsorted(rare_keys, keys.contiguous()).clamp(max=len(rare_keys) - 1)
    return torch.where(rare_keys[rows] == keys, rows, -1)
