"""Notes on rare words: a running mean of the states around each of them (TNF).

Shapes: b batch, n tokens, w rare words, d width.
"""

from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn


def start_notes(count: int, width: int, seed: int, device: torch.device) -> Tensor:
    """Make random notes, w d, of the size of word vectors."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(count, width, generator=generator) * width**-0.5).to(device)


class NoteSums(NamedTuple):
    """The sum and the number of notes to take for each word."""

    totals: Tensor  # w d
    counts: Tensor  # w

    def plus(self, sums: "NoteSums") -> "NoteSums":
        """Return the sums of both."""
        return NoteSums(self.totals + sums.totals, self.counts + sums.counts)


@torch.no_grad()
def sum_notes(means: Tensor, rows: Tensor, count: int) -> NoteSums:
    """Sum the notes to take of each of ``count`` words.

    ``means`` b n d are the notes, ``rows`` b n says of which word; -1: none.
    """
    index = torch.where(rows >= 0, rows, count).flatten()
    values = means.flatten(0, 1).float()
    totals = values.new_zeros(count + 1, values.shape[1]).index_add(0, index, values)
    counts = values.new_zeros(count + 1).index_add(0, index, values.new_ones(len(index)))
    return NoteSums(totals[:-1], counts[:-1])


@torch.no_grad()
def update_notes(notes: Tensor, sums: NoteSums, rate: float) -> Tensor:
    """Move the notes (w d) of words that occur towards their new ones by ``rate``.

    Several occurrences are averaged first, over all processes.
    """
    totals, counts = sums
    if dist.is_initialized() and dist.get_world_size() > 1:
        totals, counts = totals.clone(), counts.clone()
        dist.all_reduce(totals)
        dist.all_reduce(counts)
    counts = counts.unsqueeze(1)
    return torch.where(counts > 0, (1 - rate) * notes + rate * totals / counts.clamp(min=1), notes)


@torch.no_grad()
def average_around_words(states: Tensor, mask: Tensor, word_starts: Tensor, reach: int) -> Tensor:
    """Average the states around the word of each token that starts one: b n d.

    The mean is over the word itself and ``reach`` tokens to either side, as far as there are any;
    ``states`` b n d, ``mask`` and ``word_starts`` b n. It means nothing at other tokens.
    """
    num_tokens = states.shape[1]
    positions = torch.arange(num_tokens, device=states.device)
    next_starts = torch.where(word_starts, positions, num_tokens)  # b n
    next_starts = nn.functional.pad(next_starts[:, 1:], (0, 1), value=num_tokens)
    word_ends = next_starts.flip(1).cummin(1).values.flip(1) - 1
    lengths = mask.sum(1, keepdim=True)
    first = (positions - reach).clamp(min=0).expand_as(mask)
    last = torch.minimum(word_ends + reach, lengths - 1)
    sums = nn.functional.pad((states.float() * mask.unsqueeze(-1)).cumsum(1), (0, 0, 1, 0))  # b n+1 d

    def gather_sums(index: Tensor) -> Tensor:
        return sums.gather(1, index.clamp(min=0).unsqueeze(-1).expand_as(states))

    return (gather_sums(last + 1) - gather_sums(first)) / (last + 1 - first).clamp(min=1).unsqueeze(-1)
