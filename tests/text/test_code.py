"""Source code: comments are prose, code stays as it is, by function or block."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.text.documents import DocumentPiece, Source, find_files, split_passages
from mnemic.text.documents.code.languages import PYTHON, SLASH, STYLE_OF_SUFFIX
from mnemic.text.documents.code.source import CodeScanner, read_code

PROGRAM = '''"""Billing of things.

The interval is five minutes.
"""
import os

RATE = 3  # percent


# The tax is 19 percent. It changes
# every year.
def tax(x):
    """Return the tax."""
    y = x * 0.19

    return y
'''
SERVER = """/*
 * The port is 8080. It must
 * be open.
 */
#include <x>

// Start the server.
int main(void) {
  return 0;
}
"""


def read_units(path: Path, text: str) -> list[tuple[int, str]]:
    path.write_text(text, encoding="utf-8")
    pieces = [part for part in read_code(Source(path, path.name)) if isinstance(part, DocumentPiece)]
    return [
        (sentence.line, passage.text[sentence.start : sentence.end])
        for passage in split_passages(pieces, lambda texts: [len(text.split()) for text in texts])
        for sentence in passage.sentences
    ]


def test_comments_are_prose_and_code_is_as_it_is(tmp_path: Path) -> None:
    assert read_units(tmp_path / "a.py", PROGRAM) == [
        (1, "Billing of things."), (3, "The interval is five minutes."), (5, "import os"), (7, "RATE = 3  # percent"),
        (10, "The tax is 19 percent."), (10, "It changes\nevery year."), (12, "def tax(x):"), (13, "Return the tax."),
        (14, "y = x * 0.19"), (16, "return y"),
    ]  # fmt: skip
    assert read_units(tmp_path / "a.c", SERVER) == [
        (2, "The port is 8080."), (2, "It must\nbe open."), (5, "#include <x>"), (7, "Start the server."),
        (8, "int main(void) {\n  return 0;\n}"),
    ]  # fmt: skip
    assert read_units(tmp_path / "a.sql", "-- The users.\nCREATE TABLE users (id int);\n") == [
        (1, "The users."), (2, "CREATE TABLE users (id int);"),
    ]  # fmt: skip


def test_a_long_function_is_a_piece_of_its_own(tmp_path: Path) -> None:
    functions = [f"def name_{number}():\n" + "    call(1)\n" * 40 for number in range(3)]
    (tmp_path / "a.py").write_text("\n\n".join(functions), encoding="utf-8")
    pieces = list(read_code(Source(tmp_path / "a.py", "a.py")))
    assert [piece.text.split("(")[0] for piece in pieces if isinstance(piece, DocumentPiece)] == [
        "def name_0", "def name_1", "def name_2",
    ]  # fmt: skip


@settings(deadline=None, max_examples=100)
@given(st.text(st.sampled_from("ab.\n #/*\"'"), max_size=80), st.sampled_from([PYTHON, SLASH]))
def test_code_of_any_sort_is_survived(text: str, style: object) -> None:
    scanner = CodeScanner(text, style)  # type: ignore[arg-type]
    scanner.scan()
    for piece in scanner.make_pieces():
        for position, character in enumerate(piece.text):
            if character in "ab":
                origin = piece.origin_of(position)
                assert text[origin] == character
                assert text.count("\n", 0, origin) + 1 == piece.line_of(position)


def test_source_files_of_a_folder_are_read(tmp_path: Path) -> None:
    for suffix in STYLE_OF_SUFFIX:
        (tmp_path / f"a{suffix}").write_text("x", encoding="utf-8")
    (tmp_path / "Makefile").write_text("x", encoding="utf-8")
    assert len(find_files([tmp_path]).files) == len(STYLE_OF_SUFFIX) + 1
