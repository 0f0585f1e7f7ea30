"""Every kind of file: what is read of it; each sentence knows its place in the original."""

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
    Title,
    find_files,
    kind_of,
    split_passages,
)
from mnemic.text.documents.registry import READERS


def count_words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def parts(path: Path) -> tuple[list[Passage], list[str], list[str]]:
    """Passages, notes and titles of a file, read in this process."""
    found = list(READERS[kind_of(path)](path))
    pieces = [part for part in found if isinstance(part, DocumentPiece)]
    notes = [part.text for part in found if isinstance(part, Note)]
    return (list(split_passages(pieces, count_words)), notes, [t.text for t in found if isinstance(t, Title)])


def sentences(path: Path) -> list[str]:
    return [one.text[s.start : s.end] for one in parts(path)[0] for s in one.sentences]


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def check_places(path: Path, source: str) -> None:
    """Each sentence stands in the original where it says it does."""
    for passage in parts(path)[0]:
        for one in passage.sentences:
            assert source[one.first : one.last] == passage.text[one.start : one.end]
            assert source.count("\n", 0, one.first) + 1 == one.line


def test_plain_text_and_markdown(tmp_path: Path) -> None:
    text = "# A heading\r\n\r\nOne is here. Two\r\nwraps over lines.\r\n\r\n- an item\r\n"
    path = written(tmp_path / "a.md", text)
    assert sentences(path) == ["# A heading", "One is here.", "Two\r\nwraps over lines.", "- an item"]
    assert parts(path)[2] == ["A heading"]
    check_places(path, text)


def test_markdown_has_units_that_are_no_sentences(tmp_path: Path) -> None:
    text = (
        "## Head one\nProse begins. It goes\non here.\n- item one. Still it\n  wrapped\n"
        "- item two\n| a. B | c |\n| --- | --- |\n| d. E | f |\nAfter it.\n"
        "```bash\n# no heading. Code.\nx | y\n```\nThe end.\n"
    )
    path = written(tmp_path / "a.md", text)
    assert sentences(path) == [
        "## Head one", "Prose begins.", "It goes\non here.", "- item one.", "Still it\n  wrapped",
        "- item two", "| a. B | c |", "| --- | --- |", "| d. E | f |", "After it.",
        "```bash\n# no heading. Code.\nx | y\n```", "The end.",
    ]  # fmt: skip
    check_places(path, text)


@settings(deadline=None, max_examples=60)
@given(st.text(st.sampled_from("ab. \n|#-`1"), max_size=60))
def test_blocks_of_markdown_tile_it(text: str) -> None:
    from mnemic.text.documents.markup.markdown import find_unit_ends, split_blocks

    assert "".join(text[span.start : span.end] for span, _ in split_blocks(text)) == text
    cuts = list(find_unit_ends(text))
    assert cuts == sorted(cuts)
    assert not text or cuts[-1] == len(text)


def test_a_long_text_is_read_in_pieces_and_every_place_is_right(tmp_path: Path) -> None:
    text = "".join(f"Sentence {n} of it is here.\n{chr(10) * (n % 3 == 0)}" for n in range(3000))
    path = written(tmp_path / "a.txt", text)
    assert len(list(READERS["text"](path))) > 4
    check_places(path, text)
    assert len(sentences(path)) == 3000
    line = written(tmp_path / "line.txt", "word " * 40_000)
    check_places(line, "word " * 40_000)
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
    assert "".join(sentences(written(tmp_path / "a.txt", text, encoding))) == text


def test_html(tmp_path: Path) -> None:
    source = (
        "<html><head><title>The &amp; title</title><style>p {}</style></head><body>"
        "<nav>Home</nav><h1>Caf&eacute;s</h1>\n<p>The <b>best</b>\n   one &mdash; here.</p>"
        "<pre>a  b\n c</pre><table><tr><td>x</td><td>1</td></tr></table><script>no()</script>"
    )
    path = written(tmp_path / "a.html", source)
    found, _, titles = parts(path)
    assert titles == ["The & title"]
    assert found[0].text == "Cafés\n\nThe best one — here.\n\na  b\n c\n\nx\t1"
    best = next(s for s in found[0].sentences if found[0].text[s.start :].startswith("The best"))
    assert source[best.first : best.last] == "The <b>best</b>\n   one &mdash; here."
    assert best.line == 2
    assert sentences(written(tmp_path / "nav.html", "<nav>Only this.")) == ["Only this."]


@settings(deadline=None, max_examples=60)
@given(st.text(st.sampled_from("ab.\n <>&;pbr/\"'—")), st.integers(1, 40))
def test_html_of_any_sort_is_survived(text: str, limit: int) -> None:
    from mnemic.text.documents.markup.html import parse_html

    pieces = [part for part in parse_html(text) if isinstance(part, DocumentPiece)]
    for passage in split_passages(pieces, count_words, limit):
        for one in passage.sentences:
            assert 0 <= one.first < one.last <= len(text)


def test_pdf_tells_pages_and_scans(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", ["The first page.", "The second.", "", "The last."], "A paper")
    found, notes, titles = parts(path)
    assert [(one.page, one.text) for one in found] == [(1, "The first page."), (2, "The second."), (4, "The last.")]
    assert notes == ["page 3 has no text layer"]
    assert titles == ["A paper"]


def test_word_documents(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", ["A heading", "One. Two.", "\fOn the second page."])
    found, _, titles = parts(path)
    assert [(one.page, one.text) for one in found] == [(1, "A heading\nOne. Two."), (2, "On the second page.")]
    assert found[1].sentences[0].line == 3
    assert titles == ["A report"]


def test_books(tmp_path: Path) -> None:
    found, notes, titles = parts(epub(tmp_path / "a.epub", ["It began.", "", "It ended."]))
    assert [(one.page, one.text) for one in found] == [(1, "It began."), (3, "It ended.")]
    assert (notes, titles) == (["part 2 has no text"], ["A book"])


def test_mails(tmp_path: Path) -> None:
    path = written(tmp_path / "a.eml", MAIL)
    found, notes, titles = parts(path)
    assert "The café opens on Friday." in sentences(path)
    assert "Subject: The café" in found[0].text
    assert notes == ["attachment menu.pdf was not read"]
    assert titles == ["The café"]


def test_tables(tmp_path: Path) -> None:
    text = 'name;said\nAnn;"Hello.\nAnd bye."\nBob;Nothing. At all.\n'
    path = written(tmp_path / "a.csv", text)
    assert sentences(path) == ["name;said", 'Ann;"Hello.\nAnd bye."', "Bob;Nothing. At all."]
    check_places(path, text)


def test_records_know_their_place_through_escapes(tmp_path: Path) -> None:
    lines = [
        r'{"id": "x\"", "n": {"a": "}"}, "text": "Say \"hi\" to her.\nThen \u00e9t\u00e9. 😀 ok."}',
        r'{"url": "../../etc/passwd", "other": "Nothing \ud83d\ude00 here."}',
        "",
    ]
    source = "\n".join(lines)
    path = written(tmp_path / "a.jsonl", source)
    found = parts(path)[0]
    assert found[0].text == 'Say "hi" to her.\nThen été. 😀 ok.'
    assert found[1].text == "../../etc/passwd\n\nNothing 😀 here."
    one = found[0].sentences
    assert source[one[0].first : one[0].last] == r"Say \"hi\" to her."
    assert source[one[1].first : one[1].last] == r"Then \u00e9t\u00e9."
    last = found[1].sentences[-1]
    assert source[last.first : last.last] == r"Nothing \ud83d\ude00 here."
    assert last.line == 2
    with pytest.raises(DocumentError, match="line 1"):
        parts(written(tmp_path / "list.jsonl", '["text"]'))


def test_lines_that_are_no_records_are_notes(tmp_path: Path) -> None:
    bad = "nonsense\n[1]\n" * 4
    source = '{"text": "First."}\n' + bad + '{"text": "Last."}\n{"text": "Cut'
    found, notes, _ = parts(written(tmp_path / "some.jsonl", source))
    assert [one.text for one in found] == ["First.", "Last."]
    last = found[1].sentences[0]
    assert (last.line, source[last.first : last.last]) == (10, "Last.")
    assert [note.split(":")[0] for note in notes] == [
        *(f"line {number} is no JSON object" for number in range(2, 7)),
        "4 more lines are no JSON objects",
    ]
    with pytest.raises(DocumentError, match="line 1 is no JSON object"):
        parts(written(tmp_path / "none.jsonl", bad))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(st.sampled_from("ab .!\n")), max_size=5), st.integers(1, 9))
def test_passages_keep_every_word_and_the_limit(paragraphs: list[str], limit: int) -> None:
    text = "\n\n".join(paragraphs)
    found = list(split_passages([DocumentPiece(text, (Anchor(0, 0, 1),))], count_words, limit))
    assert "".join("".join(one.text.split()) for one in found) == "".join(text.split())
    for one in found:
        inside = [one.text[s.start : s.end] for s in one.sentences]
        assert sum(count_words(inside)) <= limit
        assert all(inside)
        assert one.text == text[one.sentences[0].first : one.sentences[-1].last]


def test_a_sentence_is_cut_only_if_it_is_longer_than_a_passage() -> None:
    text = "One two three. Four five six. " + "long " * 25 + "end."
    found = list(split_passages([DocumentPiece(text, (Anchor(0, 0, 1),))], count_words, 10))
    assert [len(one.text.split()) for one in found] == [6, 10, 10, 6]
    chinese = list(split_passages([DocumentPiece("字" * 500, (Anchor(0, 0, 1),))], lambda t: list(map(len, t)), 200))
    assert [len(one.text) for one in chinese] == [200, 200, 100]


def test_folders(tmp_path: Path) -> None:
    for name in ("b.md", "a.txt", "old/c.txt", ".git/d.txt", ".hidden.txt", "e.exe", "f.py", "node_modules/x.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    (tmp_path / "out.txt").symlink_to("/etc/hosts")
    (tmp_path / "in.txt").symlink_to(tmp_path / "a.txt")

    def names(**how: list[str]) -> list[str]:
        return [str(path.relative_to(tmp_path)) for path in find_files([tmp_path], **how).files]

    assert names() == ["a.txt", "b.md", "in.txt", "old/c.txt"]
    assert names(exclude=["old/*", "in*"]) == ["a.txt", "b.md"]
    assert names(include=["*.py"]) == ["f.py"]
    assert find_files([tmp_path / "e.exe"]).files == [tmp_path / "e.exe"]  # given by itself
    with pytest.raises(DocumentError, match="no file or folder"):
        find_files([tmp_path / "none"])
    os.mkfifo(tmp_path / "pipe.txt")
    for path in ("/dev/null", tmp_path / "pipe.txt"):
        with pytest.raises(DocumentError, match="is no regular file"):
            find_files([path])
    assert set(SUFFIXES.values()) == set(READERS)
