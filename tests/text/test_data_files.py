"""Tables, records, settings, calendars, notebooks, archives: values with names and places."""

import gzip
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.text.documents import DocumentError, DocumentPart, DocumentPiece, Note, Source, Title, kind_of
from mnemic.text.documents.data.header import is_header
from mnemic.text.documents.data.json_scan import find_shifts, scan_values
from mnemic.text.documents.members import expand_members
from mnemic.text.documents.piece import Member
from mnemic.text.documents.registry import READERS


def read(path: Path, content: str | bytes) -> list[DocumentPart]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    source = Source(path, path.name)
    return list(expand_members(READERS[kind_of(path)](source), source, READERS))


def find_units(parts: list[DocumentPart], source: str) -> list[tuple[int, str, str]]:
    """Return line, text and source of each unit."""
    units = []
    for piece in parts:
        if isinstance(piece, DocumentPiece):
            assert piece.cuts is not None
            assert piece.cuts[-1] == len(piece.text)
            for start, end in zip((0, *piece.cuts), piece.cuts):
                text = piece.text[start:end].rstrip()
                last = piece.origin_of(start + len(text) - 1) + 1
                units.append((piece.line_of(start), text, source[piece.origin_of(start) : last]))
    return units


def check_value(parts: list[DocumentPart], source: str, value: str) -> None:
    """Check that a value of the text is at its offset and line in the source."""
    (piece,) = (part for part in parts if isinstance(part, DocumentPiece))
    position = piece.text.index(value)
    origin = piece.origin_of(position)
    assert source[origin : origin + len(value)] == value
    assert piece.line_of(position) == source.count("\n", 0, origin) + 1


def test_rows_have_the_names_of_their_columns(tmp_path: Path) -> None:
    source = 'name;said;age\nAnn;"Hello ""you"".\nAnd bye.";4\n\nBob;Nothing. At all.;51\n'
    parts = read(tmp_path / "a.csv", source)
    assert find_units(parts, source) == [
        (1, "name; said; age", "name;said;age"),
        (2, 'name: Ann; said: Hello "you".\nAnd bye.; age: 4', 'Ann;"Hello ""you"".\nAnd bye.";4'),
        (5, "name: Bob; said: Nothing. At all.; age: 51", "Bob;Nothing. At all.;51"),
    ]
    for value in ("Ann", "And bye.", "51"):
        check_value(parts, source, value)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["item", "price"], ["tea", "3.50"], ["jar", "EUR 2"]], True),
        ([["Landlady", "Margit Oberholzer"], ["Rent", "700"]], False),
        ([["name", "email"], ["Ann", "ann@example.org"]], True),
        ([["Item", "2023", "2024"], ["Rent", "1", "2"]], True),
        ([["1", "2", "3"], ["4", "5", "6"]], False),
        ([["a", "a", "b"], ["4", "5", "6"]], False),
        ([["only", "one", "row"]], False),
    ],
)
def test_header_rows(rows: list[list[str]], expected: bool) -> None:
    assert is_header(rows) == expected


def test_a_title_before_the_names(tmp_path: Path) -> None:
    source = "Budget 2026,,\n,,\nItem,Price,Due\nRent,1184.5,2026-03-01\n"
    assert find_units(read(tmp_path / "a.csv", source), source) == [
        (1, "Budget 2026", "Budget 2026"),
        (3, "Item; Price; Due", "Item,Price,Due"),
        (4, "Item: Rent; Price: 1184.5; Due: 2026-03-01", "Rent,1184.5,2026-03-01"),
    ]


def test_pairs_without_names(tmp_path: Path) -> None:
    source = "Landlady,Margit Oberholzer\nRent,700\n"
    assert find_units(read(tmp_path / "a.csv", source), source) == [
        (1, "Landlady: Margit Oberholzer", "Landlady,Margit Oberholzer"),
        (2, "Rent: 700", "Rent,700"),
    ]


def test_a_long_table_is_read_in_pieces(tmp_path: Path) -> None:
    source = "id,word,number\n" + "".join(f"k{n},word {n},{n}\n" for n in range(3000))
    parts = read(tmp_path / "a.csv", source)
    assert len(parts) > 3
    line, text, written = find_units(parts, source)[2500]
    assert (line, text, written) == (2501, "id: k2499; word: word 2499; number: 2499", "k2499,word 2499,2499")


def test_json_values_have_their_paths(tmp_path: Path) -> None:
    source = (
        '{\n "name": "Ann \\"A\\" B",\n "address": {"city": "Oslo", "zip": 150},\n "people": [\n'
        '  {"name": "Bo",\n   "age": 4, "tags": ["x", "y"]},\n  {"name": "Cy"}\n ],\n "list": [1, 2], "none": null}'
    )
    parts = read(tmp_path / "a.json", source)
    assert find_units(parts, source) == [
        (2, 'name: Ann "A" B', r"Ann \"A\" B"),
        (3, "address.city: Oslo", "Oslo"),
        (3, "address.zip: 150", "150"),
        (5, "people.name: Bo;\npeople.age: 4; people.tags: x, y", 'Bo",\n   "age": 4, "tags": ["x", "y'),
        (7, "people.name: Cy", "Cy"),
        (9, "list: 1, 2", "1, 2"),
    ]
    for value in ("Oslo", "Cy", " B"):
        check_value(parts, source, value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=4), children, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, max_examples=100)
@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_the_scan_finds_what_json_has(value: object, ascii_only: bool, indent: int | None) -> None:
    source = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    def walk(item: object, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], str]]:
        if isinstance(item, dict):
            return [pair for key, child in item.items() for pair in walk(child, (*path, key))]
        if isinstance(item, list):
            return [pair for index, child in enumerate(item) for pair in walk(child, (*path, index))]
        return [] if item is None else [(path, item if isinstance(item, str) else json.dumps(item))]

    values = list(scan_values(source, keep_blank=True))
    assert [(found.path, found.value) for found in values] == walk(value, ())
    for found in values:
        for position, origin in find_shifts(source, found):
            if (
                position < len(found.value)
                and ord(found.value[position]) > 31
                and found.value[position] not in '"\\\x7f'
            ):
                assert source[origin] in (found.value[position], "\\")


def test_what_is_no_json_is_text(tmp_path: Path) -> None:
    note, piece = read(tmp_path / "a.json", '// a comment\n{"a": 1}\n')
    assert isinstance(note, Note)
    assert "it was read as plain text" in note.text
    assert isinstance(piece, DocumentPiece)
    deep = read(tmp_path / "b.json", "[" * 100_000)
    assert isinstance(deep[0], Note)


def test_yaml_values_have_their_paths(tmp_path: Path) -> None:
    source = (
        'name: Ann\naddress:\n  city: "Oslo"\n  notes: |\n    one\n    two\npeople:\n  - name: Bo\n    age: 4\n'
        "  - name: Cy\ntags: [a, b]\nbase: &base {k: v}\nother: *base\n---\nsecond: yes\n"
    )
    parts = read(tmp_path / "a.yaml", source)
    assert find_units(parts, source) == [
        (1, "name: Ann", "Ann"),
        (3, "address.city: Oslo", "Oslo"),
        (5, "address.notes: one\ntwo", "one\n    two"),
        (8, "people.name: Bo;\npeople.age: 4", "Bo\n    age: 4"),
        (10, "people.name: Cy", "Cy"),
        (11, "tags: a, b", "a, b"),
        (12, "base.k: v", "v"),
        (15, "second: yes", "yes"),
    ]
    check_value(parts, source, "two")


def test_yaml_that_multiplies_is_read_once(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    parts = read(tmp_path / "bomb.yaml", "\n".join(lines))
    assert [part.text for part in parts if isinstance(part, DocumentPiece)] == ["a0: x, x\n"]
    broken = read(tmp_path / "broken.yaml", "a: [1\nb: 2\n")
    assert isinstance(broken[0], Note)


def test_settings_have_their_sections(tmp_path: Path) -> None:
    source = '# a comment\n[server]\nhost = "db.example"\nport: 5432\n\n[[tool.x]]\nlist = [\n  "a",\n]\nenabled\n'
    for suffix in ("toml", "ini", "conf"):
        assert find_units(read(tmp_path / f"a.{suffix}", source), source) == [
            (1, "a comment", "a comment"),
            (2, "server", "server"),
            (3, "server.host: db.example", 'host = "db.example'),
            (4, "server.port: 5432", "port: 5432"),
            (6, "tool.x", "tool.x"),
            (7, 'tool.x.list: [\n  "a",\n]', 'list = [\n  "a",\n]'),
            (10, "enabled", "enabled"),
        ]


def test_xml_values_have_their_elements(tmp_path: Path) -> None:
    source = (
        '<?xml version="1.0"?>\n<catalog xmlns="u">\n <name>Übooks</name>\n <book id="1">\n  <title>\n   A &amp; B '
        '</title>\n  <price>5</price></book>\n <book id="2"><title>C</title></book></catalog>\n'
    )
    parts = read(tmp_path / "a.xml", source)
    assert [unit[:2] for unit in find_units(parts, source)] == [
        (3, "name: Übooks"),
        (4, "book.id: 1;\n\nbook.title: A & B;\nbook.price: 5"),
        (8, "book.id: 2; book.title: C"),
    ]
    for value in ("Übooks", "5", "C"):
        check_value(parts, source, value)
    note, piece = read(tmp_path / "b.xml", '<!DOCTYPE a [<!ENTITY b "x">]><a>&b;</a>')
    assert isinstance(note, Note)
    assert "declares entities" in note.text
    assert isinstance(piece, DocumentPiece)


def test_calendars(tmp_path: Path) -> None:
    lines = [
        "BEGIN:VCALENDAR", "BEGIN:VEVENT", "UID:1", "DTSTART;TZID=Europe/Berlin:20260305T140000",
        r"SUMMARY:Dentist\, Dr. Lang", " enfeld", "RRULE:FREQ=WEEKLY;BYDAY=MO", 'ATTENDEE;CN="Ann":mailto:a@b.c',
        "BEGIN:VALARM", "DESCRIPTION:no", "END:VALARM", "END:VEVENT", "BEGIN:VTODO", "SUMMARY:Tax", "DUE:20261231",
        "END:VTODO", "END:VCALENDAR", "",
    ]  # fmt: skip
    source = "\r\n".join(lines)
    assert find_units(read(tmp_path / "a.ics", source), source) == [
        (
            4,
            "Start: Thursday, 5 March 2026, 14:00 (Europe/Berlin);\nSummary: Dentist, Dr. Langenfeld;\n\n"
            "Repeats: weekly, byday mo;\nAttendee: Ann <a@b.c>",
            "20260305T140000\r\n" + "\r\n".join(lines[4:8]),
        ),
        (14, "Summary: Tax;\nDue: Thursday, 31 December 2026", "Tax\r\nDUE:20261231"),
    ]
    with pytest.raises(DocumentError, match="no calendar"):
        read(tmp_path / "b.ics", "nothing of the sort")


def test_contacts(tmp_path: Path) -> None:
    source = (
        "BEGIN:VCARD\nVERSION:3.0\nFN:Jo Fel\nitem1.TEL;TYPE=CELL:+39 347 118 2290\n"
        "ADR;TYPE=home:;;Via 1;Rome;;00100;Italy\n"
        "NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Gr=C3=BC=\n=C3=9Fe\nPHOTO:xx\nBDAY:1980-02-03\nEND:VCARD\n"
    )
    parts = read(tmp_path / "a.vcf", source)
    (unit,) = find_units(parts, source)
    assert unit[:2] == (
        3,
        "Name: Jo Fel;\nPhone (cell): +39 347 118 2290;\nAddress (home): Via 1, Rome, 00100, Italy;\nNote: Grüße;\n\n\n"
        "Birthday: Sunday, 3 February 1980",
    )
    check_value(parts, source, "+39 347 118 2290")


def test_notebooks(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# The yield\n", "\n", "Bees gave 37 kg. It was good.\n"]},
        {
            "cell_type": "code",
            "outputs": [{"text": ["42\n"]}, {"data": {"image/png": "iVBOR", "text/plain": ["a table"]}}],
            "source": ["x = 1\n", "\n", "print(x)"],
        },
    ]
    source = json.dumps({"cells": cells, "metadata": {"title": "no"}}, indent=1)
    parts = read(tmp_path / "a.ipynb", source)
    assert parts[0] == Title("The yield")
    units = find_units(parts, source)
    assert [text for _, text, _ in units] == [
        "The yield", "Bees gave 37 kg.", "It was good.", "42", "a table", "x = 1", "print(x)",
    ]  # fmt: skip
    for line, text, written in units:
        assert text in source.split("\n")[line - 1]
        assert text == written
    with pytest.raises(DocumentError, match="no notebook"):
        read(tmp_path / "b.ipynb", "nothing")


def test_logs(tmp_path: Path) -> None:
    source = "2026-01-01 ERROR. Bad.\n  at foo\n  at bar\n2026-01-02 INFO. Done.\n" + "x. Y.\n" * 4000
    parts = read(tmp_path / "a.log", source)
    units = find_units(parts, source)
    assert [unit[:2] for unit in units[:2]] == [
        (1, "2026-01-01 ERROR. Bad.\n  at foo\n  at bar"),
        (4, "2026-01-02 INFO. Done."),
    ]
    assert units[-1] == (4004, "x. Y.", "x. Y.")
    assert len(parts) > 1


def test_archives_are_listed(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("letters/rent.txt", "x" * 2000)
    parts = read(tmp_path / "a.zip", packed.getvalue())
    assert isinstance(parts[0], DocumentPiece)
    assert parts[0].text == "letters/rent.txt\n"
    assert parts[1] == Note("what it holds is listed, not read (1 files); unpack it to remember them")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        info = tarfile.TarInfo("a/b.txt")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"abc"))
    for name in ("a.tar.gz", "a.tgz"):
        parts = read(tmp_path / name, packed.getvalue())
        assert isinstance(parts[0], DocumentPiece)
        assert parts[0].text == "a/b.txt\n"
    for name in ("b.zip", "b.tar", "b.txt.gz"):
        with pytest.raises(DocumentError, match="that can be read"):
            read(tmp_path / name, "nothing of the sort")


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    first, piece, last = read(tmp_path / "notes.txt.gz", gzip.compress(b"Hello there."))
    assert (first, last) == (Member("notes.txt"), Member(""))
    assert isinstance(piece, DocumentPiece)
    assert piece.text == "Hello there."


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, package, message in (
        ("a.yaml", "yaml", "a YAML file; pip install 'mnemic[office]' reads it"),
        ("a.xlsx", "python_calamine", "a spreadsheet; pip install 'mnemic[office]' reads it"),
        ("a.rtf", "striprtf.striprtf", "a rich text; pip install 'mnemic[office]' reads it"),
        ("a.pdf", "pypdfium2", "a PDF; pip install 'mnemic[pdf]' reads it"),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(DocumentError) as error:
            read(tmp_path / name, b"{}")
        assert str(error.value) == message
