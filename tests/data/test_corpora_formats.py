"""Input formats of pre-training: their tokens, boundaries and labels."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from chi_square import fits
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.data.corpora.formats import FORMATS, DocumentSpan, SequencePlan, cut_sentences
from mnemic.models import IGNORE
from mnemic.recipe import ConfigError, build

STRANGERS = ["segment-pair", "sentence-pair"]  # whose negative pairs are of two documents
PAIRS = [*STRANGERS, "segment-order"]
PACKED = ["full-sentences", "doc-sentences"]
# Documents as the lengths of their sentences, some longer than a sequence, some documents empty.
LENGTHS = st.lists(st.lists(st.integers(1, 40), max_size=8), max_size=6)


def ends_of(lengths: list[int]) -> list[int]:
    return [sum(lengths[: number + 1]) for number in range(len(lengths))]


def plans_of(kind: str, documents: list[list[int]], max_tokens: int, seed: int = 0) -> list[SequencePlan]:
    ends = [ends_of(lengths) for lengths in documents]
    return build(FORMATS, {"kind": kind})(ends, max_tokens, random.Random(seed))


def count_tokens(plan: SequencePlan) -> int:
    """Count tokens with [CLS], and a [SEP] after each span."""
    return 1 + sum(end - start + 1 for _, start, end in plan.spans)


def own_spans(plan: SequencePlan) -> list[DocumentSpan]:
    """Return all spans in the order of their document, without a segment of another one."""
    return sorted(span for span in plan.spans if span.document == plan.spans[0].document or plan.follows == IGNORE)


@pytest.mark.parametrize("kind", FORMATS)
@given(documents=LENGTHS, max_tokens=st.integers(5, 50), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_every_token_once_in_order_and_no_sequence_too_long(
    kind: str, documents: list[list[int]], max_tokens: int, seed: int
) -> None:
    plans = plans_of(kind, documents, max_tokens, seed)
    assert all(count_tokens(plan) <= max_tokens for plan in plans)
    assert all(len(plan.spans) == len(plan.segments) for plan in plans)
    spans = [span for plan in plans for span in own_spans(plan)]
    tokens = [(d, position) for d, start, end in spans for position in range(start, end)]
    assert tokens == [(d, position) for d, lengths in enumerate(documents) for position in range(sum(lengths))]
    assert plans == plans_of(kind, documents, max_tokens, seed)


@pytest.mark.parametrize("kind", FORMATS)
@given(documents=LENGTHS, max_tokens=st.integers(13, 50), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_sentences_that_fit_stay_whole(kind: str, documents: list[list[int]], max_tokens: int, seed: int) -> None:
    """Only a sentence that does not fit is cut."""
    room = (max_tokens - 3) // 2 if kind in PAIRS else max_tokens - 2
    for plan in plans_of(kind, documents, max_tokens, seed):
        for number, start, end in own_spans(plan):
            ends = [0, *ends_of(documents[number])]
            for border in (start, end):
                if border not in ends:
                    below = max(e for e in ends if e < border)
                    above = min(e for e in ends if e > border)
                    assert above - below > room


@given(st.lists(st.integers(1, 100), max_size=6), st.integers(1, 30))
def test_pieces_are_as_few_and_as_even_as_can_be(lengths: list[int], max_tokens: int) -> None:
    ends = ends_of(lengths)
    spans = list(cut_sentences(ends, max_tokens))
    assert [position for start, end in spans for position in range(start, end)] == list(range(sum(lengths)))
    for begin, end in zip([0, *ends], ends):
        inside = [e - s for s, e in spans if begin <= s and e <= end]
        assert len(inside) == -(-(end - begin) // max_tokens)
        assert max(inside) - min(inside) <= 1


@pytest.mark.parametrize("kind", STRANGERS)
@given(documents=LENGTHS, max_tokens=st.integers(5, 50), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_labels_are_right(kind: str, documents: list[list[int]], max_tokens: int, seed: int) -> None:
    full = sum(bool(lengths) for lengths in documents)
    for plan in plans_of(kind, documents, max_tokens, seed):
        assert plan.segments == (0, 1)[: len(plan.spans)]
        assert (plan.follows == IGNORE) == (full == 1)
        if len(plan.spans) == 1:  # nothing else to pair it with anywhere
            assert full == 1
            continue
        first, second = plan.spans
        assert second.end > second.start
        if plan.follows == 0:
            assert first.document != second.document
        else:
            assert (second.document, second.start) == (first.document, first.end)


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("sentences", [2, 3, 10])
def test_half_of_all_pairs_are_true(kind: str, sentences: int) -> None:
    """Also if many documents end with a single sentence, always in a negative pair."""
    generator = random.Random(1)
    documents = [[generator.randint(3, 12) for _ in range(sentences)] for _ in range(4000)]
    labels = Counter(plan.follows for plan in plans_of(kind, documents, 40) if plan.follows != IGNORE)
    count = labels.total()
    assert abs(labels[1] - count / 2) < 4 * (count / 4) ** 0.5


@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers_come_from_everywhere(kind: str) -> None:
    plans = plans_of(kind, [[4] * 30 for _ in range(6)], 30)
    false_pairs = Counter((p.spans[0].document, p.spans[1].document) for p in plans if not p[2])
    assert set(false_pairs) <= {(a, b) for a in range(6) for b in range(6) if a != b}
    many = [plan for seed in range(40) for plan in plans_of(kind, [[4] * 30] * 6, 30, seed)]
    seen = Counter(plan.spans[1] for plan in many if plan.follows == 0)
    assert {span.document for span in seen} == set(range(6))
    assert {span.start for span in seen} == set(range(0, 120, 4))


@given(documents=LENGTHS, max_tokens=st.integers(5, 50), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_swapped_segments_are_neighbors(documents: list[list[int]], max_tokens: int, seed: int) -> None:
    for plan in plans_of("segment-order", documents, max_tokens, seed):
        assert plan.segments == (0, 1)[: len(plan.spans)]
        assert (plan.follows == IGNORE) == (len(plan.spans) == 1)
        if len(plan.spans) == 2:
            earlier, later = plan.spans if plan.follows else plan.spans[::-1]
            assert (later.document, later.start) == (earlier.document, earlier.end)


def test_lengths_do_not_say_which_segments_are_swapped() -> None:
    """The longer segment is first as often among swapped pairs as among the others."""
    generator = random.Random(2)
    documents = [[generator.randint(3, 12) for _ in range(9)] for _ in range(4000)]
    plans = [plan for plan in plans_of("segment-order", documents, 40) if plan.follows != IGNORE]
    counts = Counter[bool]()
    for plan in plans:
        first, second = (span.end - span.start for span in plan.spans)
        if first != second:
            counts[(first > second) == bool(plan.follows)] += 1
    assert counts.total() > 5000
    assert fits([counts[False], counts[True]], [0.5, 0.5])


def test_sentence_pairs_hold_one_sentence_each() -> None:
    documents = [[5, 6, 7, 8], [9, 3, 4]]
    borders = [set(zip([0, *ends_of(lengths)], ends_of(lengths))) for lengths in documents]
    for seed in range(20):
        for plan in plans_of("sentence-pair", documents, 64, seed):
            assert all((start, end) in borders[d] for d, start, end in plan.spans)


def test_segment_pairs_fill_the_sequence() -> None:
    documents = [[5] * 200 for _ in range(20)]
    long_format = build(FORMATS, {"kind": "segment-pair", "short": 0.0})
    plans = long_format([ends_of(lengths) for lengths in documents], 128, random.Random(0))
    sizes = [count_tokens(plan) for plan in plans if plan.follows and plan.spans[1].end < 1000]
    assert min(sizes) > 128 - 5
    mixed_format = build(FORMATS, {"kind": "segment-pair", "short": 0.5})
    plans = mixed_format([ends_of(lengths) for lengths in documents], 128, random.Random(0))
    short = sum(count_tokens(plan) < 120 for plan in plans) / len(plans)
    assert 0.35 < short < 0.55
    splits = {len(range(p.spans[0].start, p.spans[0].end)) for p in plans}
    assert len(splits) > 15


def test_full_sentences_cross_borders_and_doc_sentences_do_not() -> None:
    documents = [[4, 4], [], [4, 4, 4], [30]]
    full = plans_of("full-sentences", documents, 20)
    assert [plan.spans for plan in full] == [
        (DocumentSpan(0, 0, 8), DocumentSpan(2, 0, 8)),
        (DocumentSpan(2, 8, 12),),
        (DocumentSpan(3, 0, 15),),
        (DocumentSpan(3, 15, 30),),
    ]
    doc = plans_of("doc-sentences", documents, 20)
    assert [plan.spans for plan in doc] == [
        (DocumentSpan(0, 0, 8),),
        (DocumentSpan(2, 0, 12),),
        (DocumentSpan(3, 0, 15),),
        (DocumentSpan(3, 15, 30),),
    ]


@pytest.mark.parametrize("kind", PACKED)
@given(documents=LENGTHS, max_tokens=st.integers(3, 50))
@settings(max_examples=60, deadline=None)
def test_packed_sequences_are_full(kind: str, documents: list[list[int]], max_tokens: int) -> None:
    """A sequence ends only if the next sentence did not fit or started a document."""
    plans = plans_of(kind, documents, max_tokens)
    for plan, following in pairwise(plans):
        assert plan.follows == IGNORE
        assert set(plan.segments) == {0}
        number, start, _ = following.spans[0]
        same = plan.spans[-1].document == number
        if kind == "doc-sentences" and not same:
            continue
        size = next(e - s for s, e in cut_sentences(ends_of(documents[number]), max_tokens - 2) if s == start)
        assert count_tokens(plan) + size + (0 if same else 1) > max_tokens


@pytest.mark.parametrize("kind", FORMATS)
def test_too_short_sequences_are_a_clear_mistake(kind: str) -> None:
    min_tokens = 5 if kind in PAIRS else 3
    assert plans_of(kind, [[1, 1], [1]], min_tokens)
    with pytest.raises(ConfigError, match=f"{kind} needs sequences of at least {min_tokens} tokens"):
        plans_of(kind, [[1, 1], [1]], min_tokens - 1)


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="share from 0 to 1, not 2"):
        build(FORMATS, {"kind": "segment-pair", "short": 2.0})
    with pytest.raises(ConfigError, match="does not take 'short'"):
        build(FORMATS, {"kind": "full-sentences", "short": 0.1})
