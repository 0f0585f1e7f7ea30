"""PDF pages: words, columns, units, hyphens, passwords, scans."""

import time
from pathlib import Path

import pytest
from document_files import OWNER_LOCKED, PICTURE, USER_LOCKED, pdf, pdf_pages

from mnemic.text.documents import DocumentError, DocumentPiece, Note, Source, Title
from mnemic.text.documents.office import pdf as pdf_reader
from mnemic.text.documents.office.fragment import Fragment
from mnemic.text.documents.office.page_lines import Glyph, build_fragments, build_lines
from mnemic.text.documents.office.page_text import WordSet
from mnemic.text.documents.office.pdf import read_pdf


def read_units(path: Path, password: str | None = None) -> list[str]:
    pieces = [part for part in read_pdf(Source(path, path.name, password)) if isinstance(part, DocumentPiece)]
    units = []
    for piece in pieces:
        assert piece.cuts is not None
        assert piece.cuts[-1] == len(piece.text)
        units += [piece.text[start:end].strip() for start, end in zip((0, *piece.cuts), piece.cuts)]
    return units


def show(text: str, x: float, y: float, size: int = 10) -> str:
    return f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET"


def test_gaps_between_glyphs_are_spaces(tmp_path: Path) -> None:
    """As LaTeX and groff write: [(code)-300(name)], without any space."""
    stream = "BT /F1 10 Tf 72 700 Td [(They)-278(are)-250(just)-333(co)20(de)-300(names.)] TJ ET"
    assert read_units(pdf_pages(tmp_path / "a.pdf", [stream])) == ["They are just code names."]


def test_a_space_that_the_page_moves_back_over_is_none() -> None:
    """The boxes are those of "invoked" on page 12 of bash.pdf."""
    edges = [("i", 266.5, 269.3), ("n", 269.3, 274.3), ("v", 273.9, 278.9), (" ", 278.5, 281.0), ("o", 278.7, 283.7)]
    glyphs = [Glyph(char, start, 500.0, end, 510.0) for char, start, end in edges]
    assert [fragment.text for fragment in build_fragments(glyphs)] == ["invo"]
    far = [*glyphs[:-1], Glyph("o", 281.0, 500.0, 286.0, 510.0)]
    assert [fragment.text for fragment in build_fragments(far)] == ["inv o"]


LEFT = [
    "Bees fly in spring when the",
    "first willows are in flower and",
    "days are warm enough for them",
    "to leave the hive at noon. Each",
    "colony sends out its scouts and",
    "waits for their return at dusk.",
]
RIGHT = [
    "Honey is taken in June from the",
    "upper boxes, which are then put",
    "back so that they can be filled",
    "again with what the lime trees",
    "give. In a good year there are",
    "two harvests of twenty pounds.",
]


@pytest.mark.parametrize("is_row_by_row", [False, True])
def test_columns_are_read_one_after_the_other(tmp_path: Path, is_row_by_row: bool) -> None:
    left = [show(line, 72, 640 - 12 * number) for number, line in enumerate(LEFT)]
    right = [show(line, 320, 640 - 12 * number) for number, line in enumerate(RIGHT)]
    body = [cell for row in zip(left, right) for cell in row] if is_row_by_row else left + right
    title = show("A year with bees, from the first flight to the last harvest of the summer", 72, 700, 14)
    units = read_units(pdf_pages(tmp_path / "a.pdf", ["\n".join([title, *body, show("Page 7", 290, 40)])]))
    assert [" ".join(unit.split()) for unit in units] == [
        "A year with bees, from the first flight to the last harvest of the summer",
        "Bees fly in spring when the first willows are in flower and days are warm enough "
        "for them to leave the hive at noon.",
        "Each colony sends out its scouts and waits for their return at dusk.",
        "Honey is taken in June from the upper boxes, which are then put back so that they can be "
        "filled again with what the lime trees give.",
        "In a good year there are two harvests of twenty pounds.",
        "Page 7",
    ]


def test_table_rows_stay_rows(tmp_path: Path) -> None:
    rows = [("Rent of the flat in Vienna", "1,184.50"), ("Heating and water", "210.00"), ("Total", "1,394.50")] * 3
    stream = "\n".join(show(cell, x, 700 - 14 * n) for n, row in enumerate(rows) for cell, x in zip(row, (72, 400)))
    assert read_units(pdf_pages(tmp_path / "a.pdf", [stream])) == ["\t".join(row) for row in rows]


def write_table(path: Path, rows: list[list[tuple[str, int]]], step: int = 14) -> Path:
    cells = [show(text, x, 700 - step * number) for number, row in enumerate(rows) for text, x in row]
    return pdf_pages(path, ["\n".join([show("Members of the club", 72, 730), *cells, show("The end.", 72, 300)])])


@pytest.mark.parametrize("step", [14, 24])
def test_cells_have_the_names_of_their_columns(tmp_path: Path, step: int) -> None:
    """Also where a cell is empty, and where rows are far apart."""
    rows = [
        [("Name", 72), ("Town", 220), ("Dues paid", 400)],
        [("Anna Berg", 72), ("Linz. North", 220), ("40.00", 414)],
        [("Carl Dahl", 72), ("15.50", 414)],
        [("Eva Falk", 72), ("Graz", 220), ("0.00", 420)],
    ]
    assert read_units(write_table(tmp_path / "a.pdf", rows, step)) == [
        "Members of the club",
        "Name; Town; Dues paid",
        "Name: Anna Berg; Town: Linz. North; Dues paid: 40.00",
        "Name: Carl Dahl; Dues paid: 15.50",
        "Name: Eva Falk; Town: Graz; Dues paid: 0.00",
        "The end.",
    ]


def test_a_table_ends_where_cells_stand_elsewhere(tmp_path: Path) -> None:
    header = [("Name", 72), ("Town", 220), ("Dues", 400)]
    rows = [[("Anna", 72), ("Linz", 220), ("40", 400)], [("Carl", 72), ("Graz", 220), ("15", 400)]]
    prose = [("and this is a line with some words", 100), ("of a note beside it", 420)]
    units = read_units(write_table(tmp_path / "a.pdf", [header, *rows, prose]))
    assert units[2:5] == [
        "Name: Anna; Town: Linz; Dues: 40",
        "Name: Carl; Town: Graz; Dues: 15",
        "and this is a line with some words\tof a note beside it",
    ]


def test_many_cells_take_linear_time() -> None:
    """A page of short rows of which none is a header."""
    rows = [
        Fragment(str(number), x, 1e6 - 12.0 * number, x + 9.0, 1e6 - 12.0 * number + 10, 9.0, number)
        for number in range(20_000)
        for x in (10.0, 100.0, 200.0)
    ]
    started = time.process_time()
    assert len(build_lines(rows, 300.0)) == 20_000
    assert time.process_time() - started < 10


def test_a_line_ends_a_unit_if_the_next_word_would_have_fit(tmp_path: Path) -> None:
    lines = [
        "Policy of the household insurance",
        "Premium: 214 euros",
        "Deductible: 150 euros",
        "Everything in the flat is insured against fire, water and theft up to the sum that the",
        "policy names. Bicycles in the cellar are included.",
    ]
    path = pdf_pages(tmp_path / "a.pdf", ["\n".join(show(line, 72, 700 - 12 * n) for n, line in enumerate(lines))])
    assert [" ".join(unit.split()) for unit in read_units(path)] == [
        *lines[:3],
        "Everything in the flat is insured against fire, water and theft up to the sum that the policy names.",
        "Bicycles in the cellar are included.",
    ]
    (piece,) = (part for part in read_pdf(Source(path, path.name)) if isinstance(part, DocumentPiece))
    assert [piece.line_of(piece.text.index(word)) for word in ("Policy", "150", "Everything", "theft", "Bicycles")] == [
        1,
        3,
        4,
        4,
        5,
    ]


def test_hyphens_go_where_that_is_safe(tmp_path: Path) -> None:
    lines = [
        "The com-", "mand reads the command-line and every command that there is in a non-",
        "empty file of a self-made program; Mr. Meyer-", "Lansky wrote the pre- and post-", "conditions of it.",
    ]  # fmt: skip
    path = pdf_pages(tmp_path / "a.pdf", ["\n".join(show(line, 72, 700 - 12 * n) for n, line in enumerate(lines))])
    text = " ".join(" ".join(read_units(path)).split())
    assert text == (
        "The command reads the command-line and every command that there is in a non-empty file of a "
        "self-made program; Mr. Meyer-Lansky wrote the pre- and post-conditions of it."
    )
    words = WordSet()
    words.add_text("the format of a report, a well-known one")
    assert not words.keeps_hyphen("for", "mat")
    assert words.keeps_hyphen("well", "known")


def test_locked_files(tmp_path: Path) -> None:
    (tmp_path / "owner.pdf").write_bytes(OWNER_LOCKED)
    (tmp_path / "user.pdf").write_bytes(USER_LOCKED)
    assert read_units(tmp_path / "owner.pdf") == ["The account has 42 euros."]
    assert read_units(tmp_path / "user.pdf", "sesame") == ["The account has 42 euros."]
    with pytest.raises(DocumentError, match="locked with a password; remember it with --password"):
        read_units(tmp_path / "user.pdf")
    with pytest.raises(DocumentError, match="the password is wrong"):
        read_units(tmp_path / "user.pdf", "open")


def test_blank_pages_are_no_remark_but_pictures_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_reader, "has_ocr", lambda: False)
    text = show("Here.", 72, 700)
    one = list(read_pdf(Source(pdf_pages(tmp_path / "a.pdf", [text, "", PICTURE, "0 0 m 9 9 l S"]), "a.pdf")))
    assert [part for part in one if not isinstance(part, DocumentPiece)] == [
        Title("A title"),
        Note("page 3 is a picture; pip install 'mnemic[ocr]' reads it"),
    ]
    many = list(read_pdf(Source(pdf_pages(tmp_path / "b.pdf", [PICTURE] * 12), "b.pdf")))
    assert many[1:] == [
        Note("12 pages are pictures (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …); pip install 'mnemic[ocr]' reads it")
    ]


def test_a_descriptor_is_read_without_its_path(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", ["Here it is."])
    with path.open("rb") as file:
        path.unlink()
        assert read_units(Path(f"/proc/self/fd/{file.fileno()}")) == ["Here it is."]
