"""Corpora from files: every document once, from any position, and errors with lines."""

import gzip
import json
import lzma
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.data.corpora.read_documents import Corpus, CorpusError
from mnemic.data.corpora.split import filter_split, split_of
from mnemic.recipe import ConfigError

PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
TEXTS = ["One. Two.", "Drei\nvier", "五。六。", "  seven ", "eight\u2028nine", "ten\x0beleven 😀"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


def jsonl(texts: list[str], field: str = "text") -> bytes:
    rows = [json.dumps({"id": 1, field: text}, ensure_ascii=False) for text in texts]
    return "\n".join(rows).encode() + b"\n"


def write_file(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(PACKERS[path.suffix if path.suffix in PACKERS else ""](content))
    return path


def texts_of(corpus: Corpus) -> list[str]:
    return list(corpus.read())


@pytest.mark.parametrize("packed", PACKERS)
def test_jsonl_is_one_document_a_line(tmp_path: Path, packed: str) -> None:
    path = write_file(tmp_path, f"a.jsonl{packed}", jsonl(TEXTS))
    assert texts_of(Corpus.from_paths([path])) == TEXTS


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("end", ["", "\n", "\n\n \n"])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_txt_is_parted_by_blank_lines(tmp_path: Path, packed: str, end: str, line: str) -> None:
    text = "\ufeff\nOne.\nTwo.\n\n\n \t\n三\n\nFour." + end
    path = write_file(tmp_path, f"a.txt{packed}", text.replace("\n", line).encode())
    assert texts_of(Corpus.from_paths([path])) == ["One.\nTwo.", "三", "Four."]


def test_a_txt_without_blank_lines_is_one_document(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.txt", b"one\ntwo\nthree\n")
    assert texts_of(Corpus.from_paths([path])) == ["one\ntwo\nthree"]


def test_folders_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.jsonl", "a/y.txt.gz", "c.jsonl.xz"):
        write_file(tmp_path, name, jsonl([name]) if ".jsonl" in name else name.encode())
    for name in ("notes.md", ".hidden.txt", ".git/x.txt"):
        write_file(tmp_path, name, b"not this")
    assert texts_of(Corpus.from_paths([tmp_path])) == ["a/y.txt.gz", "a/z.jsonl", "b.txt", "c.jsonl.xz"]
    given_order = [tmp_path / "c.jsonl.xz", tmp_path / "a"]
    assert texts_of(Corpus.from_paths(given_order)) == ["c.jsonl.xz", "a/y.txt.gz", "a/z.jsonl"]


@given(
    st.lists(st.tuples(st.sampled_from(["jsonl", "txt"]), st.lists(TEXT, max_size=4)), min_size=1),
    st.sampled_from(sorted(PACKERS)),
)
@settings(max_examples=40, deadline=None)
def test_all_texts_of_all_files_are_read_in_order(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[str, list[str]]], packed: str
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    for number, (form, texts) in enumerate(parts):
        content = jsonl(texts) if form == "jsonl" else "\n\n".join(texts).encode()
        write_file(folder, f"{number:03}.{form}{packed}", content)
    corpus = Corpus.from_paths([folder])
    if all(form == "jsonl" for form, _ in parts):
        assert texts_of(corpus) == [text for _, texts in parts for text in texts]
    files = [folder / f"{number:03}.{form}{packed}" for number, (form, _) in enumerate(parts)]
    assert texts_of(corpus) == [text for path in files for text in texts_of(Corpus.from_paths([path]))]


def test_reading_is_lazy(tmp_path: Path) -> None:
    """An error in a later line or file is raised only when reading gets there."""
    first = write_file(tmp_path, "a.jsonl", jsonl(["one", "two"]) + b"{broken\n")
    write_file(tmp_path, "b.jsonl", b"\xff")
    assert list(islice(Corpus.from_paths([tmp_path]).read(), 2)) == ["one", "two"]
    with pytest.raises(CorpusError, match=rf"{first}:3: no JSON: .*; expected one object a line"):
        texts_of(Corpus.from_paths([first]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"text": "a"}\n[1]', r"a.jsonl:2: list came; expected an object whose 'text' is"),
        (b'{"body": "a", "id": 1}', r"a.jsonl:1: \['body', 'id'\] came; .*field=…"),
        (b'{"text": ["a"]}', r"a.jsonl:1: \['text'\] came; expected .* is a string"),
        (b'\n\n{"text": "\xff"}', r"a.jsonl:3: no utf-8: invalid start byte at byte 10"),
        (b'{"text": "\\ud800"}', r"a.jsonl:1: the text holds half a surrogate pair"),
        (b"[" * 100_000, r"a.jsonl:1: no JSON"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = write_file(tmp_path, "a.jsonl", content)
    with pytest.raises(CorpusError, match=message):
        texts_of(Corpus.from_paths([path]))


def test_text_that_is_no_utf8_is_an_error(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.txt", b"one\n\n\x80\n")
    with pytest.raises(CorpusError, match=r"a.txt:3: no utf-8"):
        texts_of(Corpus.from_paths([path]))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.xz"])
def test_a_damaged_packed_file_is_an_error(tmp_path: Path, name: str) -> None:
    path = write_file(tmp_path, name, jsonl([str(number) * 99 for number in range(2000)]))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CorpusError, match=rf"{name} cannot be read after line \d+: "):
        texts_of(Corpus.from_paths([path]))
    path.write_bytes(b"no such format")
    with pytest.raises(CorpusError, match="cannot be read after line 0"):
        texts_of(Corpus.from_paths([path]))


def test_what_is_no_corpus_is_an_error(tmp_path: Path) -> None:
    page = write_file(tmp_path, "a.md", b"text")
    for paths, message in [
        ([tmp_path / "none"], "no file or folder"),
        ([page], r"a.md is of no known form; expected a name that ends in .jsonl or .txt"),
        ([tmp_path], "no corpus in the folder"),
        ([], "at least one file"),
    ]:
        with pytest.raises(CorpusError, match=message):
            Corpus.from_paths(paths)
    text = write_file(tmp_path, "a.txt", b"text")
    with pytest.raises(CorpusError, match="named twice"):
        Corpus.from_paths([text, tmp_path])
    with pytest.raises(ValueError, match="one path"):
        Corpus.from_paths(str(text))


def test_a_document_beyond_the_bound_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemic.data.corpora.read_documents.MAX_DOCUMENT_BYTES", 50)
    long_line = write_file(tmp_path, "a.jsonl", jsonl(["a", "b" * 60]))
    with pytest.raises(CorpusError, match=r"a.jsonl:2: the document is longer than"):
        texts_of(Corpus.from_paths([long_line]))
    many_lines = write_file(tmp_path, "b.txt", b"short\n\n" + b"line\n" * 20)
    with pytest.raises(CorpusError, match=r"b.txt:3: the document is longer than .* blank lines"):
        texts_of(Corpus.from_paths([many_lines]))


def test_other_files_have_another_fingerprint(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.txt", b"one\n\ntwo")
    corpus = Corpus.from_paths([path])
    before = corpus.fingerprint
    assert Corpus.from_paths([path]).fingerprint == before
    write_file(tmp_path, "a.txt", b"one\n\ntwo more")
    assert corpus.fingerprint != before


def test_the_held_out_part_depends_on_the_text_alone(tmp_path: Path) -> None:
    texts = [f"document {number}" for number in range(20_000)]
    splits = [split_of(text, validation=0.05, test=0.1) for text in texts]
    for split, share in [("validation", 0.05), ("test", 0.1)]:
        deviation = (share * (1 - share) * len(texts)) ** 0.5
        assert abs(splits.count(split) - share * len(texts)) < 4 * deviation
    for text, split in zip(texts[:2000], splits):
        wider = split_of(text, validation=0.2, test=0.1)
        assert wider == split or (split, wider) == ("train", "validation")
    assert all(split_of(text, validation=0, test=0) == "train" for text in texts)
    corpus = Corpus.from_paths([write_file(tmp_path, "a.jsonl", jsonl(texts[:500]))])
    sides = [list(filter_split(corpus.read(), p)) for p in ("train", "validation", "test")]
    assert sorted(text for side in sides for text in side) == sorted(texts[:500])
    assert sides[1]
    with pytest.raises(ConfigError, match=r"less than 1 together, not 0\.9 and 0\.1"):
        split_of("text", validation=0.9, test=0.1)


def test_real_files_are_read() -> None:
    folder = Path(__file__).parents[3] / "shared" / "data" / "enwiki"
    if not folder.is_dir():
        pytest.skip("no ../shared/data/enwiki here")
    corpus = Corpus.from_paths([folder / "valid.jsonl.xz"])
    first = list(islice(corpus.read(), 5))
    assert all(len(text) > 6000 for text in first)
