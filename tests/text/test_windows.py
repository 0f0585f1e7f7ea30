"""Long texts in windows: every token is in one, neighbours share what was asked, nothing is cut."""

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
sizes = st.tuples(st.integers(0, 300), st.integers(1, 40), st.integers(0, 39)).filter(lambda own: own[2] < own[1])
texts = st.text(alphabet="ab ñ🙂北京,é\u0301\t\n", max_size=80)


@given(sizes)
def test_every_token_is_covered_and_neighbours_share_what_was_asked(own: tuple[int, int, int]) -> None:
    total, room, overlap = own
    found = split_token_ranges(total, room, overlap)
    assert sorted({token for one in found for token in range(*one)}) == list(range(total))
    for one, following in itertools.pairwise(found):
        assert one.end - following.start == overlap
        assert following.end > one.end  # each holds something new
    assert all(one.end - one.start == room for one in found[:-1])
    assert found[-1].end - found[-1].start <= room
    assert len(found) == 1 or total > room


@given(sizes)
def test_a_token_belongs_to_the_window_where_it_is_farthest_from_a_cut(own: tuple[int, int, int]) -> None:
    """The slow twin looks at every window for every token."""
    total, found = own[0], split_token_ranges(*own)

    def margin(token: int, one: TokenRange) -> float:
        left = token - one.start if one.start > 0 else float("inf")
        return min(left, one.end - 1 - token if one.end < total else float("inf"))

    owner = assign_tokens(found)
    assert len(owner) == total
    for token in range(total):
        holding = [k for k, one in enumerate(found) if one.start <= token < one.end]
        most = max(margin(token, found[k]) for k in holding)
        assert owner[token] == next(k for k in holding if margin(token, found[k]) == most)


def test_the_middle_of_an_overlap_is_the_border() -> None:
    assert split_token_ranges(12, 8, 4) == [(0, 8), (4, 12)]
    assert assign_tokens(split_token_ranges(12, 8, 4)) == [0] * 6 + [1] * 6


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(text=texts, question=texts, length=st.integers(45, 120), overlap=st.integers(0, 8))
@settings(max_examples=60, deadline=None)
def test_windows_put_together_are_the_text(kind: str, text: str, question: str, length: int, overlap: int) -> None:
    """Frame, question and stretch stand where the window says; offsets quote the string."""
    tokenizer, question = TOKENIZERS[kind], question[:5]
    for beside, cut in (
        (None, make_text_windows(tokenizer, text, WindowOptions(length, overlap))),
        (question, make_question_windows(tokenizer, question, text, WindowOptions(length, overlap))),
    ):
        whole = tokenizer.encode(text, special=False)
        other = [] if beside is None else tokenizer.encode(beside, special=False).ids
        assert cut.offsets == whole.offsets
        assert all(0 <= start <= end <= len(text) for start, end in cut.offsets)
        assert cut.covered_tokens == cut.total_tokens == len(whole.ids) + len(other)
        for own in cut.windows:
            assert len(own.ids) == len(own.segments) <= length
            inside = own.ids[own.text_start : own.text_start + own.token_range.end - own.token_range.start]
            assert inside == whole.ids[own.token_range.start : own.token_range.end]
            if beside is not None:
                before = len(tokenizer.special_tokens(pair=True).before)
                assert own.ids[before : before + len(other)] == other
                assert own.segments[own.text_start :] == [1] * (len(own.ids) - own.text_start)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("pair", [("the cat sat", "on the mat"), ("the dog ran home", "a"), ("", "")])
def test_a_short_text_is_framed_as_the_tokenizer_frames_it(kind: str, pair: tuple[str, str]) -> None:
    """One window is exactly what ``encode`` gives, for a text and for both orders of a pair."""
    tokenizer, room = TOKENIZERS[kind], WindowOptions(64, 8)
    alone, both = tokenizer.encode(pair[0]), tokenizer.encode(*pair)
    (own,) = make_text_windows(tokenizer, pair[0], room).windows
    assert (own.ids, own.segments) == (alone.ids, alone.segments)
    for cut in (make_question_windows, make_pair_windows):
        (own,) = cut(tokenizer, *pair, room).windows
        assert (own.ids, own.segments) == (both.ids, both.segments)


def test_of_a_pair_the_longer_text_is_cut() -> None:
    long, short = "the cat sat on the mat " * 5, "dog"
    for pair, order in (((long, short), 0), ((short, long), 1)):
        cut = make_pair_windows(WORDS, *pair, WindowOptions(12, 3))
        assert len(cut.windows) > 1
        assert cut.total_tokens == cut.covered_tokens == 31
        dog = WORDS.id_of("dog")
        places = [own.ids.index(dog) for own in cut.windows]
        assert [bool(place) for place in places] == [order == 0] * len(places)
        assert all(own.segments.count(1) == (1 if order == 0 else 11) for own in cut.windows[:-1])


def test_a_long_text_may_be_an_error_that_names_the_lengths() -> None:
    text = "the cat " * 20
    with pytest.raises(WindowError, match=r"has 40 tokens; a window of 12 has room for 10 of them"):
        make_text_windows(PIECES, text, WindowOptions(12, 2, "error"))
    assert len(make_text_windows(PIECES, "the cat", WindowOptions(12, 2, "error")).windows) == 1


def test_only_the_first_window_is_read_if_that_is_asked_for_and_the_count_says_so() -> None:
    cut = make_text_windows(PIECES, "the cat " * 20, WindowOptions(12, 2, "first"))
    assert (len(cut.windows), cut.covered_tokens, cut.total_tokens) == (1, 10, 40)


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
    cut = make_text_windows(PIECES, "the " * 100_000, WindowOptions(258, 56))
    assert cut.covered_tokens == cut.total_tokens == 100_000
    assert len(cut.windows) == 500


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(ValueError, match="a lone surrogate in it"):
        make_text_windows(PIECES, "bad \ud800 text", WindowOptions(64, 8))


EVERY = {kind: train(SAMPLE, vocab=300) for kind, train in TRAINERS.items()} | {"words": WORDS}


@pytest.mark.parametrize("kind", EVERY)
@given(st.lists(st.text(alphabet="ab ñ🙂北,é\u0301\n") | st.just("a[SEP] </s> <unk>b"), max_size=4))
@settings(max_examples=30, deadline=None)
def test_many_texts_have_the_ids_that_each_has(kind: str, many: list[str]) -> None:
    """A special token's name in a text is only a text, here too."""
    tokenizer = EVERY[kind]
    assert tokenizer.encode_batch(many) == [tokenizer.encode(own, special=False).ids for own in many]


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
    found = find_words(text)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(found))
    covered = {place for start, end in found for place in range(start, end)}
    assert {n for n, own in enumerate(text) if not own.isspace()} <= covered
