"""The word tokenizer: words, items that are never split, and damaged files."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.text import WordTokenizer, load_tokenizer
from mnemic.text.tokenizers.words import normalize_word


def quotes(tokenizer: WordTokenizer, text: str) -> list[str]:
    return [text[start:end] for start, end in tokenizer.encode(text).offsets]


def test_words_are_sorted_after_padding_and_unknown() -> None:
    tokenizer = WordTokenizer.from_texts(["The milk is there.", "Where is the MILK?"], ["s,e", "no"])
    assert tokenizer.vocabulary == ("<pad>", "<unk>", "is", "milk", "no", "s,e", "the", "there", "where")
    assert tokenizer == WordTokenizer.from_texts(["Where is the MILK?", "The milk is there."], ["no", "s,e"])


def test_a_question_becomes_ids_with_offsets() -> None:
    tokenizer = WordTokenizer.from_texts(["where is the milk"])
    encoded = tokenizer.encode("Where is the cow?")
    assert encoded.ids == [tokenizer.id_of("where"), tokenizer.id_of("is"), tokenizer.id_of("the"), 1]
    assert encoded.tokens == ["where", "is", "the", "<unk>"]
    assert encoded.offsets == [(0, 5), (6, 8), (9, 12), (13, 16)]
    assert encoded.segments == [0, 0, 0, 0]
    assert tokenizer.decode(encoded.ids) == "where is the <unk>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, world!", ["Hello", "world"]),
        ("don't 'quote' dogs' it’s", ["don't", "quote", "dogs", "it’s"]),
        ("snake_case x2 3.14 a-b", ["snake", "case", "x2", "3", "14", "a", "b"]),
        ("Zażółć naïve", ["Zażółć", "naïve"]),
        ("cafe\u0301s", ["cafe\u0301s"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("我在北京abc。〇一", ["我", "在", "北", "京", "abc", "〇", "一"]),
        ("한국어 ひらがな", ["한국어", "ひらがな"]),
        ("😀 👍🏽 milk☃", ["milk"]),
        ("", []),
        ("?! \n", []),
        ("\ud800milk", ["milk"]),
    ],
)
def test_what_a_word_is(text: str, expected: list[str]) -> None:
    assert quotes(WordTokenizer.from_texts([text]), text) == expected
    assert 1 not in WordTokenizer.from_texts([text]).encode(text).ids


def test_lower_casing_that_changes_the_length_keeps_the_offsets() -> None:
    tokenizer = WordTokenizer.from_texts(["İstanbul IŞIK milk"])
    assert max(map(len, tokenizer.vocabulary)) == len("İstanbul") + 1
    assert quotes(tokenizer, "İİ İstanbul, milk") == ["İİ", "İstanbul", "milk"]
    assert tokenizer.find_unknown_words("İİ İstanbul, milk") == ["i̇i̇"]


def test_spellings_of_one_word_share_an_id() -> None:
    tokenizer = WordTokenizer.from_texts(["café don't"])
    assert tokenizer.encode("CAFÉ cafe\u0301 Cafe\u0301 don’t DON'T").ids == [2, 2, 2, 3, 3]
    assert "Café" in tokenizer
    assert WordTokenizer.from_texts(["Straße"]).vocabulary[2:] == ("straße",)
    assert tokenizer.id_of("DON’T") == 3


def test_items_are_never_split() -> None:
    tokenizer = WordTokenizer.from_texts(
        ["the milk and the football"], ["milk,football", "s,e", "C++", "<go>", "北京", "new york"]
    )
    for item in ("milk,football", "s,e", "c++", "<go>", "北京", "new york"):
        assert tokenizer.encode(item).tokens == [item]
        assert tokenizer.encode(item).ids == [tokenizer.id_of(item)]
    text = "The MILK,FOOTBALL. I C++ <go> S,E; 我在北京. New York milk, football"
    assert quotes(tokenizer, text) == [
        *("The", "MILK,FOOTBALL", "I", "C++", "<go>", "S,E", "我", "在", "北京", "New York"),
        *("milk", "football"),
    ]


def test_an_item_is_found_only_where_it_stands_whole() -> None:
    tokenizer = WordTokenizer.from_texts([], ["s,e", "s,e,e", "<go>", "new york"])
    assert quotes(tokenizer, "news,e ss,e s,ee s,e,e s,e") == [*("news", "e", "ss", "e", "s", "ee", "s,e,e", "s,e")]
    assert quotes(tokenizer, "go <go> new  york new york") == ["go", "<go>", "new", "york", "new york"]
    assert quotes(tokenizer, "s") == ["s"]


def test_the_larger_item_is_found_first() -> None:
    titles = ["that cat", "that cat!", "that cat and that dog", "$"]
    tokenizer = WordTokenizer.from_texts([], titles)
    for title in titles[:3]:
        assert tokenizer.encode(f"{title}?").tokens == [title]
    assert tokenizer.encode("that cat and that").tokens == ["that cat", "<unk>", "<unk>"]
    assert tokenizer.encode("$").ids == []
    assert tokenizer.id_of("$") == 2


def test_an_item_reaches_back_into_no_other_item() -> None:
    tokenizer = WordTokenizer.from_texts([], ["a-", "-b"])
    assert quotes(tokenizer, "a-b a- -b") == ["a-", "b", "a-", "-b"]


def test_an_item_is_one_word_of_the_texts_too() -> None:
    assert WordTokenizer.from_texts(["take s,e now"], ["s,e"]).vocabulary[2:] == ("now", "s,e", "take")


def test_padding_is_no_word() -> None:
    tokenizer = WordTokenizer.from_texts(["pad <pad>"])
    assert tokenizer.encode("<pad> pad").ids == [2, 2]
    assert (tokenizer.id_of("<pad>"), tokenizer.id_of("<unk>")) == (0, 1)
    with pytest.raises(ValueError, match="'<pad>' is among the words twice"):
        WordTokenizer.from_texts([], ["<pad>"])


def test_unknown_words_come_once_and_in_order() -> None:
    tokenizer = WordTokenizer.from_texts(["where is the"])
    assert tokenizer.find_unknown_words("Where is the Football, the Apple, the football?") == ["football", "apple"]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(text=st.text(), items=st.lists(st.text(min_size=1).filter(str.strip), max_size=3))
def test_a_vocabulary_knows_the_texts_it_comes_from(text: str, items: list[str]) -> None:
    tokenizer = WordTokenizer.from_texts([text], items)
    encoded = tokenizer.encode(text)
    assert tokenizer.find_unknown_words(text) == []
    for token, (start, end) in zip(encoded.tokens, encoded.offsets):
        assert normalize_word(text[start:end]) == token
    ends = [end for _, end in encoded.offsets]
    assert all(start >= end for end, (start, _) in zip(ends, encoded.offsets[1:]))


def test_the_file_is_plain_json(tmp_path: Path) -> None:
    WordTokenizer.from_texts(["我 milk"]).save(tmp_path)
    text = (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    assert "我" in text
    assert json.loads(text) == {"kind": "words", "words": ["<pad>", "<unk>", "milk", "我"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"kind": "words", "words": ["<pad>"', "is no valid JSON"),
        (b"\xff\xfe", "is no valid JSON"),
        (b'["<pad>", "<unk>"]', "holds a list; expected a JSON object"),
        (b'{"kind": "letters", "words": []}', "its kind is 'letters'"),
        (b'{"kind": "words"}', r"it has \['kind'\]; expected 'kind' and 'words'"),
        (b'{"kind": "words", "words": "abc"}', "expected 'kind' and 'words', a list"),
        (b'{"kind": "words", "words": [], "x": 1}', "it has"),
        (b'{"kind": "words", "words": ["<unk>", "<pad>"]}', r"begin with \['<unk>', '<pad>'\]"),
        (b'{"kind": "words", "words": ["<pad>", "<unk>", 3]}', "3 among the words; expected str"),
        (b'{"kind": "words", "words": ["<pad>", "<unk>", [3]]}', r"\[3\] among the words"),
        (b'{"kind": "words", "words": ["<pad>", "<unk>", " "]}', "' ' among the words"),
        (b'{"kind": "words", "words": ["<pad>", "<unk>", "Milk"]}', "'Milk' .* expected 'milk'"),
        (b'{"kind": "words", "words": ["<pad>", "<unk>", "a", "a"]}', "'a' is among the words twi"),
        (b"{}", "Hugging Face tokenizers cannot read it"),
    ],
)
def test_a_tampered_file_is_refused_by_name(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message) as raised:
        load_tokenizer(tmp_path)
    assert str(file) in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tokenizer\.json is missing"):
        load_tokenizer(tmp_path)
