"""Notes on rare words: a running mean of the states around each of them (TNF).

Shapes: b batch, n tokens, w rare words, d width.
"""

import torch
import torch.distributed as dist
from torch import Tensor, nn


def start_notes(count: int, width: int, seed: int, device: torch.device) -> Tensor:
    """Make random notes, w d, of the size of word vectors."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(count, width, generator=generator) * width**-0.5).to(device)


@torch.no_grad()
def update_notes(notes: Tensor, means: Tensor, rows: Tensor, rate: float) -> Tensor:
    """Move the notes of words that occur towards their new ones by ``rate``.

    ``notes`` w d; ``means`` b n d are notes to take, ``rows`` b n says of which word; -1: none.
    Several occurrences are averaged first, over all processes.
    """
    table_size = len(notes)
    index = torch.where(rows >= 0, rows, table_size).flatten()
    sums = notes.new_zeros(table_size + 1, notes.shape[1]).index_add(0, index, means.flatten(0, 1).to(notes.dtype))
    counts = notes.new_zeros(table_size + 1).index_add(0, index, notes.new_ones(len(index)))
    if dist.is_initialized() and dist.get_world_size() > 1:
        dist.all_reduce(sums)
        dist.all_reduce(counts)
    sums, counts = sums[:-1], counts[:-1].unsqueeze(1)
    return torch.where(counts > 0, (1 - rate) * notes + rate * sums / counts.clamp(min=1), notes)


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
