"""How sure a measured share is: intervals from the number of examples."""

from collections.abc import Mapping
from math import log, sqrt
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95  # that an interval contains the true share
Bounds = dict[str, tuple[float, float]]  # by the name of a metric, in percent


class Share(NamedTuple):
    """A mean of values from 0 to 1, and of how many examples it is."""

    value: float
    num_examples: int


def bound_shares(shares: Mapping[str, Share], num_models: int) -> tuple[Bounds, Bounds]:
    """Compute the intervals of shares in percent, and bounds for the best of several networks.

    With one network there are no bounds.
    """
    clipped = {name: (min(share.value, 1.0), share.num_examples) for name, share in shares.items()}
    intervals = {name: scale_to_percent(*wilson_interval(*share)) for name, share in clipped.items()}
    if num_models == 1:
        return intervals, {}
    return intervals, {name: scale_to_percent(*bound_best(*share, num_models)) for name, share in clipped.items()}


def scale_to_percent(low: float, high: float) -> tuple[float, float]:
    """Scale the ends of an interval to percent."""
    return 100 * low, 100 * high


def wilson_interval(share: float, count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Compute Wilson's score interval of a share of ``count`` examples (Wilson 1927).

    ``share`` may also be a mean of values from 0 to 1, such as F1: they vary less than zeros and
    ones of the same mean, so that the interval is wider than needed.

    >>> low, high = wilson_interval(0.8, 100)
    >>> round(low, 3), round(high, 3)
    (0.711, 0.867)
    """
    if not 0 <= share <= 1 or count < 0:
        raise ValueError(f"a share is from 0 to 1, of 0 or more examples, not {share} of {count}")
    if not count:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    denominator = 1 + z * z / count
    center = (share + z * z / (2 * count)) / denominator
    radius = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / denominator
    return max(0.0, center - radius), min(1.0, center + radius)


def hoeffding_radius(count: int, num_models: int = 1, confidence: float = CONFIDENCE) -> float:
    """Bound how far the measured share of the best model is from the true one.

    Hoeffding's inequality with a union bound over ``num_models`` that were compared on the same
    ``count`` examples: sqrt(ln(2M/δ) / 2N), for any distribution.

    >>> round(hoeffding_radius(1000, num_models=10), 4)
    0.0547
    """
    if count < 1 or num_models < 1:
        raise ValueError(f"at least 1 example and 1 model, not {count} and {num_models}")
    return sqrt(log(2 * num_models / (1 - confidence)) / (2 * count))


def bound_best(share: float, count: int, num_models: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Bound the true share of the best of ``num_models``, chosen by the same ``count`` examples.

    >>> [round(bound, 3) for bound in bound_best(0.8, 1000, num_models=10)]
    [0.745, 0.855]
    """
    if not 0 <= share <= 1:
        raise ValueError(f"a share is from 0 to 1, not {share}")
    radius = hoeffding_radius(count, num_models, confidence) if count else 1.0
    return max(0.0, share - radius), min(1.0, share + radius)
