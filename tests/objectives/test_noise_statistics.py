"""How often noises do what: χ² tests on 100,000 draws, and exact counts."""

from itertools import chain, permutations
from math import ceil, comb, exp, factorial

import torch
from chi_square import fits
from noise_cases import apply, count_rows, list_origins, list_targets, make_copies

from mnemic.objectives.noises.infilling import InfillingNoise, InfillingSpans, draw_poisson, mark_covered
from mnemic.objectives.noises.sentinels import SentinelNoise, partition
from mnemic.objectives.uniforms import make_uniforms

DRAWS = 100_000


def draw_infilling(num_words: int, **options: float) -> tuple[InfillingNoise, torch.Tensor, torch.Tensor, torch.Tensor]:
    noise = InfillingNoise(**options)
    spans = noise.draw_spans(torch.full((DRAWS,), num_words), make_uniforms(torch.arange(DRAWS), num_words, 3))
    return noise, spans.starts, spans.lengths, spans.is_real


def test_poisson_numbers_have_their_distribution() -> None:
    draws = draw_poisson(3.0, make_uniforms(torch.arange(DRAWS), 1, 1)[0, :, 0])
    probabilities = [exp(-3) * 3**count / factorial(count) for count in range(9)]
    counts = torch.bincount(draws.clamp(max=9), minlength=10)
    assert fits(counts, [*probabilities, 1 - sum(probabilities)])
    assert abs(float(draw_poisson(20.0, make_uniforms(torch.arange(DRAWS), 1, 1)[0, :, 0]).double().mean()) - 20) < 0.1


def test_infilling_covers_exactly_its_share_with_poisson_lengths() -> None:
    """All spans but the last, which is cut, have Poisson lengths; zero among them."""
    _, starts, lengths, is_real = draw_infilling(24, rate=0.5)
    budget = ceil(0.5 * 24)
    assert (lengths.sum(1) == budget).float().mean() > 0.9999
    first = lengths[:, 0].clamp(max=8)  # never cut: shorter than the budget almost always
    probabilities = [exp(-3) * 3**count / factorial(count) for count in range(8)]
    assert fits(torch.bincount(first, minlength=9), [*probabilities, 1 - sum(probabilities)])
    assert ((lengths == 0) & is_real).any(1).float().mean() > 0.1
    assert not (lengths[~is_real]).any()
    assert (starts + lengths <= 24).all()


def test_spans_are_placed_anywhere_and_do_not_overlap() -> None:
    """Of words outside spans and spans, all orders are equally likely."""
    _, starts, lengths, is_real = draw_infilling(6, rate=0.5, length=1.0)
    covered = mark_covered(InfillingSpans(starts, lengths, is_real))
    assert (covered.sum(1) == lengths.sum(1)).all()  # no word in two spans
    # The rows with exactly two spans, of one and two words: 3 words outside, 5 places, 2 of spans.
    is_selected = (is_real.sum(1) == 2) & (lengths[:, 0] == 1) & (lengths[:, 1] == 2)
    counts = count_rows(starts[is_selected][:, :2])
    assert len(counts) == comb(5, 2) * 2
    assert fits(list(counts.values()), [1 / len(counts)] * len(counts))


def test_a_span_of_no_word_inserts_a_mask() -> None:
    texts = apply(make_copies(list(range(9, 19)), 2000), {"kind": "infilling", "length": 1.0})
    num_masks = (texts.tokens == 4).sum(1)
    assert (texts.mask.sum(1) == 12 - 3 + num_masks).float().mean() > 0.95  # three words go, masks come
    assert (num_masks > 4).any()
    assert (texts.tokens.gather(1, texts.mask.sum(1, keepdim=True) - 1) == 3).all()  # none after [SEP]


def test_random_tokens_instead_of_masks() -> None:
    texts = apply(make_copies(list(range(9, 19)), 20_000), {"kind": "infilling", "random_share": 0.25})
    is_inserted = (texts.origins == -1) & texts.mask
    share = float((texts.tokens[is_inserted] != 4).double().mean())
    assert abs(share - 0.25) < 0.01


def test_sentences_are_put_in_every_order_equally_often() -> None:
    texts = apply(make_copies([9, 5, 10, 11, 5, 12, 13, 5, 14], DRAWS), {"kind": "sentence-permutation"})
    counts = count_rows(texts.tokens)
    sentences = [[9, 5], [10, 11, 5], [12, 13, 5], [14]]
    orders = {(2, *chain.from_iterable(order), 3) for order in permutations(sentences)}
    assert set(counts) == orders
    assert fits(list(counts.values()), [1 / 24] * 24)


def test_several_full_stops_end_one_sentence() -> None:
    texts = apply(make_copies([9, 5, 6, 10, 7], 200), {"kind": "sentence-permutation"})
    assert set(count_rows(texts.tokens)) == {(2, 9, 5, 6, 10, 7, 3), (2, 10, 7, 9, 5, 6, 3)}


def test_texts_are_rotated_to_every_token_equally_often() -> None:
    texts = apply(make_copies(list(range(9, 16)), DRAWS), {"kind": "rotation"})
    counts = count_rows(texts.tokens)
    tokens = list(range(9, 16))
    assert set(counts) == {(2, *tokens[first:], *tokens[:first], 3) for first in range(7)}
    assert fits(list(counts.values()), [1 / 7] * 7)


def test_partitions_are_all_equally_likely() -> None:
    lengths = partition(torch.full((DRAWS,), 7), torch.full((DRAWS,), 3), make_uniforms(torch.arange(DRAWS), 9, 1)[0])
    counts = count_rows(lengths)
    assert set(counts) == {(i, j, 7 - i - j, *[0] * 6) for i in range(1, 6) for j in range(1, 7 - i)}
    assert fits(list(counts.values()), [1 / comb(6, 2)] * comb(6, 2))


def test_sentinels_are_as_many_as_the_paper_says() -> None:
    noise = SentinelNoise()
    num_noise, num_spans = noise.count_noise(torch.tensor([1, 2, 10, 100, 512]), 99)
    assert num_noise.tolist() == [0, 1, 2, 15, 77]
    assert num_spans.tolist() == [0, 1, 1, 5, 26]
    assert noise.count_noise(torch.tensor([512]), 9)[1].tolist() == [9]
    texts = apply(make_copies(list(range(9, 29)), DRAWS // 5), {"kind": "sentinels", "rate": 0.3, "length": 2.0})
    assert (texts.mask.sum(1) == 2 + 14 + 3).all()  # 6 tokens go, 3 sentinels come
    assert (texts.target_mask.sum(1) == 2 + 6 + 4).all()
    # Where the first span begins is where the first of three gaps, of 14 tokens, ends.
    first_gap = (texts.tokens == 30).long().argmax(1) - 1
    expected = [comb(14 - length - 1, 1) / comb(13, 2) for length in range(1, 13)]
    assert fits(torch.bincount(first_gap, minlength=13)[1:13], expected)


def test_fragments_begin_where_the_authors_code_lets_them() -> None:
    texts = apply(make_copies(list(range(9, 19)), DRAWS), {"kind": "fragment"})
    starts = torch.bincount(texts.target_positions[:, 0], minlength=6)
    anywhere = 0.6 / 6
    assert fits(starts, [0.2 + anywhere, *[anywhere] * 4, 0.2 + anywhere])
    assert (texts.target_mask.sum(1) == 6).all()
    inside = [list_origins(texts, row) for row in range(3)]
    assert inside == [list(range(12))] * 3
    first = texts.target_positions[:, 1]
    noisy = texts.tokens.gather(1, first.unsqueeze(1)).squeeze(1)
    original = make_copies(list(range(9, 19)), DRAWS).tokens.gather(1, first.unsqueeze(1)).squeeze(1)
    assert abs(float((noisy == 4).double().mean()) - 0.8) < 0.01
    assert abs(float((noisy == original).double().mean()) - (0.1 + 0.1 / 25)) < 0.01


def test_texts_are_parted_anywhere_equally_often() -> None:
    texts = apply(make_copies(list(range(9, 16)), DRAWS), {"kind": "prefix"})
    counts = torch.bincount(texts.mask.sum(1) - 2, minlength=7)
    assert counts[0] == 0
    assert fits(counts[1:7], [1 / 6] * 6)
    assert list_targets(texts, 0)[-1] == 3


def test_one_of_several_is_drawn_by_its_share() -> None:
    choices = [[{"kind": "causal"}], [{"kind": "rotation"}]]
    texts = apply(make_copies(list(range(9, 19)), DRAWS), {"kind": "one-of", "shares": [1, 3], "choices": choices})
    is_causal = texts.mask.sum(1) == 1
    assert fits(torch.bincount(is_causal.long()), [0.75, 0.25])
    # Which is drawn says nothing about how: rotations are still uniform.
    assert fits(torch.bincount(texts.tokens[~is_causal][:, 1] - 9, minlength=10), [0.1] * 10)
