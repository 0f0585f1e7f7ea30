"""Reading files of every format; each sentence has its position in the original."""

import os
from pathlib import Path

import pytest
from document_files import MAIL, docx, epub, pdf
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.text.documents import (
    SUFFIXES,
    Anchor,
    DocumentError,
    DocumentPiece,
    Note,
    Passage,
    Source,
    Title,
    find_files,
    kind_of,
    split_passages,
)
from mnemic.text.documents.members import expand_members
from mnemic.text.documents.registry import READERS


def count_words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def read_parts(path: Path) -> tuple[list[Passage], list[str], list[str]]:
    """Read passages, notes and titles of a file, in this process."""
    source = Source(path, path.name)
    parts = list(expand_members(READERS[kind_of(path)](source), source, READERS))
    pieces = [item for item in parts if isinstance(item, DocumentPiece)]
    notes = [item.text for item in parts if isinstance(item, Note)]
    return (list(split_passages(pieces, count_words)), notes, [item.text for item in parts if isinstance(item, Title)])


def sentences(path: Path) -> list[str]:
    return [
        passage.text[sentence.start : sentence.end] for passage in read_parts(path)[0] for sentence in passage.sentences
    ]


def write_file(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def check_offsets(path: Path, source: str) -> None:
    """Check that the original has each sentence at its offsets and line."""
    for passage in read_parts(path)[0]:
        for sentence in passage.sentences:
            assert source[sentence.first : sentence.last] == passage.text[sentence.start : sentence.end]
            assert source.count("\n", 0, sentence.first) + 1 == sentence.line


def test_plain_text(tmp_path: Path) -> None:
    text = "A heading\r\n\r\nOne is here. Two\r\nwraps over lines.\r\n\r\n- an item\r\n"
    path = write_file(tmp_path / "a.txt", text)
    assert sentences(path) == ["A heading", "One is here.", "Two\r\nwraps over lines.", "- an item"]
    check_offsets(path, text)


def test_a_long_text_is_read_in_pieces_and_every_place_is_right(tmp_path: Path) -> None:
    text = "".join(f"Sentence {n} of it is here.\n{chr(10) * (n % 3 == 0)}" for n in range(3000))
    path = write_file(tmp_path / "a.txt", text)
    assert len(list(READERS["text"](Source(path, path.name)))) > 4
    check_offsets(path, text)
    assert len(sentences(path)) == 3000
    line = write_file(tmp_path / "line.txt", "word " * 40_000)
    check_offsets(line, "word " * 40_000)
    assert " ".join(sentences(line)).split() == ["word"] * 40_000


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Grüße aus Köln, ça va.", "utf-8-sig"),
        ("Grüße aus Köln, ça va.", "utf-16"),
        ("Grüße aus Köln, ça va.", "cp1252"),
        ("Plain words without a mark.", "utf-16-le"),
        ("北京是中国的首都。上海在东边。", "gb18030"),
    ],
)
def test_encodings(text: str, encoding: str, tmp_path: Path) -> None:
    assert "".join(sentences(write_file(tmp_path / "a.txt", text, encoding))) == text


def test_html(tmp_path: Path) -> None:
    source = (
        "<html><head><title>The &amp; title</title><style>p {}</style></head><body>"
        "<nav>Home</nav><h1>Caf&eacute;s</h1>\n<p>The <b>best</b>\n   one &mdash; here.</p>"
        "<pre>a  b\n c</pre><table><tr><td>x</td><td>1</td></tr></table><script>no()</script>"
    )
    path = write_file(tmp_path / "a.html", source)
    passages, _, titles = read_parts(path)
    assert titles == ["The & title"]
    assert passages[0].text == "Cafés\n\nThe best\none — here.\n\na  b\n c\n\nx\t1"
    best = next(
        sentence for sentence in passages[0].sentences if passages[0].text[sentence.start :].startswith("The best")
    )
    assert source[best.first : best.last] == "The <b>best</b>\n   one &mdash; here."
    assert best.line == 2
    assert sentences(write_file(tmp_path / "nav.html", "<nav>Only this.")) == ["Only this."]


@settings(deadline=None, max_examples=60)
@given(st.text(st.sampled_from("ab.\n <>&;pbr/\"'—")), st.integers(1, 40))
def test_html_of_any_sort_is_survived(text: str, limit: int) -> None:
    from mnemic.text.documents.markup.html import parse_html

    pieces = [piece for piece in parse_html(text) if isinstance(piece, DocumentPiece)]
    for passage in split_passages(pieces, count_words, limit):
        for sentence in passage.sentences:
            assert 0 <= sentence.first < sentence.last <= len(text)


def test_pdf_has_pages(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", ["The first page.", "The second.", "", "The last."], "A paper")
    passages, notes, titles = read_parts(path)
    assert [(passage.page, passage.text) for passage in passages] == [
        (1, "The first page."),
        (2, "The second."),
        (4, "The last."),
    ]
    assert notes == []
    assert titles == ["A paper"]


def test_word_documents(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", ["A heading", "One. Two.", "\fOn the second page."])
    passages, _, titles = read_parts(path)
    assert [(passage.page, passage.text) for passage in passages] == [
        (1, "A heading\nOne. Two."),
        (2, "On the second page."),
    ]
    assert passages[1].sentences[0].line == 3
    assert titles == ["A report"]


def test_books(tmp_path: Path) -> None:
    passages, notes, titles = read_parts(epub(tmp_path / "a.epub", ["It began.", "", "It ended."]))
    assert [(passage.page, passage.text) for passage in passages] == [(1, "It began."), (3, "It ended.")]
    assert (notes, titles) == (["part 2 has no text"], ["A book"])


def test_mails(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.eml", MAIL)
    passages, notes, titles = read_parts(path)
    assert "The café opens on Friday." in sentences(path)
    assert "Subject: The café" in passages[0].text
    assert [note.partition(":")[0] for note in notes] == ["attachment menu.pdf was not read"]
    assert titles == ["The café"]


def test_records_know_their_place_through_escapes(tmp_path: Path) -> None:
    lines = [
        r'{"id": "x\"", "n": {"a": "}"}, "text": "Say \"hi\" to her.\nThen \u00e9t\u00e9. 😀 ok."}',
        r'{"url": "../../etc/passwd", "other": "Nothing \ud83d\ude00 here."}',
        "",
    ]
    source = "\n".join(lines)
    path = write_file(tmp_path / "a.jsonl", source)
    passages = read_parts(path)[0]
    assert passages[0].text == 'Say "hi" to her.\nThen été. 😀 ok.'
    assert passages[1].text == "url: ../../etc/passwd; other: Nothing 😀 here."
    sentences = passages[0].sentences
    assert source[sentences[0].first : sentences[0].last] == r"Say \"hi\" to her."
    assert source[sentences[1].first : sentences[1].last] == r"Then \u00e9t\u00e9."
    last = passages[1].sentences[-1]
    assert source[last.first : last.last] == r'../../etc/passwd", "other": "Nothing \ud83d\ude00 here.'
    assert last.line == 2
    with pytest.raises(DocumentError, match="line 1"):
        read_parts(write_file(tmp_path / "list.jsonl", '["text"]'))


def test_lines_that_are_no_records_are_notes(tmp_path: Path) -> None:
    bad = "nonsense\n[1]\n" * 4
    source = '{"text": "First."}\n' + bad + '{"text": "Last."}\n{"text": "Cut'
    passages, notes, _ = read_parts(write_file(tmp_path / "some.jsonl", source))
    assert [passage.text for passage in passages] == ["First.", "Last."]
    last = passages[1].sentences[0]
    assert (last.line, source[last.first : last.last]) == (10, "Last.")
    assert [note.split(":")[0] for note in notes] == [
        *(f"line {number} is no JSON object" for number in range(2, 7)),
        "4 more lines are no JSON objects",
    ]
    with pytest.raises(DocumentError, match="line 1 is no JSON object"):
        read_parts(write_file(tmp_path / "none.jsonl", bad))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(st.sampled_from("ab .!\n")), max_size=5), st.integers(1, 9))
def test_passages_keep_every_word_and_the_limit(paragraphs: list[str], limit: int) -> None:
    text = "\n\n".join(paragraphs)
    passages = list(split_passages([DocumentPiece(text, (Anchor(0, 0, 1),))], count_words, limit))
    assert "".join("".join(passage.text.split()) for passage in passages) == "".join(text.split())
    for passage in passages:
        sentences = [passage.text[sentence.start : sentence.end] for sentence in passage.sentences]
        assert sum(count_words(sentences)) <= limit
        assert all(sentences)
        assert passage.text == text[passage.sentences[0].first : passage.sentences[-1].last]


def test_a_sentence_is_cut_only_if_it_is_longer_than_a_passage() -> None:
    text = "One two three. Four five six. " + "long " * 25 + "end."
    passages = list(split_passages([DocumentPiece(text, (Anchor(0, 0, 1),))], count_words, 10))
    assert [len(passage.text.split()) for passage in passages] == [6, 10, 10, 6]
    chinese = list(
        split_passages([DocumentPiece("字" * 500, (Anchor(0, 0, 1),))], lambda texts: list(map(len, texts)), 200)
    )
    assert [len(passage.text) for passage in chinese] == [200, 200, 100]


def test_folders(tmp_path: Path) -> None:
    for name in ("b.md", "a.txt", "old/c.txt", ".git/d.txt", ".hidden.txt", "e.exe", "f.py", "node_modules/x.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    (tmp_path / "out.txt").symlink_to("/etc/hosts")
    (tmp_path / "in.txt").symlink_to(tmp_path / "a.txt")

    def names(**patterns: list[str]) -> list[str]:
        return [str(path.relative_to(tmp_path)) for path in find_files([tmp_path], **patterns).files]

    assert names() == ["a.txt", "b.md", "f.py", "in.txt", "old/c.txt"]
    assert names(exclude=["old/*", "in*", "f*"]) == ["a.txt", "b.md"]
    assert names(only=["*.py"]) == ["f.py"]
    assert names(include=["*.py"]) == ["a.txt", "b.md", "f.py", "in.txt", "old/c.txt"]
    assert find_files([tmp_path / "e.exe"]).files == [tmp_path / "e.exe"]  # given by itself
    with pytest.raises(DocumentError, match="no file or folder"):
        find_files([tmp_path / "none"])
    os.mkfifo(tmp_path / "pipe.txt")
    for path in ("/dev/null", tmp_path / "pipe.txt"):
        with pytest.raises(DocumentError, match="is no regular file"):
            find_files([path])
    assert set(SUFFIXES.values()) == set(READERS)
