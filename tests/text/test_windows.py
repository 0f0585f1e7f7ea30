"""Windows of long texts: every token is covered, and neighbors overlap as configured."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.text import SubwordTokenizer, WindowOptions, WordTokenizer
from mnemic.text.rules import find_words
from mnemic.text.tokenizers.trainers import TRAINERS, train_byte_bpe, train_wordpiece
from mnemic.text.windows import (
    TokenRange,
    WindowError,
    assign_tokens,
    make_pair_windows,
    make_question_windows,
    make_text_windows,
    split_token_ranges,
)

SAMPLE = ["the cat sat on the mat , and the dog ran home again 北京欢迎你 🙂 é"]
PIECES = train_wordpiece(SAMPLE, vocab=120)
BYTES = train_byte_bpe(SAMPLE, vocab=280)
WORDS = WordTokenizer.from_texts(SAMPLE)
TOKENIZERS = {"wordpiece": PIECES, "byte-bpe": BYTES, "words": WORDS}
sizes = st.tuples(st.integers(0, 300), st.integers(1, 40), st.integers(0, 39)).filter(lambda size: size[2] < size[1])
texts = st.text(alphabet="ab ñ🙂北京,é\u0301\t\n", max_size=80)


@given(sizes)
def test_every_token_is_covered_and_neighbours_share_what_was_asked(size: tuple[int, int, int]) -> None:
    total, max_tokens, overlap = size
    ranges = split_token_ranges(total, max_tokens, overlap)
    assert sorted({token for token_range in ranges for token in range(*token_range)}) == list(range(total))
    for token_range, next_range in itertools.pairwise(ranges):
        assert token_range.end - next_range.start == overlap
        assert next_range.end > token_range.end  # each holds something new
    assert all(token_range.end - token_range.start == max_tokens for token_range in ranges[:-1])
    assert ranges[-1].end - ranges[-1].start <= max_tokens
    assert len(ranges) == 1 or total > max_tokens


@given(sizes)
def test_a_token_belongs_to_the_window_where_it_is_farthest_from_a_cut(size: tuple[int, int, int]) -> None:
    """Compare with a slow search through every window for every token."""
    total, ranges = size[0], split_token_ranges(*size)

    def margin(token: int, token_range: TokenRange) -> float:
        left_margin = token - token_range.start if token_range.start > 0 else float("inf")
        return min(left_margin, token_range.end - 1 - token if token_range.end < total else float("inf"))

    window_of_token = assign_tokens(ranges)
    assert len(window_of_token) == total
    for token in range(total):
        candidates = [
            number for number, token_range in enumerate(ranges) if token_range.start <= token < token_range.end
        ]
        max_margin = max(margin(token, ranges[number]) for number in candidates)
        assert window_of_token[token] == next(
            number for number in candidates if margin(token, ranges[number]) == max_margin
        )


def test_the_middle_of_an_overlap_is_the_border() -> None:
    assert split_token_ranges(12, 8, 4) == [(0, 8), (4, 12)]
    assert assign_tokens(split_token_ranges(12, 8, 4)) == [0] * 6 + [1] * 6


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(text=texts, question=texts, length=st.integers(45, 120), overlap=st.integers(0, 8))
@settings(max_examples=60, deadline=None)
def test_windows_put_together_are_the_text(kind: str, text: str, question: str, length: int, overlap: int) -> None:
    """Special tokens, question and span are where the window says; offsets match."""
    tokenizer, question = TOKENIZERS[kind], question[:5]
    for pair, windowed in (
        (None, make_text_windows(tokenizer, text, WindowOptions(length, overlap))),
        (question, make_question_windows(tokenizer, question, text, WindowOptions(length, overlap))),
    ):
        encoding = tokenizer.encode(text, special=False)
        pair_ids = [] if pair is None else tokenizer.encode(pair, special=False).ids
        assert windowed.offsets == encoding.offsets
        assert all(0 <= start <= end <= len(text) for start, end in windowed.offsets)
        assert windowed.covered_tokens == windowed.total_tokens == len(encoding.ids) + len(pair_ids)
        for window in windowed.windows:
            assert len(window.ids) == len(window.segments) <= length
            text_ids = window.ids[
                window.text_start : window.text_start + window.token_range.end - window.token_range.start
            ]
            assert text_ids == encoding.ids[window.token_range.start : window.token_range.end]
            if pair is not None:
                before = len(tokenizer.special_tokens(pair=True).before)
                assert window.ids[before : before + len(pair_ids)] == pair_ids
                assert window.segments[window.text_start :] == [1] * (len(window.ids) - window.text_start)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("pair", [("the cat sat", "on the mat"), ("the dog ran home", "a"), ("", "")])
def test_a_short_text_is_framed_as_the_tokenizer_frames_it(kind: str, pair: tuple[str, str]) -> None:
    """One window equals ``encode``, for a text and for both orders of a pair."""
    tokenizer, options = TOKENIZERS[kind], WindowOptions(64, 8)
    single, both = tokenizer.encode(pair[0]), tokenizer.encode(*pair)
    (window,) = make_text_windows(tokenizer, pair[0], options).windows
    assert (window.ids, window.segments) == (single.ids, single.segments)
    for make_windows in (make_question_windows, make_pair_windows):
        (window,) = make_windows(tokenizer, *pair, options).windows
        assert (window.ids, window.segments) == (both.ids, both.segments)


def test_of_a_pair_the_longer_text_is_cut() -> None:
    long, short = "the cat sat on the mat " * 5, "dog"
    for pair, order in (((long, short), 0), ((short, long), 1)):
        windowed = make_pair_windows(WORDS, *pair, WindowOptions(12, 3))
        assert len(windowed.windows) > 1
        assert windowed.total_tokens == windowed.covered_tokens == 31
        dog = WORDS.id_of("dog")
        positions = [window.ids.index(dog) for window in windowed.windows]
        assert [bool(position) for position in positions] == [order == 0] * len(positions)
        assert all(window.segments.count(1) == (1 if order == 0 else 11) for window in windowed.windows[:-1])


def test_a_long_text_may_be_an_error_that_names_the_lengths() -> None:
    text = "the cat " * 20
    with pytest.raises(WindowError, match=r"has 40 tokens; a window of 12 has room for 10 of them"):
        make_text_windows(PIECES, text, WindowOptions(12, 2, "error"))
    assert len(make_text_windows(PIECES, "the cat", WindowOptions(12, 2, "error")).windows) == 1


def test_only_the_first_window_is_read_if_that_is_asked_for_and_the_count_says_so() -> None:
    windowed = make_text_windows(PIECES, "the cat " * 20, WindowOptions(12, 2, "first"))
    assert (len(windowed.windows), windowed.covered_tokens, windowed.total_tokens) == (1, 10, 40)


def test_rooms_that_cannot_be() -> None:
    with pytest.raises(WindowError, match=r"room for 10 of them, which must be more than .* of 10"):
        make_text_windows(PIECES, "the cat " * 20, WindowOptions(12, 10))
    with pytest.raises(WindowError, match="40 tokens beside another of 9; a window of 12 has room"):
        make_question_windows(PIECES, "the cat sat on the mat and the dog", "the cat " * 20, WindowOptions(12, 2))
    with pytest.raises(WindowError, match="has room for 0 of them"):
        make_question_windows(PIECES, "the cat " * 20, "a", WindowOptions(12, 2))
    with pytest.raises(WindowError, match="truncation is one of windows, first, error, not 'no'"):
        make_text_windows(PIECES, "a", WindowOptions(12, 2, "no"))  # type: ignore[arg-type]
    with pytest.raises(WindowError, match="at least 1 token and overlap at least 0"):
        make_text_windows(PIECES, "a", WindowOptions(0, 2))


def test_a_megabyte_of_one_word_and_a_hundred_thousand_tokens() -> None:
    assert make_text_windows(PIECES, "a" * 1_000_000, WindowOptions(64, 8)).total_tokens == 1
    windowed = make_text_windows(PIECES, "the " * 100_000, WindowOptions(258, 56))
    assert windowed.covered_tokens == windowed.total_tokens == 100_000
    assert len(windowed.windows) == 500


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(ValueError, match="a lone surrogate in it"):
        make_text_windows(PIECES, "bad \ud800 text", WindowOptions(64, 8))


ALL_TOKENIZERS = {kind: train(SAMPLE, vocab=300) for kind, train in TRAINERS.items()} | {"words": WORDS}


@pytest.mark.parametrize("kind", ALL_TOKENIZERS)
@given(st.lists(st.text(alphabet="ab ñ🙂北,é\u0301\n") | st.just("a[SEP] </s> <unk>b"), max_size=4))
@settings(max_examples=30, deadline=None)
def test_many_texts_have_the_ids_that_each_has(kind: str, texts: list[str]) -> None:
    """The name of a special token in a text is plain text, here too."""
    tokenizer = ALL_TOKENIZERS[kind]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text, special=False).ids for text in texts]


def test_frames_are_those_that_encode_adds() -> None:
    assert isinstance(PIECES, SubwordTokenizer)
    cls, sep = PIECES.cls, PIECES.sep
    assert PIECES.special_tokens() == ([cls], [], [sep])
    assert PIECES.special_tokens(pair=True) == ([cls], [sep], [sep])
    assert WORDS.special_tokens(pair=True) == ([], [], [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I'm @home, in New-York!", ["I", "'m", "@home", ",", "in", "New-York", "!"]),
        ("我爱NLP。", ["我", "爱", "NLP", "。"]),
        ("a🙂b  c\n", ["a", "🙂", "b", "c"]),
        (" \t", []),
    ],
)
def test_words_of_a_running_text(text: str, words: list[str]) -> None:
    assert [text[start:end] for start, end in find_words(text)] == words


@given(st.text(max_size=60))
def test_every_visible_character_is_in_one_word(text: str) -> None:
    words = find_words(text)
    assert all(word[1] <= next_word[0] for word, next_word in itertools.pairwise(words))
    covered = {position for start, end in words for position in range(start, end)}
    assert {n for n, character in enumerate(text) if not character.isspace()} <= covered
