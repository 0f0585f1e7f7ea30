"""Generate texts token by token: greedy search, beam search and sampling.

A decoder is a function ``step(last_tokens, state) → (logits, state)``. It takes the last tokens
(b) and a tree of tensors whose first axis is the batch, and returns the logits of the next token
(b v) and the next state. A key-value cache is such a state, and so is a recurrent hidden state. Or
it is a ``DecodingSession``, which knows of beams and shares work among them.

Shapes: b batch, w beams, n tokens generated, v vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.encode.seq2seq.sessions import DecodingSession, DecodingStep, StepSession

MINUS_INFINITY = float("-inf")


class GeneratedTexts(NamedTuple):
    """Generated token ids, best text first, padded with the end id."""

    tokens: Tensor  # b w n, without the start token
    lengths: Tensor  # b w, with the end token, if there is one
    log_probabilities: Tensor  # b w, of the whole texts


class SearchOptions(NamedTuple):
    """What a search looks for.

    Longer texts are less likely, so the final ranking divides a text's log-probability by
    ``((5 + n) / 6) ** length_penalty`` (Wu et al. 2016); 0 leaves it unchanged. No text ends before
    ``min_tokens`` tokens, and none has the same ``no_repeat_ngrams`` tokens in a row twice (0: it
    may).
    """

    end_id: int
    max_tokens: int
    num_beams: int = 1
    length_penalty: float = 0.0
    min_tokens: int = 0
    no_repeat_ngrams: int = 0


class SamplingOptions(NamedTuple):
    """How to sample the next token.

    From the ``top_k`` most likely ones (0: all) within ``top_p``. A ``temperature`` below 1 prefers
    likely tokens.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0


class Beams(NamedTuple):
    """The texts so far of each source."""

    tokens: Tensor  # b w n
    log_probabilities: Tensor  # b w
    has_ended: Tensor  # b w


def greedy_search(step: DecodingStep, state: Any, start_ids: Tensor, *, end_id: int, max_tokens: int) -> GeneratedTexts:
    """Generate the most likely next token until ``end_id`` or ``max_tokens`` tokens.

    ``start_ids`` (b) are the first tokens that ``step`` gets.
    """
    return search_texts(StepSession(step, state), start_ids, SearchOptions(end_id, max_tokens))


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
    """Keep the ``num_beams`` most likely texts at every step; return them, best first."""
    options = SearchOptions(end_id, max_tokens, num_beams, length_penalty)
    return search_texts(StepSession(step, state), start_ids, options)


@torch.no_grad()
def search_texts(session: DecodingSession, start_ids: Tensor, options: SearchOptions) -> GeneratedTexts:
    """Keep the most likely texts of each source at every step; return them, best first.

    With one beam this is greedy search. Sources whose texts have all ended cost no more work. The
    log-probabilities are the network's, whatever the options forbid.
    """
    check_options(options)
    sources = session.sort_sources(start_ids)
    starts = start_ids[sources]
    beams = start_beams(starts, options.end_id)
    last_tokens, parents = starts.unsqueeze(1), None
    finished: list[tuple[Tensor, Beams]] = []
    for number in range(options.max_tokens):
        is_open = ~beams.has_ended.all(1)  # b
        num_open = int(is_open.sum())
        if not num_open:
            break
        if num_open <= session.max_open_share * len(is_open):
            finished.append((sources[~is_open], select_beams(beams, ~is_open)))
            rows = is_open.nonzero().squeeze(1)
            session.select(rows)
            sources, starts, beams, last_tokens = (
                sources[rows], starts[rows], select_beams(beams, rows), last_tokens[rows]
            )  # fmt: skip
            parents = None if parents is None else parents[rows]
        logits = widen(session.advance(last_tokens, parents))  # b w v
        beams, parents = extend_beams(beams, logits, starts, options, number)
        last_tokens = beams.tokens[..., -1]
    finished.append((sources, beams))
    return rank_texts(merge_sources(finished, options.end_id), options)


def start_beams(starts: Tensor, end_id: int) -> Beams:
    """Make one empty text per source."""
    return Beams(
        tokens=starts.new_full((len(starts), 1, 0), end_id),
        log_probabilities=starts.new_zeros(len(starts), 1, dtype=torch.float),
        has_ended=starts.new_zeros(len(starts), 1, dtype=torch.bool),
    )


def extend_beams(
    beams: Beams, logits: Tensor, starts: Tensor, options: SearchOptions, number: int
) -> tuple[Beams, Tensor]:
    """Extend texts by one token; return the best, and the beams they go on from.

    ``number`` is that of the step. The best of all beams are among the best of each. A text that
    has ended goes on with the end token, at no cost.
    """
    token_logs = forbid_tokens(logits.log_softmax(-1), beams.tokens, starts, options, number)  # b w v
    count = min(options.num_beams, token_logs.shape[-1])
    scores, ids = token_logs.max(-1, keepdim=True) if count == 1 else token_logs.topk(count, -1)  # b w k
    end_only = torch.full_like(scores[:1, :1], MINUS_INFINITY)
    end_only[..., 0] = 0.0
    has_ended = beams.has_ended.unsqueeze(-1)
    scores = beams.log_probabilities.unsqueeze(-1) + torch.where(has_ended, end_only, scores)
    ids = torch.where(has_ended, options.end_id, ids)
    num_beams = min(options.num_beams, scores.shape[1] * scores.shape[2])
    best, indices = scores.flatten(1).topk(num_beams, 1)  # b w
    parents = indices // count
    next_tokens = ids.flatten(1).gather(1, indices)
    tokens = torch.cat([gather_beams(beams.tokens, parents), next_tokens.unsqueeze(2)], 2)
    return Beams(tokens, best, beams.has_ended.gather(1, parents) | (next_tokens == options.end_id)), parents


def forbid_tokens(logits: Tensor, tokens: Tensor, starts: Tensor, options: SearchOptions, number: int) -> Tensor:
    """Set the logits (b w v) of tokens that must not come next to -inf."""
    if number < options.min_tokens:
        end_ids = torch.tensor([options.end_id], device=logits.device)
        logits = logits.index_fill(-1, end_ids, MINUS_INFINITY)
    size = options.no_repeat_ngrams
    if size and number + 1 >= size:
        history = torch.cat([starts[:, None, None].expand(-1, tokens.shape[1], -1), tokens], -1)  # b w 1+n
        windows = history.unfold(-1, size, 1)  # b w m size
        prefix = history[..., history.shape[-1] - size + 1 :].unsqueeze(-2)  # b w 1 size-1
        is_repeated = (windows[..., :-1] == prefix).all(-1)
        vocab = logits.shape[-1]
        columns = torch.where(is_repeated, windows[..., -1], vocab)
        is_forbidden = logits.new_zeros(*logits.shape[:-1], vocab + 1, dtype=torch.bool).scatter(-1, columns, True)
        logits = logits.masked_fill(is_forbidden[..., :-1], MINUS_INFINITY)
    return logits


def select_beams(beams: Beams, rows: Tensor) -> Beams:
    """Select the beams of some sources."""
    return Beams(*(values[rows] for values in beams))


def merge_sources(finished: list[tuple[Tensor, Beams]], end_id: int) -> Beams:
    """Put the beams of all sources together, in the sources' order."""
    length = max(beams.tokens.shape[2] for _, beams in finished)
    num_beams = max(beams.tokens.shape[1] for _, beams in finished)
    order = torch.cat([sources for sources, _ in finished]).argsort()

    def merge(name: str, value: Any) -> Tensor:
        """Pad and join one field of the beams."""
        pieces = []
        for _, beams in finished:
            piece = getattr(beams, name)
            padding = [0, num_beams - piece.shape[1]]
            if piece.dim() == 3:
                padding = [0, length - piece.shape[2], *padding]
            pieces.append(torch.nn.functional.pad(piece, padding, value=value))
        return torch.cat(pieces)[order]

    return Beams(merge("tokens", end_id), merge("log_probabilities", MINUS_INFINITY), merge("has_ended", True))


def rank_texts(beams: Beams, options: SearchOptions) -> GeneratedTexts:
    """Rank the texts of each source by their penalized log-probability."""
    lengths = count_tokens(beams.tokens, options.end_id)
    penalized = beams.log_probabilities / ((5 + lengths) / 6) ** options.length_penalty
    order = penalized.argsort(dim=1, descending=True, stable=True)
    return GeneratedTexts(
        gather_beams(beams.tokens, order), lengths.gather(1, order), beams.log_probabilities.gather(1, order)
    )


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
    sampling = SamplingOptions(temperature, top_k, top_p)
    return draw_texts(StepSession(step, state), start_ids, SearchOptions(end_id, max_tokens), sampling, generator)


@torch.no_grad()
def draw_texts(
    session: DecodingSession,
    start_ids: Tensor,
    options: SearchOptions,
    sampling: SamplingOptions,
    generator: torch.Generator,
) -> GeneratedTexts:
    """Sample one text per source; of ``options`` the penalty and the beams do not count."""
    check_options(options)
    temperature, top_k, top_p = sampling
    if not temperature > 0 or top_k < 0 or not 0 < top_p <= 1:
        received = f"temperature = {temperature}, top_k = {top_k}, top_p = {top_p}"
        raise ValueError(f"sampling takes temperature > 0, top_k ≥ 0 and 0 < top_p ≤ 1, not {received}")
    sources = session.sort_sources(start_ids)
    starts = start_ids[sources]
    beams, last_tokens = start_beams(starts, options.end_id), starts.unsqueeze(1)
    for number in range(options.max_tokens):
        if beams.has_ended.all():
            break
        logits = widen(session.advance(last_tokens, None))  # b 1 v
        log_probabilities = logits.log_softmax(-1)
        allowed = forbid_tokens(logits, beams.tokens, starts, options, number)
        probabilities = filter_probabilities((allowed[:, 0] / temperature).softmax(-1), top_k, top_p)
        last_tokens = torch.multinomial(probabilities, 1, generator=generator)
        last_tokens = last_tokens.masked_fill(beams.has_ended, options.end_id)  # b 1
        token_logs = log_probabilities.gather(-1, last_tokens.unsqueeze(-1)).squeeze(-1)
        beams = Beams(
            torch.cat([beams.tokens, last_tokens.unsqueeze(2)], 2),
            beams.log_probabilities + token_logs.masked_fill(beams.has_ended, 0.0),
            beams.has_ended | (last_tokens == options.end_id),
        )
    return rank_texts(merge_sources([(sources, beams)], options.end_id), options)


def widen(logits: Tensor) -> Tensor:
    """Convert logits of 16 bits to float32; leave others as they are."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


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


def check_options(options: SearchOptions) -> None:
    """Check that there is at least one token and one beam."""
    if options.max_tokens < 1 or options.num_beams < 1:
        received = f"{options.max_tokens} and {options.num_beams}"
        raise ValueError(f"generation takes max_tokens and num_beams ≥ 1, not {received}")
    if not 0 <= options.min_tokens <= options.max_tokens or options.no_repeat_ngrams < 0:
        received = f"{options.min_tokens} and {options.no_repeat_ngrams}"
        raise ValueError(f"generation takes min_tokens up to max_tokens and no_repeat_ngrams ≥ 0, not {received}")
