"""Office files: paragraphs, headings, tables with names, slides, sheets, old files."""

import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from document_files import WORD, archive, workbook

import mnemic
from mnemic.text.documents import DocumentError, DocumentParser, DocumentPiece, Source, Title, kind_of
from mnemic.text.documents.office import legacy
from mnemic.text.documents.registry import READERS
from mnemic.text.documents.seccomp import AUDIT_NAMES

Unit = tuple[int | None, int, str]  # page, line, text


def read(path: Path) -> tuple[list[Unit], list[object]]:
    """Return the units of a file, and its other parts."""
    units: list[Unit] = []
    others: list[object] = []
    for part in READERS[kind_of(path)](Source(path, path.name)):
        if not isinstance(part, DocumentPiece):
            others.append(part)
            continue
        assert part.cuts is not None
        assert part.cuts[-1] == len(part.text)
        for start, end in zip((0, *part.cuts), part.cuts):
            units.append((part.page, part.line_of(start), part.text[start:end].rstrip()))
    return units, others


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/><w:tabs><w:tab w:pos="9"/></w:tabs></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def table(rows: list[list[str]]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


ROWS = [["Item", "Price", "Shop"], ["Tea", "3.50", "Corner"], ["Jar", "", "Market"]]
NAMED_ROWS = ["Item; Price; Shop", "Item: Tea; Price: 3.50; Shop: Corner", "Item: Jar; Shop: Market"]


def test_word_documents_have_headings_and_tables(tmp_path: Path) -> None:
    body = (
        paragraph("Honey", "berschrift1")
        + "<w:p><w:r><w:t>The yield was 37 kg. It was </w:t><w:br/><w:t>good.</w:t></w:r>"
        + "<w:del><w:r><w:t>Not this.</w:t></w:r></w:del></w:p>"
        + table(ROWS)
        + '<w:p><w:r><w:br w:type="page"/><w:t>On page two.</w:t></w:r></w:p>'
        + "<mc:AlternateContent xmlns:mc='m'><mc:Choice>"
        + paragraph("In a box.")
        + "</mc:Choice><mc:Fallback>"
        + paragraph("In a box.")
        + "</mc:Fallback></mc:AlternateContent>"
    )
    files = {
        "word/document.xml": f'<w:document xmlns:w="{WORD}">{body}</w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}"><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/>'
        "</w:style></w:styles>",
    }
    assert read(archive(tmp_path / "a.docx", files))[0] == [
        (1, 1, "Honey"),
        (1, 2, "The yield was 37 kg."),
        (1, 2, "It was \ngood."),
        *((1, 4 + number, row) for number, row in enumerate(NAMED_ROWS)),
        (2, 7, "On page two."),
        (2, 8, "In a box."),
    ]


NAMES = (
    'xmlns:office="o" xmlns:text="t" xmlns:table="ta" xmlns:draw="d" xmlns:presentation="p" xmlns:manifest="m" '
    'xmlns:dc="dc"'
)


def odf(path: Path, body: str, manifest: str = "") -> Path:
    return archive(
        path,
        {
            "content.xml": f"<office:content {NAMES}><office:body>{body}</office:body></office:content>",
            "meta.xml": f"<office:meta {NAMES}><dc:title>A will</dc:title></office:meta>",
            "META-INF/manifest.xml": f"<manifest:manifest {NAMES}>{manifest}</manifest:manifest>",
        },
    )


def test_opendocument_texts(tmp_path: Path) -> None:
    rows = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in ROWS
    )
    body = (
        "<text:h>Last will</text:h><text:p>The house<text:s text:c='2'/>goes to <text:span>Ann</text:span>. "
        "The boat to Bo.<office:annotation><text:p>no</text:p></office:annotation></text:p>"
        "<text:list><text:list-item><text:p>First</text:p></text:list-item></text:list>"
        f"<table:table>{rows}</table:table><text:p>Before<text:soft-page-break/> and after.</text:p>"
    )
    units, others = read(odf(tmp_path / "a.odt", body))
    assert others == [Title("A will")]
    assert units == [
        (1, 1, "Last will"),
        (1, 2, "The house  goes to Ann."),
        (1, 2, "The boat to Bo."),
        (1, 3, "First"),
        *((1, 4 + number, row) for number, row in enumerate(NAMED_ROWS)),
        (1, 7, "Before"),
        (2, 8, " and after."),
    ]
    locked = odf(tmp_path / "b.odt", "", "<manifest:encryption-data/>")
    with pytest.raises(DocumentError, match="locked with a password"):
        read(locked)


def test_opendocument_slides(tmp_path: Path) -> None:
    slides = "".join(
        f"<draw:page><draw:frame presentation:class='title'><draw:text-box><text:p>{title}</text:p></draw:text-box>"
        f"</draw:frame><draw:frame><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"
        f"<presentation:notes><draw:frame><text:p>{note}</text:p></draw:frame></presentation:notes></draw:page>"
        for title, text, note in (("Pilot", "It starts in May.", "Smile."), ("Cost", "4,000 euros.", "Be brief."))
    )
    assert read(odf(tmp_path / "a.odp", f"<office:presentation>{slides}</office:presentation>"))[0] == [
        (1, 1, "Pilot"), (1, 2, "It starts in May."), (1, 3, "Smile."),
        (2, 4, "Cost"), (2, 5, "4,000 euros."), (2, 6, "Be brief."),
    ]  # fmt: skip


def shape(text: str, placeholder: str = "body") -> str:
    lines = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp><p:nvPr><p:ph type='{placeholder}'/></p:nvPr><p:txBody>{lines}</p:txBody></p:sp>"


def slide(*shapes: str) -> str:
    return f"<p:sld xmlns:p='p' xmlns:a='a'>{''.join(shapes)}</p:sld>"


def relations(**targets: str) -> str:
    return "<R>" + "".join(f"<Relationship Id='{key}' Target='{path}'/>" for key, path in targets.items()) + "</R>"


def test_powerpoint_slides_come_in_their_order(tmp_path: Path) -> None:
    rows = "".join(
        "<a:tr>" + "".join(f"<a:tc><a:p><a:r><a:t>{cell}</a:t></a:r></a:p></a:tc>" for cell in row) + "</a:tr>"
        for row in ROWS
    )
    files = {
        "ppt/presentation.xml": "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldId id='256' r:id='b'/>"
        "<p:sldId r:id='a' id='257'/></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(a="slides/slide1.xml", b="slides/slide2.xml"),
        "ppt/slides/slide1.xml": slide(
            shape("The last slide."), shape("7", "sldNum"), f"<p:graphicFrame><a:tbl>{rows}</a:tbl></p:graphicFrame>"
        ),
        "ppt/slides/slide2.xml": slide(shape("Pilot", "title"), shape("It starts on 23 April.\nIn Oslo")),
        "ppt/slides/_rels/slide2.xml.rels": relations(n="../notesSlides/notesSlide1.xml"),
        "ppt/notesSlides/notesSlide1.xml": slide(shape("Say hello.")),
    }
    assert read(archive(tmp_path / "a.pptx", files))[0] == [
        (1, 1, "Pilot"),
        (1, 2, "It starts on 23 April."),
        (1, 3, "In Oslo"),
        (1, 4, "Say hello."),
        (2, 5, "The last slide."),
        *((2, 6 + number, row) for number, row in enumerate(NAMED_ROWS)),
    ]


def test_sheets(tmp_path: Path) -> None:
    budget: list[list[str | float]] = [
        ["Budget 2026"], [], ["Item", "Price", "Shop"], ["Rent", 1184.5, "Bank"], ["Tea", 3.0, ""], [],
        ["", "", "", "Who", "When", "What"], ["", "", "", "Ann", "May", "Tax"],
    ]  # fmt: skip
    path = workbook(tmp_path / "a.xlsx", {"Home": budget, "Contacts": [["Landlady", "Margit"], ["Phone", "0664"]]})
    assert read(path)[0] == [
        (1, 1, "Home"),
        (1, 1, "Budget 2026"),
        (1, 3, "Item; Price; Shop"),
        (1, 4, "Item: Rent; Price: 1184.5; Shop: Bank"),
        (1, 5, "Item: Tea; Price: 3"),
        (1, 7, "Who; When; What"),
        (1, 8, "Who: Ann; When: May; What: Tax"),
        (2, 1, "Contacts"),
        (2, 1, "Landlady: Margit"),
        (2, 2, "Phone: 0664"),
    ]
    (tmp_path / "b.xlsx").write_bytes(b"nothing of the sort")
    with pytest.raises(DocumentError, match="no spreadsheet that can be read"):
        read(tmp_path / "b.xlsx")


def test_a_sheet_that_unpacks_to_too_much(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", {"Home": [["x"]]})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file, file.open("xl/worksheets/bomb.xml", "w") as bomb:
        for _ in range(60):
            bomb.write(b" " * 1_000_000)
    with pytest.raises(DocumentError, match="zip bomb"):
        read(path)


def test_rich_text(tmp_path: Path) -> None:
    rows = "".join("\\trowd " + "".join(f"{cell}\\cell " for cell in row) + "\\row\n" for row in ROWS)
    path = tmp_path / "a.rtf"
    path.write_text(
        "{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0 Arial;}}\\pard Curriculum of J\\'fcrgen\\par "
        "It is short. It is good.\\par "
        f"{{\\*\\generator no}}{rows}\\pard The end.\\par}}",
        encoding="ascii",
    )
    units = [unit for unit in read(path)[0] if unit[2].strip()]
    assert [text.strip() for _, _, text in units] == [
        "Curriculum of Jürgen", "It is short.", "It is good.", *NAMED_ROWS, "The end.",
    ]  # fmt: skip
    path.write_text("no rich text", encoding="ascii")
    with pytest.raises(DocumentError, match="no rich text"):
        read(path)


def test_locked_files_say_so(tmp_path: Path) -> None:
    """An encrypted office file is an old container, not a zip archive."""
    for name in ("a.docx", "a.pptx", "a.odt"):
        (tmp_path / name).write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
        with pytest.raises(DocumentError, match="locked with a password"):
            read(tmp_path / name)


def test_old_files_without_a_program_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy, "find_program", lambda name: None)
    for name, message in (
        ("a.doc", "an old Word document; install LibreOffice or antiword, or save it as .docx"),
        ("a.ppt", "old PowerPoint slides; install LibreOffice, or save it as .pptx"),
    ):
        (tmp_path / name).write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
        with pytest.raises(DocumentError) as error:
            read(tmp_path / name)
        assert str(error.value) == message
        (tmp_path / name).write_bytes(b"nothing of the sort")
        with pytest.raises(DocumentError, match="this is not"):
            read(tmp_path / name)


CONNECT = """
import os, socket
from mnemic.text.documents.confine import confine_process

listener = socket.socket(socket.AF_UNIX)
listener.bind("open.sock")
listener.listen()
confine_process(2_000_000_000, os.getppid(), may_start_programs=True)
own = socket.socket(socket.AF_UNIX)  # LibreOffice makes one, and listens
own.bind("own.sock")
own.listen()
for attack in (lambda: socket.socket(socket.AF_INET), lambda: socket.socket(socket.AF_UNIX).connect("open.sock")):
    try:
        attack()
        print("connected")
    except PermissionError:
        print("refused")
"""


@pytest.mark.skipif(platform.machine() not in AUDIT_NAMES or sys.platform != "linux", reason="there is no filter")
def test_a_program_in_the_sandbox_connects_to_nothing(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(Path(mnemic.__file__).parents[1])}
    command = [sys.executable, "-c", CONNECT]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.stdout.split() == ["refused", "refused"], result.stderr


@pytest.mark.slow
@pytest.mark.skipif(legacy.find_office() is None, reason="LibreOffice is not installed")
@pytest.mark.parametrize(("source", "target"), [("a.odp", "ppt"), ("a.odt", "doc")])
def test_old_files_are_read_in_the_sandbox(tmp_path: Path, source: str, target: str) -> None:
    frame = "<draw:frame><draw:text-box><text:p>It starts in May.</text:p></draw:text-box></draw:frame>"
    body = {
        "a.odp": f"<office:presentation><draw:page>{frame}</draw:page></office:presentation>",
        "a.odt": "<office:text><text:p>It starts in May.</text:p></office:text>",
    }[source]
    names = {
        "office": "office", "text": "text", "draw": "drawing", "manifest": "manifest", "presentation": "presentation",
        "table": "table",
    }  # fmt: skip
    spaces = " ".join(f'xmlns:{key}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for key, name in names.items())
    kind = {"a.odp": "presentation", "a.odt": "text"}[source]
    with zipfile.ZipFile(tmp_path / source, "w") as file:
        file.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        file.writestr(
            "content.xml",
            f"<office:document-content {spaces} office:version='1.2'><office:body>{body}</office:body>"
            "</office:document-content>",
        )
        file.writestr(
            "META-INF/manifest.xml",
            f"<manifest:manifest {spaces} manifest:version='1.2'><manifest:file-entry manifest:full-path='/' "
            f"manifest:media-type='application/vnd.oasis.opendocument.{kind}'/><manifest:file-entry "
            "manifest:full-path='content.xml' manifest:media-type='text/xml'/></manifest:manifest>",
        )
    office = legacy.find_office()
    assert office is not None
    command = [office, f"-env:UserInstallation=file://{tmp_path}/p", "--headless", "--convert-to", target, source]
    for _ in range(2):  # the first start only makes the profile
        subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=100, check=False)
    path = tmp_path / f"a.{target}"
    assert path.exists(), shutil.which("soffice")
    with DocumentParser() as parser:
        parts = list(parser.read(path, kind_of(path)))
        path.write_bytes(path.read_bytes()[:20] + b"May")
        with pytest.raises(DocumentError, match="it may be damaged"):
            list(parser.read(path, kind_of(path)))
    assert "It starts in May." in "".join(part.text for part in parts if isinstance(part, DocumentPiece))
