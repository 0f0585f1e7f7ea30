"""Generate texts token by token: greedy search, beam search and sampling.

A decoder is a function ``step(last_tokens, state) → (logits, state)``. It takes the last tokens
(b) and a tree of tensors whose first axis is the batch, and returns the logits of the next token
(b v) and the next state. A key-value cache is such a state, and so is a recurrent hidden state.

Shapes: b batch, w beams, n tokens generated, v vocabulary.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

DecodingStep = Callable[[Tensor, Any], tuple[Tensor, Any]]
MINUS_INFINITY = float("-inf")


class GeneratedTexts(NamedTuple):
    """Generated token ids, best text first, padded with the end id."""

    tokens: Tensor  # b w n, without the start token
    lengths: Tensor  # b w, with the end token, if there is one
    log_probabilities: Tensor  # b w, of the whole texts


def greedy_search(step: DecodingStep, state: Any, start_ids: Tensor, *, end_id: int, max_tokens: int) -> GeneratedTexts:
    """Generate the most likely next token until ``end_id`` or ``max_tokens`` tokens.

    ``start_ids`` (b) are the first tokens that ``step`` gets.
    """
    return beam_search(step, state, start_ids, end_id=end_id, max_tokens=max_tokens, num_beams=1)


@torch.no_grad()
def beam_search(
    step: DecodingStep,
    state: Any,
    start_ids: Tensor,
    *,
    end_id: int,
    max_tokens: int,
    num_beams: int = 4,
    length_penalty: float = 0.0,
) -> GeneratedTexts:
    """Keep the ``num_beams`` most likely texts at every step; return them, best first.

    Longer texts are less likely, so the final ranking divides a text's log-probability by
    ``((5 + n) / 6) ** length_penalty`` (Wu et al. 2016); 0 leaves it unchanged.
    """
    check_bounds(max_tokens, num_beams)
    batch = start_ids.shape[0]
    tokens = start_ids.new_full((batch, 1, 0), end_id)  # b w n
    log_probabilities = start_ids.new_zeros(batch, 1, dtype=torch.float)
    has_ended = start_ids.new_zeros(batch, 1, dtype=torch.bool)
    last_tokens = start_ids
    for _ in range(max_tokens):
        if has_ended.all():
            break
        token_logs, state = step(last_tokens, state)
        token_logs = token_logs.float().log_softmax(-1).unflatten(0, has_ended.shape)  # b w v
        # A text that has ended continues with the end token, at no cost.
        end_only = torch.full_like(token_logs, MINUS_INFINITY)
        end_only[..., end_id] = 0.0
        totals = log_probabilities.unsqueeze(2) + torch.where(has_ended.unsqueeze(2), end_only, token_logs)  # b w v
        vocab = totals.shape[2]
        log_probabilities, indices = totals.flatten(1).topk(min(num_beams, vocab * has_ended.shape[1]), 1)  # b w
        beam_indices, next_tokens = indices // vocab, indices % vocab
        tokens = torch.cat([gather_beams(tokens, beam_indices), next_tokens.unsqueeze(2)], 2)
        has_ended = has_ended.gather(1, beam_indices) | (next_tokens == end_id)
        first_rows = torch.arange(batch, device=start_ids.device).unsqueeze(1) * totals.shape[1]
        state = select_rows(state, (first_rows + beam_indices).flatten())
        last_tokens = next_tokens.flatten()
    lengths = count_tokens(tokens, end_id)
    penalized = log_probabilities / ((5 + lengths) / 6) ** length_penalty
    order = penalized.argsort(dim=1, descending=True, stable=True)
    return GeneratedTexts(gather_beams(tokens, order), lengths.gather(1, order), log_probabilities.gather(1, order))


@torch.no_grad()
def sample_texts(
    step: DecodingStep,
    state: Any,
    start_ids: Tensor,
    *,
    end_id: int,
    max_tokens: int,
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
) -> GeneratedTexts:
    """Sample each next token from the ``top_k`` most likely ones (0: all) within ``top_p``.

    ``temperature`` below 1 prefers likely tokens. The log-probabilities are the network's, without
    temperature, ``top_k`` and ``top_p``.
    """
    check_bounds(max_tokens, 1)
    if not temperature > 0 or top_k < 0 or not 0 < top_p <= 1:
        received = f"temperature = {temperature}, top_k = {top_k}, top_p = {top_p}"
        raise ValueError(f"sampling takes temperature > 0, top_k ≥ 0 and 0 < top_p ≤ 1, not {received}")
    token_columns: list[Tensor] = []
    has_ended, log_probabilities = (torch.zeros_like(start_ids, dtype=torch.bool), torch.zeros_like(start_ids).float())
    last_tokens = start_ids
    for _ in range(max_tokens):
        if has_ended.all():
            break
        logits, state = step(last_tokens, state)
        probabilities = filter_probabilities((logits.float() / temperature).softmax(-1), top_k, top_p)
        last_tokens = torch.multinomial(probabilities, 1, generator=generator).squeeze(1)
        last_tokens = last_tokens.masked_fill(has_ended, end_id)
        token_logs = logits.float().log_softmax(-1).gather(1, last_tokens.unsqueeze(1)).squeeze(1)
        log_probabilities = log_probabilities + token_logs.masked_fill(has_ended, 0.0)
        has_ended = has_ended | (last_tokens == end_id)
        token_columns.append(last_tokens)
    tokens = torch.stack(token_columns, 1).unsqueeze(1)  # b 1 n
    return GeneratedTexts(tokens, count_tokens(tokens, end_id), log_probabilities.unsqueeze(1))


def filter_probabilities(probabilities: Tensor, top_k: int, top_p: float) -> Tensor:
    """Set all probabilities (b v) to 0 but the ``top_k`` largest and the top-p set."""
    sorted_probabilities, order = probabilities.sort(-1, descending=True)
    mass_before = sorted_probabilities.cumsum(-1) - sorted_probabilities  # of likelier tokens
    is_kept = mass_before < top_p
    if top_k:
        is_kept[:, top_k:] = False
    return torch.zeros_like(probabilities).scatter(1, order, sorted_probabilities * is_kept)


def count_tokens(tokens: Tensor, end_id: int) -> Tensor:
    """Count the tokens of each text, with its end token: … n → …."""
    ends_before = (tokens == end_id).long().cumsum(-1) - (tokens == end_id).long()
    return (ends_before == 0).sum(-1)


def gather_beams(tokens: Tensor, beam_indices: Tensor) -> Tensor:
    """Gather beams (b w) of ``tokens`` (b … n)."""
    return tokens.gather(1, beam_indices.unsqueeze(2).expand(-1, -1, tokens.shape[2]))


def select_rows(state: Any, rows: Tensor) -> Any:
    """Select rows of the batch in every tensor of a decoder state."""
    return tree_map(lambda tensor: tensor.index_select(0, rows), state)


def check_bounds(max_tokens: int, num_beams: int) -> None:
    """Check that there is at least one token and one beam."""
    if max_tokens < 1 or num_beams < 1:
        raise ValueError(f"generation takes max_tokens and num_beams ≥ 1, not {max_tokens} and {num_beams}")
