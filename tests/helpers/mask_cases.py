"""Rows of words to mask, and the bounds of what chance may do."""

import torch
from torch import Tensor

MASK = 4
ORDINARY = torch.tensor([1, *range(5, 1000)])
BATCH = (50, 2000)  # 100,000 tokens


def is_near(count: int | Tensor, total: int | Tensor, probability: float, *, num_deviations: float = 4.5) -> bool:
    """Check that ``count`` of ``total`` is plausible for this probability."""
    count, total = float(count), float(total)
    return abs(count - probability * total) < num_deviations * (probability * (1 - probability) * total) ** 0.5


def make_batch(seed: int = 0, shape: tuple[int, int] = BATCH) -> tuple[Tensor, Tensor, Tensor]:
    """Make ids, unmaskable and word starts: words of one to four tokens, special edges."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 1000, shape, generator=generator)
    unmaskable = torch.zeros(shape, dtype=torch.bool)
    unmaskable[:, 0] = unmaskable[:, -1] = True
    unmaskable[0, shape[1] // 2 :] = True  # padding
    ids[unmaskable] = 3
    starts = torch.rand(shape, generator=generator) < 0.6
    starts |= unmaskable | unmaskable.roll(1, 1)
    return ids, unmaskable, starts
