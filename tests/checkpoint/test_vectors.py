"""Word vectors on disk: what is saved comes back, text files are read, damage is found."""

import gzip
import json
from pathlib import Path

import pytest
import torch
from vector_files import save_table, write_vector_lines

from mnemic.checkpoint import vector_lines
from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.vectors import (
    CARD,
    VECTORS,
    WORDS,
    check_vectors_replaceable,
    iterate_vectors,
    load_vectors,
    save_vectors,
)

LINES = {"the": [0.5, -1.25, 3.0], "café": [1e-3, 2.0, -0.0], ". . .": [7.0, 8.0, 9.0]}


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    table = save_table(tmp_path / "vectors", ["the", "cat", "don't", "猫"], 6)
    loaded = load_vectors(tmp_path / "vectors")
    assert (loaded.words, loaded.counts, loaded.card) == (table.words, table.counts, table.card)
    assert torch.equal(loaded.vectors, table.vectors)
    assert loaded.width == 6
    (chunk,) = iterate_vectors(tmp_path / "vectors")
    assert torch.equal(chunk.vectors, table.vectors)
    assert [path.name for path in tmp_path.iterdir()] == ["vectors"]  # no temporary folder is left


def test_new_vectors_replace_old_ones_and_nothing_else(tmp_path: Path) -> None:
    save_table(tmp_path / "vectors", ["a", "b"], 3)
    check_vectors_replaceable(tmp_path / "vectors")
    table = save_table(tmp_path / "vectors", ["c"], 5, seed=1)
    assert load_vectors(tmp_path / "vectors").words == table.words
    (tmp_path / "letters").mkdir()
    check_vectors_replaceable(tmp_path / "letters")  # empty
    (tmp_path / "letters" / "letter.txt").write_text("Dear Ann", encoding="utf-8")
    for path in (tmp_path / "letters", tmp_path / "letters" / "letter.txt"):
        with pytest.raises(CheckpointError, match="holds no word vectors, which would replace it"):
            check_vectors_replaceable(path)


def test_the_nearest_words_are_those_of_a_loop(tmp_path: Path) -> None:
    table = save_table(tmp_path / "vectors", [f"w{number}" for number in range(30)], 8)
    rows = table.vectors.double()
    cosines = {
        word: float(rows[4] @ row / rows[4].norm() / row.norm()) for word, row in zip(table.words, rows) if word != "w4"
    }
    expected = sorted(cosines, key=lambda word: -cosines[word])[:5]
    nearest = table.find_nearest("w4", 5)
    assert [word for word, _ in nearest] == expected
    assert [cosine for _, cosine in nearest] == pytest.approx([cosines[word] for word in expected], abs=1e-6)
    assert len(table.find_nearest("w4", 99)) == 29
    with pytest.raises(ValueError, match="'w99' has no vector; give one of the 30 words"):
        table.find_nearest("w99")


@pytest.mark.parametrize("name", [CARD, WORDS, VECTORS])
@pytest.mark.parametrize("damage", ["cut", "change", "remove"])
def test_a_damaged_file_is_named(name: str, damage: str, tmp_path: Path) -> None:
    save_table(tmp_path / "vectors", ["the", "cat"], 4)
    path = tmp_path / "vectors" / name
    content = path.read_bytes()
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else content.replace(b"t", b"d"))
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        load_vectors(tmp_path / "vectors")


@pytest.mark.parametrize(("name", "old", "new"), [(WORDS, b"cat", b"cap"), (VECTORS, b"", b"")])
def test_a_changed_word_or_number_is_found(name: str, old: bytes, new: bytes, tmp_path: Path) -> None:
    """Only the digest can tell: the file is as good as before."""
    save_table(tmp_path / "vectors", ["the", "cat"], 4)
    path = tmp_path / "vectors" / name
    content = path.read_bytes()
    path.write_bytes(content.replace(old, new) if old else content[:-4] + b"\0\0\x80\x3f")  # 1.0
    with pytest.raises(CheckpointError, match=rf"{name} was changed or cut short.*not that of vectors\.json"):
        load_vectors(tmp_path / "vectors")


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a", "a"], torch.ones(2, 3), "'words', each once"),
        (["a"], torch.ones(2, 3), "one vector for each of 1 words"),
        (["a", "b"], torch.tensor([[1.0], [torch.nan]]), "not finite"),
        ([], torch.ones(0, 3), "no numbers"),
    ],
)
def test_files_that_disagree_are_an_error(
    words: list[str], vectors: torch.Tensor, message: str, tmp_path: Path
) -> None:
    """Also where every digest is right."""
    table = save_table(tmp_path / "vectors", ["the"], 3)
    save_vectors(tmp_path / "vectors", table._replace(words=tuple(words), vectors=vectors, counts=()))
    with pytest.raises(CheckpointError, match=message):
        load_vectors(tmp_path / "vectors")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    save_table(tmp_path, ["the"], 3)
    card = json.loads((tmp_path / CARD).read_text(encoding="utf-8"))
    (tmp_path / CARD).write_text(json.dumps(card | {"format": 9}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="has format 9; this version reads format 1"):
        load_vectors(tmp_path)


def test_what_is_no_vectors_says_what_to_do(tmp_path: Path) -> None:
    for path, reason in ((tmp_path, "the folder has no vectors.json"), (tmp_path / "no", "there is no such folder")):
        with pytest.raises(CheckpointError, match=f"{reason}.*mnemic train vectors --data DIR --out"):
            load_vectors(path)


# Text files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("suffix", [".txt", ".vec.gz"])
def test_text_files_are_read_with_and_without_a_header(
    header: bool, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_vector_lines(tmp_path / "vectors.txt", LINES, header=header)
    if suffix.endswith(".gz"):
        path = tmp_path / f"vectors{suffix}"
        path.write_bytes(gzip.compress((tmp_path / "vectors.txt").read_bytes()))
    for chunk_size in (1, 2, 3, 10):
        monkeypatch.setattr(vector_lines, "WORDS_PER_CHUNK", chunk_size)
        chunks = list(iterate_vectors(path))
        assert max(len(chunk.words) for chunk in chunks) == min(chunk_size, 3)
        table = load_vectors(path)
        assert table.words == tuple(LINES)
        assert torch.equal(table.vectors, torch.tensor([*LINES.values()]))


def test_gensim_reads_and_writes_the_same_text(tmp_path: Path) -> None:
    """Its lines end differently from those of word2vec's program, which ends them with a blank."""
    keyed_vectors = pytest.importorskip("gensim").models.KeyedVectors
    words = {word: numbers for word, numbers in LINES.items() if " " not in word}
    theirs = keyed_vectors(vector_size=3)
    theirs.add_vectors([*words], torch.tensor([*words.values()]).numpy())
    theirs.save_word2vec_format(str(tmp_path / "theirs.txt"), binary=False)
    table = load_vectors(tmp_path / "theirs.txt")
    assert set(table.words) == {*words}
    for word, row in zip(table.words, table.vectors):
        assert row.tolist() == pytest.approx(words[word])
    theirs.save_word2vec_format(str(tmp_path / "theirs.bin"), binary=True)
    with pytest.raises(ValueError, match=r"theirs\.bin.*binary=False"):
        load_vectors(tmp_path / "theirs.bin")


def test_blanks_at_the_end_of_lines_are_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"2 2 \r\na 1 2 \r\nb 3 4 \r\n")
    assert load_vectors(tmp_path / "v.txt").vectors.tolist() == [[1, 2], [3, 4]]


def test_of_equal_words_the_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "v.txt").write_text("a 1 2\na 3 4\nb 5 6\na 7 8\n", encoding="utf-8")
    for chunk_size in (1, 2, 10):
        monkeypatch.setattr(vector_lines, "WORDS_PER_CHUNK", chunk_size)
        table = load_vectors(tmp_path / "v.txt")
        assert (table.words, table.vectors.tolist()) == (("a", "b"), [[1, 2], [5, 6]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("a 1 2\nb 1\n", r":2: 1 numbers came, not 2"),
        ("a 1 2\n\nb 1 2\n", r":2: 0 numbers came, not 2"),
        ("a 1 2\nb 1 x\n", r":2: not all of the last 2 fields are numbers"),
        ("a 1 2\nb 1 nan\n", r":2: a number is not finite"),
        ("3 2\na 1 2\nb 3 4\n", "announces 3 words, and has 2; fetch it again"),
        ("1 2\na 1 2\nb 3 4\n", "announces 1 words, and has 2"),
        ("0 2\n", "announces 0 words"),
        ("word\n", r":1: 'word' came"),
        ("The lease ends on 30 June.\n", "not all of the last 5 fields are numbers"),
    ],
)
def test_a_text_file_that_holds_no_vectors_is_named(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=rf"v\.txt.*{message}|v\.txt{message}"):
        load_vectors(tmp_path / "v.txt")
