"""From what is said of each window to what is said of the text.

Shapes: w windows, b texts, n tokens, c classes or tags.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mnemic.respond.spans import NONE


class Span(NamedTuple):
    """An answer of a text: tokens ``first`` to ``last`` (both in it) of one of its windows."""

    window: int
    first: int  # counted from the window's first token
    last: int
    score: float  # log of the probability of both ends
    none: float  # probability that the text holds no answer


def mean_windows(scores: Tensor, owner: Tensor, count: int) -> Tensor:
    """Each text's mean (b c) of its windows' scores (w c), for the few texts of a batch.

    ``owner`` w says whose a window is; each text has at least one, and ``count`` owns padding.
    A mean, not a maximum: a maximum grows with the number of windows, so that long texts would
    lean to whichever class has the loudest window.
    """
    own = owner == torch.arange(count, device=owner.device).unsqueeze(1)  # b w
    total = (own.unsqueeze(-1) * scores.float()).sum(1)  # no matmul, which might be rounded
    return total / own.sum(1, keepdim=True)


def best_spans(scores: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """Each window's best span (w 3: first, last and score) and its score of "no answer" (w).

    ``scores`` w 2 1+n, as ``Spans`` has them. Scores are logs of probabilities among all tokens
    and "no answer" of one window, so that they may be compared between windows.
    """
    begin, end = scores.float().log_softmax(-1).unbind(1)  # w 1+n
    both = begin[:, 1:].unsqueeze(2) + end[:, 1:].unsqueeze(1)  # w n n
    place = torch.arange(both.shape[1], device=both.device)
    ahead = place - place.unsqueeze(1)  # n n
    both = both.masked_fill((ahead < 0) | (ahead >= longest), -torch.inf)
    best, where = both.flatten(1).max(1)
    ends = torch.stack([where // both.shape[1], where % both.shape[1], best], 1)
    return ends, begin[:, NONE] + end[:, NONE]


def best_of_windows(ends: Tensor, none: Tensor) -> Span:
    """The best span of one text over its windows (w 3, w).

    That there is no answer is as likely as the window says that doubts it most, against the best
    span: a window without the answer is right to say so, and says nothing of the others.
    """
    window = int(ends[:, 2].argmax())
    first, last, score = ends[window].tolist()
    nothing = torch.sigmoid((none.min() - ends[window, 2]).double())  # which tells 1 - 1e-12 from 1
    return Span(window, int(first), int(last), score, float(nothing))
