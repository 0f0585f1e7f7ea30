"""Masking of spans, n-grams and entities: lengths, rates, and a slow twin.

Shapes: b batch, n tokens.
"""

import pytest
import torch
from chi_square import fits
from mask_cases import MASK, ORDINARY, is_near, make_batch
from torch import Tensor

from mnemic.objectives.pretraining.masking import MASKINGS, find_run_starts, mask_rows
from mnemic.objectives.pretraining.span_masking import NgramMasking, SpanMasking
from mnemic.objectives.pretraining.token_masking import EntityMasking, TokenMasking, WordMasking
from mnemic.objectives.uniforms import make_uniforms
from mnemic.recipe import ConfigError, build

KINDS = ["ngrams", "spans"]


def draw_uniforms(shape: tuple[int, int], seed: int = 0) -> Tensor:
    return make_uniforms(torch.arange(shape[0]) + 1000 * seed, shape[1], 3)


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_have_the_published_distribution(kind: str) -> None:
    """χ² over 100,000 draws, against the papers' formulas."""
    masking = build(MASKINGS, {"kind": kind})
    lengths = masking.draw_lengths(draw_uniforms((100, 1000))[1])
    if kind == "spans":
        weights = [0.8 ** (length - 1) * 0.2 for length in range(1, 11)]
        mean = 3.8
    else:
        weights, mean = [1, 1 / 2, 1 / 3], 18 / 11
    assert fits(torch.bincount(lengths.flatten())[1:], torch.tensor(weights) / sum(weights))
    assert lengths.double().mean() == pytest.approx(mean, abs=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_spans_alone_have_these_lengths_in_words(kind: str) -> None:
    """Where a row has room for one span, which nothing cuts, it is one of ``draw_lengths``."""
    count, length = 20_000, 60
    masking = build(MASKINGS, {"kind": kind, "rate": 10 / length})
    unmaskable = torch.zeros(count, length, dtype=torch.bool)
    uniforms = draw_uniforms((count, length))
    uniforms[0] = 0.9 + 0.1 * uniforms[0]  # of all words but one, which comes first
    uniforms[0, :, 30] = 0
    mask = masking(unmaskable, ~unmaskable, uniforms)
    first_ends = 30 + masking.draw_lengths(uniforms[1, :, 30])
    is_covered = (torch.arange(length) >= 30) & (torch.arange(length) < first_ends[:, None])
    assert mask[is_covered].all()
    assert (mask.sum(1) == 10).all()


@pytest.mark.parametrize("rate", [0.15, 0.4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_rate_is_met_in_every_row(kind: str, rate: float) -> None:
    _, unmaskable, starts = make_batch(shape=(200, 500))
    mask = build(MASKINGS, {"kind": kind, "rate": rate})(unmaskable, starts, draw_uniforms((200, 500)))
    expected = rate * (~unmaskable).sum(1)
    assert ((mask.sum(1) - expected).abs() < 1).all()
    assert abs(float((mask.sum(1) - expected).mean())) < 0.15  # rounded up or down at random


@pytest.mark.parametrize("kind", KINDS)
def test_every_word_begins_a_span_equally_often(kind: str) -> None:
    """χ² over the words of 20,000 rows of 24 words; the last ones are reached by longer spans."""
    shape = (20_000, 26)
    unmaskable = torch.zeros(shape, dtype=torch.bool)
    unmaskable[:, 0] = unmaskable[:, -1] = True
    mask = build(MASKINGS, {"kind": kind, "max_words": 1})(unmaskable, ~unmaskable, draw_uniforms(shape))
    assert fits(mask.sum(0)[1:-1], [1 / 24] * 24)


@pytest.mark.parametrize("rate", [0.15, 0.5, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_spans_equal_a_slow_twin(kind: str, rate: float) -> None:
    """Spans are placed one after another, token by token, until there are enough."""
    shape = (30, 60)
    _, unmaskable, starts = make_batch(3, shape)
    unmaskable[:, 20] = True  # a special token in the middle, and words that are cut by it
    uniforms = draw_uniforms(shape, 5)
    masking = build(MASKINGS, {"kind": kind, "rate": rate})
    mask = masking(unmaskable, starts, uniforms)
    for row in range(shape[0]):
        assert mask[row].tolist() == place_spans(masking, unmaskable[row], starts[row], uniforms[:, row])


def place_spans(masking: NgramMasking, unmaskable: Tensor, starts: Tensor, uniforms: Tensor) -> list[bool]:
    priorities, lengths, rounding = uniforms.tolist()
    words: list[list[int]] = []
    for position, is_start in enumerate(starts.tolist()):
        if is_start or position == 0 or unmaskable[position] or unmaskable[position - 1]:
            words.append([])
        words[-1].append(position)
    budget = int(masking.rate * int((~unmaskable).sum()) + rounding[0])
    masked = [False] * len(starts)
    for number in sorted(range(len(words)), key=lambda index: priorities[words[index][0]]):
        cumulative, num_words = 0.0, 0
        while num_words < masking.max_words and (num_words == 0 or lengths[words[number][0]] >= cumulative):
            cumulative += masking.probabilities[num_words]
            num_words += 1
        for word in words[number : number + num_words]:
            if unmaskable[word[0]]:
                break
            for position in word:
                if sum(masked) < budget:
                    masked[position] = True
    return masked


def test_a_span_is_replaced_as_one() -> None:
    """χ² of 80/10/10 over spans; within a span all tokens share their fate."""
    ids, unmaskable, starts = make_batch(shape=(500, 500))
    masked = mask_rows(SpanMasking(), ids, unmaskable, starts, torch.arange(500), mask_id=MASK, random_ids=ORDINARY)
    fate = torch.where(masked.inputs == MASK, 0, torch.where(masked.inputs == ids, 1, 2))
    first_fate = fate.gather(1, find_run_starts(masked.mask))
    same = (fate == first_fate) | ~masked.mask
    assert (~same).sum() < 0.001 * masked.mask.sum()  # a random token may be the right one
    is_first = masked.mask & (find_run_starts(masked.mask) == torch.arange(500))
    assert is_first.sum() > 5000
    assert fits(torch.bincount(fate[is_first]), [0.8, 0.1 + 0.1 / len(ORDINARY), 0.1 - 0.1 / len(ORDINARY)])
    randoms = masked.inputs[masked.mask & (fate == 2)]
    assert len(randoms.unique()) > 0.9 * len(ORDINARY)  # of one token each, not of one for the span


def test_entities_are_masked_whole_in_a_share_of_the_rows() -> None:
    ids, unmaskable, starts = make_batch(shape=(2000, 50))
    uniforms = make_uniforms(torch.arange(2000), 50, 2)
    mask = EntityMasking(share=0.3)(unmaskable, starts, uniforms)
    whole, single = WordMasking()(unmaskable, starts, uniforms), TokenMasking()(unmaskable, starts, uniforms)
    is_whole, is_single = (mask == whole).all(1), (mask == single).all(1)
    assert (is_whole | is_single).all()
    both = (is_whole & is_single).sum()
    assert is_near(is_whole.sum() - both, len(ids) - both, 0.3)
    assert torch.equal(EntityMasking()(unmaskable, starts, uniforms), whole)
    assert torch.equal(EntityMasking(share=0.0)(unmaskable, starts, uniforms), single)


def test_the_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="share from 0 to 1, not 2"):
        EntityMasking(share=2.0)
    with pytest.raises(ConfigError, match="max_words is at least 1, not 0"):
        NgramMasking(max_words=0)
    with pytest.raises(ConfigError, match="between 0 and 1, not 1"):
        SpanMasking(probability=1.0)
