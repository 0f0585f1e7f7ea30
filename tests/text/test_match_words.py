"""Which words are one token, for all kinds of tokenizers."""

from collections import defaultdict

import pytest

from mnemic.text import TOKENIZERS, WordTokenizer
from mnemic.text.tokenizers.contract import Tokenizer
from mnemic.text.tokenizers.match_words import match_words
from mnemic.text.tokenizers.words import list_words

TEXT = "The cat sat on the mat, and the dog did not play: playing is not for the café's dog. "
WORDS = ("the", "cat", "play", "playing", "ing", "ay", "at", "not", "d", "zebra")
NO_WORDS = ("dog,", "<unk>", "[SEP]", "##ay", "the dog", "", " ", "the ")
# How a vocabulary spells a word that stands alone.
SPELLINGS = {"wordpiece": ["{}"], "bpe": ["{}</w>"], "byte-bpe": ["{}", "Ġ{}"], "unigram": ["▁{}"], "words": ["{}"]}


def make_tokenizer(kind: str) -> Tokenizer:
    settings = {} if kind == "words" else {"vocab": 320}
    return TOKENIZERS[kind]([TEXT] * 20, **settings)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_word_is_matched_by_how_the_vocabulary_spells_it(kind: str) -> None:
    """And by no other token: "ing" is no word where only "##ing" is in the vocabulary."""
    tokenizer = make_tokenizer(kind)
    matches: dict[str, set[int]] = defaultdict(set)
    for token_id, index in match_words(tokenizer, WORDS):
        matches[WORDS[index]].add(token_id)
    for word in WORDS:
        pieces = {spelling.format(word) for spelling in SPELLINGS[kind]}
        ids = {tokenizer.id_of(piece) for piece in pieces if piece in tokenizer}
        if kind == "unigram":  # a likely pair of pieces can beat the word
            assert matches[word] <= ids
        else:
            assert matches[word] == ids, word
    assert matches["play"]
    assert not matches["zebra"]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_what_is_not_one_word_from_end_to_end_is_not_matched(kind: str) -> None:
    tokenizer = make_tokenizer(kind)
    assert list(match_words(tokenizer, NO_WORDS)) == []


def test_a_word_may_have_a_token_of_its_own_after_a_blank() -> None:
    tokenizer = TOKENIZERS["byte-bpe"](["cat dog cat\n"] * 50, vocab=280)
    pieces = {tokenizer.id_of(piece) for piece in ("cat", "Ġcat")}
    assert {token_id for token_id, _ in match_words(tokenizer, ["cat"])} == pieces


def test_multi_word_entries_are_words() -> None:
    tokenizer = WordTokenizer.from_texts(["we took the milk"], ["milk,football"])
    assert list(match_words(tokenizer, ["milk", "milk,football", "Milk"]))[:3] == [
        (tokenizer.id_of("milk"), 0),
        (tokenizer.id_of("milk,football"), 1),
        (tokenizer.id_of("milk"), 2),
    ]


def test_listed_words_are_those_of_a_vocabulary() -> None:
    text = "Don’t panic: the CAFE\u0301 has 42 猫, said O'Neil."
    words = list_words(text)
    assert words == ["don't", "panic", "the", "café", "has", "42", "猫", "said", "o'neil"]
    assert set(words) == set(WordTokenizer.from_texts([text]).vocabulary[2:])
