"""Which tokens start a word, for every kind of subwords and for Chinese words."""

import builtins
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.data.corpora.tokens import tokenize_document
from mnemic.text import TRAINERS, Span, SubwordTokenizer, split_sentences
from mnemic.text.tokenizers.word_starts import find_chinese_words, find_word_starts

CORPUS = [
    "The quick brown foxes jumped over 12 lazy dogs, didn't they? Jumping and running!",
    "Der naïve Café-Besitzer fährt nach Köln. 我爱北京天安门。你在哪里？ T恤 😀 e\u0301",
]
TEXT = "Jumping foxes, naïve dogs (12): didn't 北京 fährt 😀"
WORDS = ["Jumping", "foxes", ",", "naïve", "dogs", "(", "12", ")", ":", "didn", "'", "t"]
WORDS += ["北", "京", "fährt", "😀"]


@cache
def train_tokenizer(kind: str) -> SubwordTokenizer:
    return TRAINERS[kind](CORPUS, **({} if kind == "byte-bpe" else {"vocab": 150}))


def words_of(kind: str, text: str, words: list[Span] | None = None) -> list[str]:
    """Join the tokens of each word to its text."""
    offsets = train_tokenizer(kind).encode(text, special=False).offsets
    spans: list[list[int]] = []
    for (start, end), starts_word in zip(offsets, find_word_starts(text, offsets, words or [])):
        if starts_word:
            spans.append([start, end])
        spans[-1][1] = max(spans[-1][1], end)
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize("kind", TRAINERS)
def test_words_are_what_a_reader_takes_for_words(kind: str) -> None:
    words = [word for word in words_of(kind, TEXT) if word.strip()]
    if kind == "byte-bpe":  # to which this is one token
        assert "'t" in words
        words[words.index("'t")] = "'"
        words.insert(words.index("'") + 1, "t")
    assert words == WORDS


@pytest.mark.parametrize("kind", TRAINERS)
@given(text=st.text(st.sampled_from("abcxyz 0,.'-北京我e\u0301ï😀\n"), max_size=30))
@settings(max_examples=50, deadline=None)
def test_the_first_token_begins_a_word_and_none_is_lost(kind: str, text: str) -> None:
    tokens = tokenize_document(text, train_tokenizer(kind))
    assert len(tokens.ids) == len(tokens.word_starts)
    assert tokens.ids.tolist() == train_tokenizer(kind).encode(text, special=False).ids
    assert tokens.word_starts[:1].all()
    assert tokens.sentence_ends == sorted(set(tokens.sentence_ends))
    assert tokens.sentence_ends[-1:] == [len(tokens.ids)][: len(tokens.sentence_ends)]
    assert bool(tokens.sentence_ends) == bool(len(tokens.ids))


def test_a_marker_that_quotes_nothing_belongs_to_its_word() -> None:
    assert find_word_starts("北京", [(0, 0), (0, 1), (1, 2)]) == [True, False, True]
    assert find_word_starts("ab cd", [(0, 1), (1, 2), (3, 3), (3, 5)]) == [True, False, True, False]


def test_sentences_end_where_the_text_says() -> None:
    text = "The dogs jumped. Did they? 我爱北京。你在哪里？"
    tokenizer = train_tokenizer("wordpiece")
    tokens = tokenize_document(text, tokenizer)
    spans = split_sentences(text)
    assert len(tokens.sentence_ends) == len(spans) == 4
    for start, end, span in zip([0, *tokens.sentence_ends], tokens.sentence_ends, spans):
        expected = tokenizer.encode(text[slice(*span)], special=False).ids
        assert tokens.ids[start:end].tolist() == expected


def test_chinese_words_are_those_of_rjieba() -> None:
    pytest.importorskip("rjieba")
    text = "😀 我爱北京天安门, and T恤!"
    words = find_chinese_words(text)
    assert [text[slice(*word)] for word in words] == ["北京", "天安门", "T恤"]
    texts = words_of("wordpiece", text, words)
    assert texts == ["😀", "我", "爱", "北京", "天安门", ",", "and", "T恤", "!"]
    tokens = tokenize_document(text, train_tokenizer("wordpiece"), find_chinese_words)
    assert tokens.word_starts.sum() == len(texts)
    assert find_chinese_words("only English 123") == []


def test_without_rjieba_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    original_import = builtins.__import__

    def import_without_rjieba(name: str, *rest: Any) -> Any:
        if name == "rjieba":
            raise ModuleNotFoundError(name)
        return original_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", import_without_rjieba)
    with pytest.raises(ValueError, match=r"pip install 'mnemic\[chinese\]'"):
        find_chinese_words("北京")
