"""The contract of tokenizers, tested on every kind in the table."""

import subprocess
import sys
import unicodedata
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.text import TOKENIZERS, Tokenizer, load_tokenizer

CORPUS = [
    "Mary moved to the bathroom. Where is the milk? She doesn't know!",
    "The naïve café owner jumped over 12 lazy dogs, running and jumping.",
    "我在北京。你在哪里？ 😀 e\u0301 İstanbul",
    "the milk, the bathroom, the dogs [SEP] <pad>",
]
TEXTS = [
    "Where is the milk?",
    "  two  blanks\tand\na line ",
    "我在北京，the café。",
    "cafe\u0301 nai\u0308ve e\u0301e\u0301",
    "İİ milk İstanbul",
    "😀 milk 👩\u200d👩\u200d👧 dogs 😀😀",
    "Zażółć gęślą jaźń",
]


@cache
def train_tokenizer(kind: str) -> Tokenizer:
    return TOKENIZERS[kind](CORPUS)


def normalize_letters(text: str) -> str:
    """Normalize a text: letters without case, accents, marks and compatibility forms."""
    letters = unicodedata.normalize("NFKD", text.lower())
    return "".join(letter for letter in letters if unicodedata.category(letter)[0] in "LN")


def test_the_table_has_words_and_every_subword_kind() -> None:
    assert set(TOKENIZERS) == {"words", "wordpiece", "bpe", "byte-bpe", "unigram"}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_it_knows_its_kind_and_its_first_ids(kind: str) -> None:
    tokenizer = train_tokenizer(kind)
    assert tokenizer.kind == kind
    assert (tokenizer.pad, tokenizer.unknown) == (0, 1)
    assert tokenizer.pad in tokenizer.special_ids
    assert tokenizer.unknown not in tokenizer.special_ids


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_offsets_quote_the_text(kind: str, text: str) -> None:
    tokenizer = train_tokenizer(kind)
    encoded = tokenizer.encode(text, special=False)
    quotes = [text[start:end] for start, end in encoded.offsets]
    assert all(0 <= start <= end <= len(text) for start, end in encoded.offsets)
    assert encoded.offsets == sorted(encoded.offsets)
    positions = {position for span in encoded.offsets for position in range(*span)}
    assert normalize_letters("".join(text[position] for position in sorted(positions))) == normalize_letters(text)
    for number, quote in zip(encoded.ids, quotes):
        spelled = tokenizer.decode([number]).removeprefix("##")
        if number != tokenizer.unknown and "\ufffd" not in spelled:  # not half a character
            assert normalize_letters(quote) == normalize_letters(spelled)
        assert quote == quote.strip() or quote.isspace()


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_combining_accent_stays_with_its_letter(kind: str) -> None:
    text = "cafe\u0301 dogs"
    encoded = train_tokenizer(kind).encode(text, special=False)
    assert max(end for _, end in encoded.offsets if end <= text.index(" ")) == 5
    assert text[encoded.offsets[-1][0] : encoded.offsets[-1][1]] in {"dogs", "ogs", "gs", "s"}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_special_token_is_an_empty_span_where_it_stands(kind: str) -> None:
    tokenizer = train_tokenizer(kind)
    text, pair = " milk ", "the dogs!"
    encoded = tokenizer.encode(text, pair)
    for position, number in enumerate(encoded.ids):
        if number in tokenizer.special_ids:
            length = len([text, pair][encoded.segments[position]])
            offset = 0 if position == 0 else length
            assert encoded.offsets[position] == (offset, offset)
    assert not tokenizer.special_ids & set(tokenizer.encode(text, pair, special=False).ids)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_pair_is_both_texts_one_after_the_other(kind: str) -> None:
    tokenizer = train_tokenizer(kind)
    first = tokenizer.encode("the milk", special=False)
    second = tokenizer.encode("Where is Mary?", special=False)
    pair = tokenizer.encode("the milk", "Where is Mary?", special=False)
    for pair_values, first_values, second_values in zip(pair[:3], first[:3], second[:3]):
        assert pair_values == first_values + second_values
    assert pair.segments == [0] * len(first.ids) + [1] * len(second.ids)


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_the_four_lists_are_equally_long(kind: str, special: bool) -> None:
    tokenizer = train_tokenizer(kind)
    for text, pair in [("", None), ("", ""), (" ", "\n"), ("the milk", ""), ("", "the milk")]:
        encoded = tokenizer.encode(text, pair, special=special)
        assert len({len(values) for values in encoded}) == 1
        ids = [number for number in encoded.ids if number not in tokenizer.special_ids]
        assert tokenizer.decode(ids).split() == f"{text} {pair or ''}".split()


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_tokens_are_the_vocabulary_entries_of_the_ids(kind: str) -> None:
    tokenizer = train_tokenizer(kind)
    encoded = tokenizer.encode("the unheard ☃ of", "milk")
    assert [tokenizer.id_of(token) for token in encoded.tokens] == encoded.ids
    assert all(token in tokenizer for token in encoded.tokens)
    assert max(encoded.ids) < len(tokenizer)


@pytest.mark.parametrize("kind", sorted(set(TOKENIZERS) - {"byte-bpe"}))
def test_what_was_never_seen_is_unknown_and_says_so(kind: str) -> None:
    tokenizer = train_tokenizer(kind)
    text = "the Ω milk"
    encoded = tokenizer.encode(text, special=False)
    assert [
        text[start:end] for number, (start, end) in zip(encoded.ids, encoded.offsets) if number == tokenizer.unknown
    ] == ["Ω"]
    name = encoded.tokens[encoded.ids.index(tokenizer.unknown)]
    assert name in tokenizer.decode(encoded.ids)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_no_text_can_spell_a_special_token(kind: str) -> None:
    tokenizer = train_tokenizer(kind)
    text = "[PAD] [CLS] [SEP]x[MASK] <pad> <unk> <s> </s>"
    assert not tokenizer.special_ids & set(tokenizer.encode(text, special=False).ids)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_strangers_are_refused(kind: str) -> None:
    tokenizer = train_tokenizer(kind)
    assert "nowhere" not in tokenizer
    with pytest.raises(ValueError, match=rf"'nowhere' is not among the {len(tokenizer)} "):
        tokenizer.id_of("nowhere")
    for number in (-1, len(tokenizer)):
        with pytest.raises(ValueError, match=rf"the id {number}; ids go from 0 to"):
            tokenizer.decode([number])


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_decoding_leaves_special_tokens_out(kind: str) -> None:
    tokenizer = train_tokenizer(kind)
    padded = [*tokenizer.encode("the milk").ids, tokenizer.pad, tokenizer.pad]
    assert tokenizer.decode(padded) == "the milk"


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_saved_and_loaded_it_is_the_same(kind: str, tmp_path: Path) -> None:
    tokenizer = train_tokenizer(kind)
    folder = tmp_path / "new" / "folder"
    tokenizer.save(folder)
    tokenizer.save(folder)
    assert [file.name for file in folder.iterdir()] == ["tokenizer.json"]
    for path in (folder, folder / "tokenizer.json"):
        loaded = load_tokenizer(path)
        assert loaded == tokenizer
        assert hash(loaded) == hash(tokenizer)
        assert (loaded.kind, len(loaded)) == (kind, len(tokenizer))
        for text in TEXTS:
            assert loaded.encode(text, "milk") == tokenizer.encode(text, "milk")
    assert load_tokenizer(folder) != TOKENIZERS[kind]([*CORPUS, "another vocabulary altogether"])


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_learning_is_deterministic(kind: str) -> None:
    again = [TOKENIZERS[kind](text for text in CORPUS) for _ in range(3)]
    assert again == [train_tokenizer(kind)] * 3


@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(text=st.text())
def test_any_text_has_ordered_offsets_within_it(kind: str, text: str) -> None:
    encoded = train_tokenizer(kind).encode(text)
    assert all(0 <= start <= end <= len(text) for start, end in encoded.offsets)
    assert [start for start, _ in encoded.offsets] == sorted(start for start, _ in encoded.offsets)


def test_a_machine_that_only_trains_can_import_it() -> None:
    check = "import sys, mnemic.text; print(sorted({'torch', 'sentencex', 'numpy'} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"
