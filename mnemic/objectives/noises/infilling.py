"""Text infilling: spans of words, each replaced by a single [MASK].

Shapes: b batch, n tokens; spans and words are counted in columns up to n, too.
"""

from math import exp
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from mnemic.objectives.noises.arrange import insert_tokens
from mnemic.objectives.noises.contract import NoiseVocabulary, NoisyTexts
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError

NEVER = 2.0  # after all uniform numbers
MAX_MEAN = 50.0  # of lengths; their distribution is tabulated
NUM_UNIFORMS = 5  # length and place of a span, place of a word, is a mask random, by which token


class InfillingSpans(NamedTuple):
    """Spans of the words of texts; some have no word."""

    starts: Tensor  # b n, the number of the word before which a span begins
    lengths: Tensor  # b n, in words
    is_real: Tensor  # b n


class InfillingNoise:
    """Replace spans of words by one [MASK] each (BART; Lewis et al. 2020, section 2.2).

    Lengths are Poisson with the mean ``length``, until ⌈``rate`` · words⌉ words are covered; the
    last span is cut there. A span of no word inserts a [MASK]. ``random_share`` of the [MASK]s are
    random tokens instead: 0.1 in the authors' code, whose mean length is 3.5. Where we differ:
    spans never overlap; all ways to place them between the other words are equally likely.
    """

    sets_targets: ClassVar[bool] = False

    def __init__(self, *, rate: float = 0.3, length: float = 3.0, random_share: float = 0.0) -> None:
        if not 0 < rate <= 1:
            raise ConfigError(f"infilling.rate is a share of the words above 0 and up to 1, not {rate}")
        if not 0 < length <= MAX_MEAN:
            raise ConfigError(f"infilling.length is a mean above 0 and up to {MAX_MEAN:g} words, not {length}")
        if not 0 <= random_share <= 1:
            raise ConfigError(f"infilling.random_share is a share from 0 to 1, not {random_share}")
        self.rate, self.length, self.random_share = rate, length, random_share

    def __call__(self, texts: NoisyTexts, keys: Tensor, vocabulary: NoiseVocabulary) -> NoisyTexts:
        uniforms = make_uniforms(keys, texts.tokens.shape[1], NUM_UNIFORMS)
        words, num_words = number_words(texts)
        spans = self.draw_spans(num_words, uniforms[:3])
        is_covered = mark_covered(spans)  # b n+1, by word
        keep = texts.is_fixed | ~is_covered.gather(1, words.clamp(min=0))
        random = (uniforms[4] * len(vocabulary.ordinary_ids)).long().clamp(max=len(vocabulary.ordinary_ids) - 1)
        is_random = uniforms[3] < self.random_share
        tokens = torch.where(is_random, vocabulary.ordinary_ids[random], vocabulary.mask_id)
        before = find_word_columns(texts, words, num_words).gather(1, spans.starts)
        return insert_tokens(texts, keep, tokens, before, spans.is_real)

    def draw_spans(self, num_words: Tensor, uniforms: Tensor) -> InfillingSpans:
        """Draw spans of texts of ``num_words`` (b) by uniform numbers, 3 b n."""
        lengths = draw_poisson(self.length, uniforms[0])
        budget = (self.rate * num_words.double()).ceil().long().unsqueeze(1)  # b 1
        covered_before = lengths.cumsum(1) - lengths
        is_real = covered_before < budget
        lengths = lengths.minimum(budget - covered_before).clamp(min=0)  # 0 where there is no span
        num_kept = num_words.unsqueeze(1) - lengths.sum(1, keepdim=True)
        columns = torch.arange(lengths.shape[1], device=lengths.device)
        # Spans and the words outside them, in random order: where does each span begin?
        ranks = torch.cat([uniforms[1].masked_fill(~is_real, NEVER),
                            uniforms[2].masked_fill(columns >= num_kept, NEVER)], 1)  # fmt: skip
        sizes = torch.cat([lengths, (columns < num_kept).long()], 1)
        order = ranks.argsort(dim=1, stable=True)
        ends = sizes.gather(1, order).cumsum(1)
        starts = torch.empty_like(ends).scatter(1, order, ends) - sizes
        return InfillingSpans(starts[:, : lengths.shape[1]].masked_fill(~is_real, 0), lengths, is_real)


def draw_poisson(mean: float, uniforms: Tensor) -> Tensor:
    """Draw Poisson numbers by the inverse of their distribution, one per uniform number."""
    probabilities = [exp(-mean)]
    while len(probabilities) < mean or probabilities[-1] > 1e-12:
        probabilities.append(probabilities[-1] * mean / len(probabilities))
    bounds = torch.tensor(probabilities, dtype=torch.float64, device=uniforms.device).cumsum(0)
    return torch.bucketize(uniforms.double(), bounds, right=True)


def number_words(texts: NoisyTexts) -> tuple[Tensor, Tensor]:
    """Number the word of each ordinary token, b n, and count the words, b.

    Other tokens have -1.
    """
    is_ordinary = texts.is_ordinary
    follows_ordinary = torch.cat([torch.zeros_like(is_ordinary[:, :1]), is_ordinary[:, :-1]], 1)
    starts = is_ordinary & (texts.word_starts | ~follows_ordinary)
    return (starts.cumsum(1) - 1).masked_fill(~is_ordinary, -1), starts.sum(1)


def find_word_columns(texts: NoisyTexts, words: Tensor, num_words: Tensor) -> Tensor:
    """Find the first column of each word, and the one after the last: b n+1."""
    is_ordinary = texts.is_ordinary
    columns = torch.arange(words.shape[1], device=words.device).expand_as(words)
    no_column = torch.full_like(columns[:, :1], words.shape[1])
    first = no_column.expand(-1, words.shape[1] + 1).clone()
    first = first.scatter_reduce(1, words.clamp(min=0), columns.masked_fill(~is_ordinary, words.shape[1]), "amin")
    after_last = (columns + 1).masked_fill(~is_ordinary, 1).amax(1, keepdim=True)  # after [CLS] without a word
    return first.scatter(1, num_words.unsqueeze(1), after_last)


def mark_covered(spans: InfillingSpans) -> Tensor:
    """Mark the words that spans cover, b n+1."""
    changes = spans.starts.new_zeros(spans.starts.shape[0], spans.starts.shape[1] + 2)
    changes = changes.scatter_add(1, spans.starts, spans.is_real.long())
    changes = changes.scatter_add(1, spans.starts + spans.lengths, -spans.is_real.long())
    return changes.cumsum(1)[:, :-1] > 0
