"""Subword tokenizers: properties of each kind, training, and Hugging Face files."""

import unicodedata
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, BertWordPieceTokenizer, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.processors import RobertaProcessing

from mnemic.text import TRAINERS, SubwordTokenizer, WordTokenizer, load_tokenizer

CORPUS = [
    "The quick brown fox jumps over the lazy dog, doesn't it?",
    "Pack my box with five dozen liquor jugs! The dogs were jumping and running.",
    "Der naïve Café-Besitzer fährt nach Köln. 我在北京。你在哪里？",
]
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SPELLED = [kind for kind in TRAINERS if kind != "byte-bpe"]  # kinds whose letters are characters


@cache
def train_tokenizer(kind: str) -> SubwordTokenizer:
    return TRAINERS[kind](CORPUS)


def quotes(tokenizer: SubwordTokenizer, text: str) -> list[str]:
    offsets = tokenizer.encode(text, special=False).offsets
    return [text[start:end] for start, end in offsets]


def encode_and_decode(tokenizer: SubwordTokenizer, text: str) -> str:
    return tokenizer.decode(tokenizer.encode(text).ids)


@pytest.mark.parametrize("kind", TRAINERS)
def test_special_tokens_come_first(kind: str) -> None:
    tokenizer = train_tokenizer(kind)
    assert tokenizer.pieces[:5] == SPECIALS
    assert (tokenizer.cls, tokenizer.sep, tokenizer.mask) == (2, 3, 4)
    assert tokenizer.special_ids == {0, 2, 3, 4}
    assert [tokenizer.id_of(piece) for piece in tokenizer.pieces] == list(range(len(tokenizer)))


@pytest.mark.parametrize("kind", TRAINERS)
def test_inputs_are_framed_as_in_bert(kind: str) -> None:
    tokenizer = train_tokenizer(kind)
    first, second = (tokenizer.encode(text, special=False).ids for text in ("the dog", "foxes"))
    assert tokenizer.encode("the dog").ids == [2, *first, 3]
    pair = tokenizer.encode("the dog", "foxes")
    assert pair.ids == [2, *first, 3, *second, 3]
    assert pair.segments == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert tokenizer.encode("", "").segments == [0, 0, 1]


@pytest.mark.parametrize("lowercase", [True, False])
def test_wordpiece_is_berts(lowercase: bool) -> None:
    tokenizer = TRAINERS["wordpiece"](CORPUS, lowercase=lowercase)
    vocabulary = {piece: number for number, piece in enumerate(tokenizer.pieces)}
    reference = BertWordPieceTokenizer(vocabulary, lowercase=lowercase)
    for text in [*CORPUS, "THE Naïve\tdogs\u00a0jump\x00ed。北京Köln 😀!?", "cafe\u0301 É", ""]:
        expected, encoded = reference.encode(text, "The fox"), tokenizer.encode(text, "The fox")
        assert encoded.ids == expected.ids
        assert encoded.segments == expected.type_ids


def test_wordpiece_strips_accents_and_sets_chinese_characters_apart() -> None:
    tokenizer = train_tokenizer("wordpiece")
    assert tokenizer.encode("CAFÉ cafe\u0301", special=False).tokens == ["cafe", "cafe"]
    assert quotes(tokenizer, "CAFÉ cafe\u0301") == ["CAFÉ", "cafe\u0301"]
    assert tokenizer.encode("我在北京", special=False).tokens == ["我", "在", "北", "京"]
    assert not any(piece.startswith("##我") for piece in tokenizer.pieces)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(text=st.text(), pair=st.text())
def test_byte_bpe_loses_nothing(text: str, pair: str) -> None:
    tokenizer = train_tokenizer("byte-bpe")
    assert encode_and_decode(tokenizer, text) == text
    assert tokenizer.decode(tokenizer.encode(text, pair).ids) == text + pair
    assert tokenizer.unknown not in tokenizer.encode(text).ids


def test_byte_bpe_loses_no_special_name_and_no_blank() -> None:
    for text in [*SPECIALS, "  a [SEP]\n\n b\t", "👩\u200d👩\u200d👧 e\u0301", "\x00\r\n\u2028"]:
        assert encode_and_decode(train_tokenizer("byte-bpe"), text) == text


def test_byte_bpe_quotes_an_accent_by_its_own_tokens() -> None:
    assert quotes(train_tokenizer("byte-bpe"), "xe\u0301") == ["x", "e", "\u0301", "\u0301"]


@pytest.mark.parametrize("kind", TRAINERS)
def test_the_name_of_a_special_token_is_spelled_out(kind: str) -> None:
    tokenizer = TRAINERS[kind](["[SEP] [PAD]"])
    encoded = tokenizer.encode("[SEP]", special=False)
    assert not {tokenizer.unknown, tokenizer.sep} & set(encoded.ids)
    assert "".join(quotes(tokenizer, "[SEP]")) == "[SEP]"


WORDS = ("running", "jogging", "ïé")  # that the texts of the next test do not have


@pytest.mark.parametrize(
    ("kind", "running", "jogging", "accent"),
    [
        ("words", ["<unk>"], ["<unk>"], ["<unk>"]),
        ("bpe", ["run", "n", "ing</w>"], ["[UNK]", "[UNK]", "g", "ging</w>"], ["[UNK]"] * 2),
        ("byte-bpe", ["Ġrun", "n", "ing"], ["Ġ", "j", "o", "g", "g", "ing"], ["Ġ", "Ã", "¯", "Ã", "©"]),
    ],
)
def test_a_word_that_was_never_read_is_spelled_by_pieces_of_others(
    kind: str, running: list[str], jogging: list[str], accent: list[str]
) -> None:
    """Runner and thinking are frequent; words are unknown, letters may be, bytes never are."""
    texts = ["a runner runs", "thinking is a thing", "ringing the king ran", "he is singing"] * 20
    if kind == "words":
        known = WordTokenizer.from_texts(texts)
        assert [known.decode(known.encode(word).ids).split() for word in WORDS] == [running, jogging, accent]
        return
    tokenizer = TRAINERS[kind](texts, vocab=320)
    pieces = [tokenizer.encode(f"a {word}", special=False).ids[1:] for word in WORDS]
    assert [[tokenizer.pieces[number] for number in ids] for ids in pieces] == [running, jogging, accent]


@pytest.mark.parametrize(
    ("kind", "text", "decoded"),
    [
        ("wordpiece", "The  Café (dog's)", "the cafe ( dog ' s )"),
        ("bpe", "The  Cafe\u0301, dog", "The Café , dog"),
        ("unigram", " The\tﬁve  dogs, yes", "The five  dogs, yes"),
    ],
)
def test_what_the_others_lose(kind: str, text: str, decoded: str) -> None:
    tokenizer = TRAINERS[kind]([*CORPUS, "(dog's) y"])
    assert encode_and_decode(tokenizer, text) == decoded


@pytest.mark.parametrize("kind", SPELLED)
def test_a_learned_letter_is_known_wherever_it_stands(kind: str) -> None:
    tokenizer = TRAINERS[kind](["ab cd", "我"])
    for text in ("a b c d", "ba dc", "abcdabcd", "d", "我a 我我"):
        assert tokenizer.unknown not in tokenizer.encode(text).ids


@pytest.mark.parametrize("kind", SPELLED)
def test_case_is_kept_or_not(kind: str) -> None:
    cased, uncased = (TRAINERS[kind](CORPUS, lowercase=choice) for choice in (False, True))
    assert encode_and_decode(cased, "The Dog") in {"The Dog", "The [UNK]og"}
    assert encode_and_decode(uncased, "The Dog") == "the dog"
    assert not any(piece != piece.lower() for piece in uncased.pieces[5:])
    assert quotes(uncased, "THE")[-1] in {"THE", "HE", "E"}


@pytest.mark.parametrize("kind", TRAINERS)
def test_a_vocabulary_is_no_larger_than_asked(kind: str) -> None:
    long = [" ".join(f"w{first}{second}x" for second in range(40)) for first in range(40)]
    tokenizer = TRAINERS[kind](long, vocab=300)
    assert 100 < len(tokenizer) <= 300
    with pytest.raises(ValueError, match=r"vocab=10 has no room for 5 special tokens and \d+ lett"):
        TRAINERS[kind](long, vocab=10)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "byte-bpe"])
def test_what_never_ends_is_no_word(kind: str) -> None:
    """Else 5,000 letters in a row would become tokens of thousands of letters."""
    tokenizer = TRAINERS[kind](["a" * 5000, "a blank follows " + "b" * 999], vocab=300)
    longest = max(tokenizer.decode([number]).count("a") for number in range(5, len(tokenizer)))
    assert 500 < longest <= 1000
    assert tokenizer.encode("a" * 40).ids != tokenizer.encode("b" * 40).ids


@pytest.mark.parametrize("kind", TRAINERS)
def test_ties_are_broken_the_same_way_every_time(kind: str) -> None:
    texts = [f"{a}{b}{c} {c}{a}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwxyz北京"]
    assert len({TRAINERS[kind](texts, vocab=300) for _ in range(4)}) == 1


@pytest.mark.parametrize("kind", SPELLED)
def test_coverage_leaves_rare_characters_out(kind: str) -> None:
    texts = ["the dog and the fox " * 50, "Ω and Ж", "Ж"]
    tokenizer = TRAINERS[kind](texts, coverage=0.9985)
    letters = "".join(tokenizer.pieces[5:])
    assert unicodedata.normalize("NFC", letters).lower().count("ж") > 0
    assert "ω" not in letters.lower()
    with pytest.raises(ValueError, match=r"coverage is 1\.5; expected a share"):
        TRAINERS[kind](texts, coverage=1.5)


@pytest.mark.parametrize("kind", TRAINERS)
def test_texts_have_to_be_texts(kind: str) -> None:
    with pytest.raises(ValueError, match="texts is one string"):
        TRAINERS[kind]("The quick brown fox")
    for nothing in ([], ["", " \n"], iter([])):
        with pytest.raises(ValueError, match="no text to learn from"):
            TRAINERS[kind](nothing)
    with pytest.raises(ValueError, match=r"'a\\ud800' is no unicode text: a lone surrogate"):
        train_tokenizer(kind).encode("a\ud800")


def test_a_marker_that_stands_for_no_blank_quotes_nothing() -> None:
    tokenizer = train_tokenizer("unigram")
    text = "q x▁"
    encoded = tokenizer.encode(text, special=False)
    assert encoded.tokens == ["▁", "q", "▁", "x", "▁"]
    assert encoded.offsets == [(0, 0), (0, 1), (1, 2), (2, 3), (3, 4)]


# --- files of Hugging Face ----------------------------------------------------------------------


def make_roberta_tokenizer(*, trim_offsets: bool = True) -> Tokenizer:
    """Make a tokenizer like RoBERTa's, with truncation and padding as in published files."""
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate([*names, *alphabet, "Ġd", "og"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("Ġ", "d"), ("o", "g")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=trim_offsets, add_prefix_space=False
    )
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in names])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=16, pad_id=1, pad_token="<pad>")
    return tokenizer


def save_and_load(tokenizer: Tokenizer, folder: Path) -> SubwordTokenizer:
    tokenizer.save(str(folder / "tokenizer.json"))
    loaded = load_tokenizer(folder)
    assert isinstance(loaded, SubwordTokenizer)
    return loaded


@pytest.mark.parametrize("trim_offsets", [True, False])
def test_a_roberta_file_is_read(tmp_path: Path, trim_offsets: bool) -> None:
    tokenizer = save_and_load(make_roberta_tokenizer(trim_offsets=trim_offsets), tmp_path)
    assert tokenizer.kind == "byte-bpe"
    roles = [getattr(tokenizer, role) for role in ("cls", "pad", "sep", "unknown", "mask")]
    assert roles == [0, 1, 2, 3, 4]
    assert tokenizer.special_ids == {0, 1, 2, 4}
    encoded = tokenizer.encode("a  dog", "og</s>")
    assert encoded.tokens == [*("<s>", "a", "Ġ", "Ġd", "og", "</s>"), *("</s>", "og", "<", "/", "s", ">", "</s>")]
    assert encoded.offsets[:7] == [(0, 0), (0, 1), (1, 2), (3, 4), (4, 6), (6, 6), (6, 6)]
    assert encoded.offsets[7:] == [(0, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 6)]
    assert encoded.segments == [0] * 7 + [1] * 6
    assert tokenizer.decode(encoded.ids) == "a  dogog</s>"


def test_nothing_is_cut_or_padded(tmp_path: Path) -> None:
    original = make_roberta_tokenizer()
    assert len(original.encode("dog" * 100).ids) == 16
    for tokenizer in (SubwordTokenizer(original), save_and_load(original, tmp_path)):
        assert len(tokenizer.encode("dog" * 100).ids) == 202
        assert len(tokenizer.encode("").ids) == 2
        tokenizer.save(tmp_path)
        assert Tokenizer.from_file(str(tmp_path / "tokenizer.json")).truncation is None
        assert Tokenizer.from_file(str(tmp_path / "tokenizer.json")).padding is None
    assert len(original.encode("dog" * 100).ids) == 16  # the original is unchanged


def test_what_is_saved_is_hugging_faces(tmp_path: Path) -> None:
    train_tokenizer("wordpiece").save(tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    expected = reference.encode("The dogs", "jumped")
    encoded = train_tokenizer("wordpiece").encode("The dogs", "jumped")
    assert (encoded.ids, encoded.segments) == (expected.ids, expected.type_ids)


def test_a_missing_role_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    original = Tokenizer(models.WordLevel({"dog": 0, "<unk>": 7}, unk_token="<unk>"))
    original.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = save_and_load(original, tmp_path)
    assert (tokenizer.kind, tokenizer.unknown, len(tokenizer)) == ("wordlevel", 7, 8)
    assert tokenizer.encode("dog cat", "dog").ids == [0, 7, 0]
    with pytest.raises(ValueError, match=r"has no pad token: no \[PAD\] or <pad> in it"):
        _ = tokenizer.pad


def test_a_unigram_file_reads_no_special_token_out_of_a_text(tmp_path: Path) -> None:
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -1.0), ("d", -1.0), ("▁d", -0.5)]
    original = Tokenizer(models.Unigram(pieces, 2, False))
    original.pre_tokenizer = pre_tokenizers.Metaspace()
    original.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tokenizer = save_and_load(original, tmp_path)
    assert tokenizer.kind == "unigram"
    assert tokenizer.encode("d </s>d").tokens == ["▁d", "▁", "<unk>", "d"]


def test_a_file_that_is_no_tokenizer_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    empty = Tokenizer(models.BPE()).to_str()
    for content, message in [
        ('{"model": {"type": "Alphabet"}}', "Hugging Face tokenizers cannot read it"),
        (empty, "empty vocabulary"),
    ]:
        file.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=message) as raised:
            load_tokenizer(file)
        assert str(file) in str(raised.value)
