"""T5's span corruption: spans replaced by sentinels, which the decoder spells out.

Shapes: b batch, n tokens; spans are counted in columns up to n, too.
"""

from typing import ClassVar

import torch
from torch import Tensor

from mnemic.objectives.noises.arrange import LAST, find_columns, insert_tokens, number_ordinary
from mnemic.objectives.noises.contract import NoiseVocabulary, NoisyTexts
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError


class SentinelNoise:
    """Replace spans by sentinels; the decoder says each sentinel with its span.

    Raffel et al. 2020 (arXiv:1910.10683), section 3.1.4, as in the authors' code: ``rate`` of the
    tokens are in spans, as many as make the mean ``length``; their lengths and those of the gaps
    between them are two random partitions, all of which are equally likely, and the text begins
    with a gap. A special token within the text is a token like others. The decoder says sentinel 0,
    span 0 … and at the end one more sentinel and [SEP].
    """

    sets_targets: ClassVar[bool] = True

    def __init__(self, *, rate: float = 0.15, length: float = 3.0) -> None:
        if not 0 < rate < 1:
            raise ConfigError(f"sentinels.rate is a share of the tokens between 0 and 1, not {rate}")
        if length < 1:
            raise ConfigError(f"sentinels.length is a mean of at least 1 token, not {length}")
        self.rate, self.length = rate, length

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
        check_sentinels(vocabulary)
        columns = torch.arange(texts.mask.shape[1], device=texts.mask.device)
        is_edge = (columns == 0) | (columns == texts.mask.sum(1, keepdim=True) - 1)
        is_inner = texts.mask & ~is_edge
        numbers, counts = number_ordinary(texts._replace(is_fixed=is_edge))
        num_noise, num_spans = self.count_noise(counts, len(vocabulary.sentinel_ids) - 1)
        uniforms = make_uniforms(keys, numbers.shape[1], 2)
        lengths = partition(num_noise, num_spans, uniforms[0])
        gaps = partition(counts - num_noise, num_spans, uniforms[1])
        ends = (lengths + gaps).cumsum(1)  # of each span, in ordinary tokens
        is_span = torch.arange(lengths.shape[1], device=lengths.device) < num_spans.unsqueeze(1)
        span_of = torch.searchsorted(ends.masked_fill(~is_span, LAST), numbers.contiguous(), right=True)
        span_of = span_of.clamp(max=lengths.shape[1] - 1)
        starts = ends - lengths
        is_noise = (numbers >= starts.gather(1, span_of)) & is_inner & is_span.gather(1, span_of)
        sentinels = vocabulary.sentinel_ids[
            torch.arange(lengths.shape[1], device=lengths.device).clamp(max=len(vocabulary.sentinel_ids) - 1)
        ].expand_as(lengths)
        before = find_columns(numbers).gather(1, starts.clamp(min=0, max=lengths.shape[1] - 1))
        source = insert_tokens(texts, ~is_noise, sentinels, before, is_span)
        is_sentinel = torch.isin(source.tokens, vocabulary.sentinel_ids)
        return set_spans(source._replace(is_fixed=source.is_fixed | is_sentinel), texts, is_noise, span_of, num_spans,
                         vocabulary)  # fmt: skip

    def count_noise(self, counts: Tensor, max_spans: int) -> tuple[Tensor, Tensor]:
        """Count the tokens in spans and the spans of texts of ``counts`` tokens, b each."""
        num_noise = round_half_even(self.rate * counts.double()).clamp(min=1).minimum((counts - 1).clamp(min=0))
        num_spans = round_half_even(num_noise / self.length).clamp(min=1).minimum(num_noise)
        return num_noise, num_spans.minimum(counts - num_noise).clamp(max=max_spans)


def partition(totals: Tensor, num_parts: Tensor, uniforms: Tensor) -> Tensor:
    """Partition ``totals`` (b) into ``num_parts`` (b) lengths from 1 on, b n; all ways alike."""
    columns = torch.arange(uniforms.shape[1], device=uniforms.device)
    # A part ends after each of the cuts, which are the smallest numbers of the inner borders.
    keys = uniforms.masked_fill(columns >= totals.unsqueeze(1) - 1, 2.0)
    ranks = keys.argsort(dim=1, stable=True).argsort(1)
    is_cut = ranks < num_parts.unsqueeze(1) - 1
    part_of = is_cut.cumsum(1) - is_cut.long()  # of the token before each border
    is_token = columns < totals.unsqueeze(1)
    return torch.zeros_like(part_of).scatter_add(1, part_of, is_token.long())


def set_spans(
    source: NoisyTexts, texts: NoisyTexts, is_noise: Tensor, span_of: Tensor, num_spans: Tensor,
    vocabulary: NoiseVocabulary,
) -> NoisyTexts:  # fmt: skip
    """Let the decoder say each sentinel with the tokens of its span."""
    count = texts.tokens.shape[1]
    numbers = torch.arange(count, device=span_of.device).clamp(max=len(vocabulary.sentinel_ids) - 1)
    sentinels = vocabulary.sentinel_ids[numbers].expand_as(texts.tokens)
    is_said = torch.arange(count, device=span_of.device) <= num_spans.unsqueeze(1)
    last_column = texts.mask.sum(1, keepdim=True) - 1
    columns = torch.arange(count, device=span_of.device).expand_as(span_of)
    is_edge = (columns == 0) | (columns == last_column)
    # [CLS], then sentinel i before all tokens of span i, then the last sentinel and [SEP].
    token_keys = torch.where(is_edge, torch.where(columns == 0, -1, LAST - 1), (2 * span_of + 1) * count + columns)
    keys = torch.cat([token_keys, 2 * columns * count], 1)
    keep = torch.cat([(is_noise | is_edge) & texts.mask, is_said], 1)
    width = int(keep.sum(1).max())
    order = keys.masked_fill(~keep, LAST).argsort(dim=1, stable=True)[:, :width]
    target_mask = torch.arange(width, device=order.device) < keep.sum(1, keepdim=True)
    targets = torch.cat([texts.tokens, sentinels], 1).gather(1, order).masked_fill(~target_mask, 0)
    positions = torch.arange(width, device=order.device).expand_as(targets)
    return source._replace(targets=targets, target_mask=target_mask, target_positions=positions)


def round_half_even(numbers: Tensor) -> Tensor:
    """Round numbers to whole ones as Python and NumPy do."""
    return numbers.double().round().long()


def check_sentinels(vocabulary: NoiseVocabulary) -> None:
    """Raise an error without sentinels: a span and the end need one each."""
    if len(vocabulary.sentinel_ids) < 2:
        raise ConfigError(
            "objective.noises has sentinels, but the tokenizer has none: set data.tokenizer.sentinels=100, and make "
            "the sequences with it"
        )
