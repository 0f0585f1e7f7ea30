"""Merge the predictions of a text's windows into one prediction of the text.

Shapes: w windows, b texts, n tokens, c classes or tags.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mnemic.respond.spans import NO_ANSWER

MAX_RELEVANCE = 100.0  # bound of a text's relevance, a finite number also for an empty text


class TokenSpan(NamedTuple):
    """An answer span of a text, as token indices of one of its windows."""

    window: int
    first_token: int  # counted from the window's first token
    last_token: int  # inclusive
    log_probability: float  # of both ends
    similar_log_probability: float  # of all spans that share most tokens with it, together
    no_answer_probability: float  # that the text holds no answer
    relevance: float  # how well the text answers: log-odds, or the largest logit of a head for it


def average_windows(logits: Tensor, text_of_window: Tensor, num_texts: int) -> Tensor:
    """Average the logits of windows (w c) over each text (b c).

    ``text_of_window`` w is the index of each window's text, ``num_texts`` for padding; each text
    has at least one window. A mean, not a maximum: a maximum grows with the number of windows, so
    that long texts would tend to the class with the largest logit in any window.
    """
    is_owned = text_of_window == torch.arange(num_texts, device=text_of_window.device).unsqueeze(1)  # b w
    total = (is_owned.unsqueeze(-1) * logits.float()).sum(1)  # no matmul, which may round
    return total / is_owned.sum(1, keepdim=True)


def find_best_spans(logits: Tensor, max_tokens: int) -> tuple[Tensor, Tensor]:
    """Find each window's best span of at most ``max_tokens`` tokens.

    ``logits`` w 2 1+n, from ``SpanHead``. Returns first token, last token and log-probability of
    the span, and that of all spans similar to it (w 4), and the log-probability of "no answer" (w).
    Probabilities are over all tokens and "no answer" of one window, so that windows can be
    compared.
    """
    first_logs, last_logs = logits.float().log_softmax(-1).unbind(1)  # w 1+n
    span_scores = first_logs[:, 1:].unsqueeze(2) + last_logs[:, 1:].unsqueeze(1)  # w n n
    positions = torch.arange(span_scores.shape[1], device=span_scores.device)
    length = positions - positions.unsqueeze(1)  # n n
    span_scores = span_scores.masked_fill((length < 0) | (length >= max_tokens), -torch.inf)
    best_scores, best_indices = span_scores.flatten(1).max(1)
    first, last = best_indices // span_scores.shape[1], best_indices % span_scores.shape[1]
    similar = sum_similar_spans(span_scores, first, last)
    return torch.stack([first, last, best_scores, similar], 1), first_logs[:, NO_ANSWER] + last_logs[:, NO_ANSWER]


def sum_similar_spans(span_scores: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Sum the probabilities of spans that overlap the best one, F1 ≥ ½.

    ``span_scores`` are log-probabilities (w n n), ``first`` and ``last`` (w) the best span. F1 is
    over tokens. Returns log-probabilities (w).
    """
    positions = torch.arange(span_scores.shape[1], device=span_scores.device)
    first, last = first.view(-1, 1, 1), last.view(-1, 1, 1)
    starts, ends = positions.view(1, -1, 1), positions.view(1, 1, -1)
    overlap = torch.minimum(ends, last) - torch.maximum(starts, first) + 1  # w n n
    is_similar = 4 * overlap >= ends - starts + last - first + 2
    return span_scores.masked_fill(~is_similar, -torch.inf).flatten(1).logsumexp(1)


def select_best_span(best_spans: Tensor, no_answer: Tensor, relevance: Tensor | None = None) -> TokenSpan:
    """Select the best span of one text over its windows (w 4, w).

    The score of "no answer" is the lowest of all windows, compared with the best span: a window
    without the answer rightly predicts "no answer", which says nothing about the other windows. So
    is the relevance of a text: the largest of its windows' logits ``relevance`` (w), or without
    them the log-odds of the best span against "no answer".
    """
    window = int(best_spans[:, 2].argmax())
    first, last, log_probability, similar_log_probability = best_spans[window].tolist()
    log_odds = (best_spans[window, 2] - no_answer.min()).double()  # in float64, to tell 1 - 1e-12 from 1
    score = log_odds if relevance is None else relevance.max()
    return TokenSpan(
        window,
        int(first),
        int(last),
        log_probability,
        similar_log_probability,
        float(torch.sigmoid(-log_odds)),
        float(score.nan_to_num().clamp(-MAX_RELEVANCE, MAX_RELEVANCE)),
    )
