"""Markdown, HTML and other markup become plain words that know their line and place."""

import gzip
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.text.documents import DocumentError, DocumentPart, DocumentPiece, Source, Title, kind_of, split_passages
from mnemic.text.documents.markup.html import parse_html
from mnemic.text.documents.markup.markdown import parse_markdown
from mnemic.text.documents.registry import READERS

MARKDOWN = """---
title: "My notes"
---
# The **Lease** of `x`

**Landlady:** Margit _Oberholzer_
**Rent:** EUR 1,184.50 per [month](http://x.y/z "t")
- item one. Still it
  wrapped **over
  lines** here
* [[Page|alias]] and snake_case_name, 2 * 3 * 4
1. First. Second.
> A quote that *is*
> here &amp; there

| Name | Amount |
| --- | ---: |
| Anna **B.** | 12 |
| `a|b` |  |

Setext
======
```bash
# no heading. Code.
x | y
```
The end <b>bold</b> <http://a.b/c>[^1].
<!-- hidden
more --> After.

[ref]: http://foo
"""


def count_words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def list_units(parts: list[DocumentPart]) -> list[tuple[int, str]]:
    """List the line and the text of each unit."""
    pieces = [part for part in parts if isinstance(part, DocumentPiece)]
    return [
        (sentence.line, passage.text[sentence.start : sentence.end])
        for passage in split_passages(pieces, count_words)
        for sentence in passage.sentences
    ]


def read_units(path: Path, content: str | bytes) -> tuple[list[tuple[int, str]], list[str]]:
    """Write and read a file; return its units and its titles."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    parts = list(READERS[kind_of(path)](Source(path, path.name)))
    return list_units(parts), [part.text for part in parts if isinstance(part, Title)]


def test_markdown_has_no_marks_and_right_lines() -> None:
    parts = list(parse_markdown(MARKDOWN))
    assert parts[0] == Title("My notes")
    assert list_units(parts) == [
        (2, 'title: "My notes"'), (4, "The Lease of x"), (6, "Landlady: Margit Oberholzer"),
        (7, "Rent: EUR 1,184.50 per month"), (8, "item one."), (8, "Still it\nwrapped over\nlines here"),
        (11, "alias and snake_case_name, 2 * 3 * 4"), (12, "1. First."), (12, "Second."),
        (13, "A quote that is\nhere & there"), (18, "Name: Anna B.; Amount: 12"), (19, "Name: a|b"),
        (21, "Setext"), (24, "# no heading. Code.\nx | y"), (27, "The end bold http://a.b/c."), (29, "After."),
    ]  # fmt: skip


def test_markdown_with_carriage_returns(tmp_path: Path) -> None:
    text = "# A heading\r\n\r\nOne is **here**. Two\r\nwraps over lines.\r\n\r\n- an item\r\n"
    units, titles = read_units(tmp_path / "a.md", text)
    assert units == [(1, "A heading"), (3, "One is here."), (3, "Two\r\nwraps over lines."), (6, "an item")]
    assert titles == ["A heading"]


@settings(deadline=None, max_examples=150)
@given(st.text(st.sampled_from("ab. \n|#-`*_[]()<>!1\\&;~"), max_size=80))
def test_markdown_of_any_sort_is_survived(text: str) -> None:
    for piece in parse_markdown(text):
        if isinstance(piece, DocumentPiece):
            assert piece.cuts is not None
            assert piece.cuts[-1] == len(piece.text)
            for position, character in enumerate(piece.text):
                if character in "ab1":
                    origin = piece.origin_of(position)
                    assert text[origin] == character
                    assert text.count("\n", 0, origin) + 1 == piece.line_of(position)


def test_html_tables_name_their_columns_and_lines_are_right() -> None:
    source = """<h1>Caf&eacute;s</h1>
<p>The <b>best</b>
   one &mdash; here. Another
one</p>
<table><tr><th>Name</th><th>Amount</th></tr>
<tr>
  <td>Anna</td>
  <td>12 &euro;</td></tr>
<tr><td>Bob</td><td></td></tr></table>
<table><tr><th>Capital</th><td>Bern</td></tr></table>
<ul><li>one<li>two <a title="a > b">link</a></ul>
<table><tr><td><h2>Layout</h2><p>Text
here.</p></td></tr></table>
3 < 4 & so
"""
    assert list_units(list(parse_html(source))) == [
        (1, "Cafés"), (2, "The best\none — here."), (3, "Another\none"), (5, "Name\tAmount"),
        (7, "Name: Anna;\nAmount: 12 €"), (9, "Name: Bob"), (10, "Capital:\tBern"), (11, "one"), (11, "two link"),
        (12, "Layout"), (12, "Text\nhere."), (14, "3 < 4 & so"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        "<p>" + "word and more\n" * 75_000,
        "<!--" * 250_000,
        "<!--" * 250_000 + ">",
        '<a "x' * 200_000 + ">",
        "<a b='>" * 150_000,
        "<pre>" * 100_000 + "x",
        "<table><tr><td>x" * 15_000,
        "<![CDATA[" * 110_000 + ">",
        "</" * 500_000 + ">",
        "&" * 500_000,
    ],
    ids=["words", "comments", "comment-end", "quotes", "attributes", "pre", "tables", "cdata", "ends", "entities"],
)
def test_html_is_read_in_linear_time(source: str) -> None:
    started = time.process_time()
    assert list(parse_html(source))
    assert time.process_time() - started < 8  # a megabyte takes about one second; quadratic time, minutes


def test_restructured_text(tmp_path: Path) -> None:
    text = """=====
Title
=====

:Author: Ann Lee

Intro with *em*, **strong**, ``code`` and `a link <http://x.y>`_ here. See
:ref:`other <x>` more::

    code here

.. note:: Remember the milk
   and the bread.

.. toctree::
   :maxdepth: 2

   a

.. a comment

Section two
-----------
- one. Two
  wrapped
"""
    units, titles = read_units(tmp_path / "a.rst", text)
    assert titles == ["Title"]
    assert units == [
        (2, "Title"), (5, "Author: Ann Lee"), (7, "Intro with em, strong, code and a link here."),
        (7, "See\nother more:"), (10, "code here"), (12, "Remember the milk\nand the bread."), (22, "Section two"),
        (24, "one."), (24, "Two\nwrapped"),
    ]  # fmt: skip


def test_org(tmp_path: Path) -> None:
    text = """#+TITLE: My org
#+OPTIONS: toc
* TODO Buy *milk* :shop:
:PROPERTIES:
:ID: 12
:END:
Some /text/ with [[http://x][a link]] and =code=. Path a/b/c.
- item one
| Name | Amount |
|------+--------|
| Anna | 12 |
#+BEGIN_SRC py
x = 1
#+END_SRC
End.
"""
    units, titles = read_units(tmp_path / "a.org", text)
    assert titles == ["My org"]
    assert units == [
        (1, "TITLE: My org"), (3, "TODO Buy milk"), (5, "ID: 12"), (7, "Some text with a link and code."),
        (7, "Path a/b/c."), (8, "item one"), (11, "Name: Anna; Amount: 12"), (13, "x = 1"), (15, "End."),
    ]  # fmt: skip


def test_latex(tmp_path: Path) -> None:
    text = r"""\documentclass{article}
\title{On \emph{Bees}}
\author{Ann L\'ee}
\begin{document}
\maketitle % comment
\section{Intro}\label{a}
The hive has 50 bees~\cite{x}. It weighs $x^2+1$ grams, see \textbf{Table
one} ``here''. M\"uller says so.

\begin{itemize}
\item First thing
\item[Key] Second 100\% thing
\end{itemize}
\begin{tabular}{ll}
Anna & 12 \\
\end{tabular}
Done.
\end{document}
junk
"""
    units, titles = read_units(tmp_path / "a.tex", text)
    assert titles == ["On Bees"]
    assert units == [
        (2, "On Bees"), (3, "Ann Lée"), (6, "Intro"), (7, "The hive has 50 bees."),
        (7, 'It weighs x^2+1 grams, see Table\none "here".'), (8, "Müller says so."), (11, "First thing"),
        (12, "Key:  Second 100% thing"), (15, "Anna; 12"), (17, "Done."),
    ]  # fmt: skip


MANUAL = r""".\" comment
.TH FOO 1 "May 2024" "foo 1.0" "User"
.SH OPTIONS
.TP
.BR \-v ", " \-\-verbose
Print more. The default level is
.I 3
in all cases.
.PP
Text with \fBbold\fR words.
"""


def test_manual_pages(tmp_path: Path) -> None:
    units, titles = read_units(tmp_path / "foo.1", MANUAL)
    assert titles == ["foo(1)"]
    assert units == [
        (3, "OPTIONS"), (5, "-v, --verbose\nPrint more."), (6, "The default level is\n3\nin all cases."),
        (10, "Text with bold words."),
    ]  # fmt: skip
    assert read_units(tmp_path / "foo.1.gz", gzip.compress(MANUAL.encode()))[0] == units
    assert read_units(tmp_path / "server.log.1", "It began.\n")[0] == [(1, "It began.")]
    with pytest.raises(DocumentError, match="cannot be unpacked"):
        read_units(tmp_path / "bad.1.gz", b"no gzip")


def test_subtitles(tmp_path: Path) -> None:
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\n<i>The treasure is</i>\nin the\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\nold cave. Go!\n"
    )
    expected = ["The treasure is\nin the\nold cave.", "Go!"]
    units, _ = read_units(tmp_path / "a.srt", text)
    assert [unit.replace("\n\n\n\n", "\n") for _, unit in units] == expected
    assert [line for line, _ in units] == [3, 8]
    units, _ = read_units(tmp_path / "a.vtt", "WEBVTT\n\nNOTE hidden\n\n00:01.000 --> 00:02.000\nHello there.\n")
    assert units == [(6, "Hello there.")]


def test_drawings(tmp_path: Path) -> None:
    source = (
        "<svg><title>Plan</title><style>x</style>\n<text>The kitchen</text>\n<text>is <tspan>big</tspan></text></svg>"
    )
    assert read_units(tmp_path / "a.svg", source) == ([(2, "The kitchen"), (3, "is big")], ["Plan"])
