"""Pearson's χ² test: do counts fit probabilities?"""

from collections.abc import Sequence

import torch
from torch import Tensor

MAX_DEVIATIONS = 4.5  # of a normal variable: one test in 300,000 fails by chance


def fits(counts: Tensor | Sequence[float], probabilities: Tensor | Sequence[float]) -> bool:
    """Whether counts of independent draws fit the probabilities of their classes.

    The cube root of χ² per degree of freedom is nearly normal (Wilson and Hilferty 1931).
    """
    observed = torch.as_tensor(counts, dtype=torch.float64)
    expected = torch.as_tensor(probabilities, dtype=torch.float64) * observed.sum()
    assert expected.min() > 5, "too few draws for a χ² test"
    freedom = len(observed) - 1
    ratio = float(((observed - expected).square() / expected).sum() / freedom)
    spread = 2 / (9 * freedom)
    return abs(ratio ** (1 / 3) - (1 - spread)) < MAX_DEVIATIONS * spread**0.5
