"""Make office files with known facts: letters, sheets, slides, a book."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

LETTER = [
    ("heading", "Klinikum Links der Weser, orthopaedics"),
    ("text", "Discharge letter of 29 January 2025 for Imke Sandvoss, born on 6 May 1986."),
    ("heading", "Diagnosis"),
    ("text", "Partial tear of the medial ligament of the left knee after a fall on ice."),
    ("heading", "Treatment"),
    (
        "text",
        "The knee was stabilised with a brace. The brace is worn for six weeks. The patient "
        "received ibuprofen 600 mg three times a day for ten days.",
    ),
    ("heading", "Follow-up"),
    ("text", "We ask for a check with magnetic resonance imaging on 12 March. No surgery is planned."),
    ("text", "Signed by Dr. Arvid Stellmacher, senior physician."),
]
MINUTES = [
    ("heading", "Minutes of 14 May 2025"),
    ("text", "Present: Imke Sandvoss, Fatih Demirel, Greta Lohse. Piet van Dam is excused."),
    ("heading", "Crane"),
    ("text", "The city pays for the crane. It arrives on 19 May at 7:30 and stays for two days."),
    ("heading", "Modem"),
    ("text", "The modem at station 4 is replaced by a model of Teltonik. Fatih has ordered it for 238 euros."),
    ("heading", "Holidays"),
    ("text", "Imke is away from 18 July to 3 August. Her deputy during this time is Greta Lohse."),
]
MINUTES_TABLE = [
    ("Task", "Who", "Until"),
    ("paint the ladder", "Fatih", "23 May"),
    ("update the map", "Greta", "6 June"),
    ("train the fire brigade", "Imke", "17 June"),
]
CHINESE_CONTRACT = [
    ("heading", "房屋租赁合同"),
    ("text", "出租人：刘文静。承租人：依米·桑德沃斯。"),
    ("text", "房屋位于成都市武侯区玉林街9号，建筑面积六十八平方米。"),
    ("text", "租期为二〇二六年三月一日至五月三十一日，每月租金两千六百元。"),
    ("text", "押金为两千元，退房时无损坏全额退还。"),
]
LANDLORD_LETTER = [
    ("heading", "Repair of the balcony"),
    ("text", "Dear Mrs Sandvoss, dear Mr Brandt,"),
    ("text", "the balcony will be sealed between 2 and 13 June. A scaffold is put up on 30 May."),
    ("text", "During this time you may reduce the rent by 10 percent. Please remove all plants."),
    ("text", "The work is done by the firm Bautenschutz Jahnke. Their foreman is Mr Slomka."),
    ("text", "Kind regards, Gesine Harms"),
]
OLD_LEASE = [
    ("heading", "Lease of the room in Goettingen"),
    ("text", "The room in Weender Strasse 88 is let to Imke Sandvoss from 1 April 2008."),
    ("text", "The rent is 215 euros per month including heating. The caretaker is Mr Fricke."),
    ("text", "The kitchen and the bathroom are shared with four other students of the same floor."),
    ("text", "Bicycles are kept in the yard. The yard is locked at ten in the evening, and the key is with Mr Fricke."),
    ("text", "The room is furnished with a bed, a desk, a chair and a wardrobe, which must not be removed."),
    ("text", "Notice is given in writing, at the latest on the third working day of a month, to its end."),
    ("text", "Subletting needs the consent of the landlord, the Studentenwerk, which answers within two weeks."),
]
HANDOVER = [
    "Handover protocol, Lahnstrasse 14, 1 October 2021",
    "Electricity meter number 1EMH-0047712, reading 48,213 kWh.",
    "Gas meter number 7GAS-30915, reading 9,604 cubic metres.",
    "The parquet in the living room has a scratch of 40 cm beside the window.",
    "Received: three keys to the flat, two keys to the front door, one key to the letter box.",
]
CV = [
    "Curriculum vitae of Tobias Brandt",
    "Born on 14 November 1983 in Hildesheim.",
    "2003 to 2009: studied naval architecture at the Technical University of Hamburg.",
    "2009 to 2016: design engineer at the shipyard Lürwerft in Bremerhaven.",
    "Since 2016: project manager at Segelwerk in Vegesack, responsible for a team of eleven people.",
    "Languages: German, English, Danish. Licence: sailing licence for coastal waters since 2005.",
]
METERS = [
    ("Date", "Electricity kWh", "Gas m3", "Water m3"),
    ("2024-09-30", 57120, 12890, 311),
    ("2024-12-31", 57844, 13475, 324),
    ("2025-03-31", 58602, 14218, 338),
]
BUDGET = [
    ("Category", "Planned", "Spent in March", "Remark"),
    ("Rent and heating", 960, 960, ""),
    ("Groceries", 620, 587.4, ""),
    ("Nursery", 210, 210, "rises to 230 in August"),
    ("Car", 180, 95.2, ""),
    ("Holiday savings", 250, 250, "for Norway"),
    ("Presents", 60, 112.75, "wedding of Wiebke"),
]
SAVINGS = [
    ("Account", "Bank", "Balance", "Interest"),
    ("Day money", "Sparkasse Bremen", 8420.15, "1.75 %"),
    ("Ronja's account", "GLS Bank", 3115.6, "2.1 %"),
    ("Building society", "Wüstenheim", 12740, "0.5 %"),
]
LOAN = [
    ("Year", "Instalment", "Interest", "Remaining debt"),
    (2023, 1980, 402.5, 9640),
    (2024, 1980, 341.2, 8001.2),
    (2025, 1980, 276.9, 6298.1),
]
TALK = [
    ("Warning times on small rivers", ["Imke Sandvoss, Hydrology Day in Hannover, 6 March 2025"]),
    ("Why it matters", ["A flood wave needs 5 hours from Kirchweyhe to Bremen", "Cellars fill within 40 minutes"]),
    ("Our network", ["11 gauges, of which 4 use radar", "Data every minute over LTE-M"]),
    ("Result", ["The warning time rose from 50 to 135 minutes", "False alarms: 2 in 2024"]),
]
TALK_NOTE = "Do not forget to thank Professor Agnes Thiele, who lent us the drone."
OPEN_DAY = [
    ("Open day at the pumping station", ["Sunday, 7 September 2025, 11 to 17 o'clock"]),
    ("Programme", ["11:30 speech by mayor Inga Brandes", "14:00 the large pump moves 6,000 litres per second"]),
    ("How to get there", ["Bus 63 to the stop Wasserhorst", "Free parking at the sports ground"]),
]
BOOK = [
    (
        "The coast",
        "The coastal express Hurtigruten needs eleven days for the journey from Bergen to Kirkenes "
        "and back. It calls at 34 ports on the way.",
    ),
    (
        "The stave church",
        "The stave church of Borgund was built around 1180. Its roof has six tiers, and its walls "
        "are tarred every few years. Admission for adults is 120 kroner.",
    ),
    (
        "Food",
        "Brown cheese is made from whey, which is boiled for nine hours. It was invented in 1863 "
        "by Anne Hov, a dairymaid from Gudbrandsdalen.",
    ),
]


def make_docx(path: Path, blocks: Sequence[tuple[str, str]], table: Sequence[Sequence[str]] = ()) -> None:
    """Write headings, paragraphs and a table into a Word file."""
    from docx import Document

    document = Document()
    for kind, text in blocks:
        if kind == "heading":
            document.add_heading(text, level=1)
        else:
            document.add_paragraph(text)
    if table:
        grid = document.add_table(rows=0, cols=len(table[0]))
        for row in table:
            for cell, text in zip(grid.add_row().cells, row):
                cell.text = text
    document.save(str(path))


def make_doc(path: Path, blocks: Sequence[tuple[str, str]]) -> None:
    """Write an old Word file by LibreOffice; without it, the bare head of one."""
    office = shutil.which("soffice")
    if office is None:
        path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(504) + b"\xff" * 1024)
        return
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, path.stem + ".docx")
        make_docx(source, blocks)
        command = [office, f"-env:UserInstallation=file://{scratch}/profile", "--headless", "--convert-to", "doc"]
        subprocess.run([*command, "--outdir", str(path.parent), str(source)], check=True, capture_output=True)


def make_odt(path: Path, blocks: Sequence[tuple[str, str]]) -> None:
    """Write headings and paragraphs into an OpenDocument text."""
    from odf.opendocument import OpenDocumentText
    from odf.text import H, P

    document = OpenDocumentText()
    for kind, text in blocks:
        document.text.addElement(H(outlinelevel=1, text=text) if kind == "heading" else P(text=text))
    document.save(str(path))


def make_ods(path: Path, name: str, rows: Sequence[Sequence[object]]) -> None:
    """Write rows into an OpenDocument spreadsheet."""
    from odf.opendocument import OpenDocumentSpreadsheet
    from odf.table import Table, TableCell, TableRow
    from odf.text import P

    document = OpenDocumentSpreadsheet()
    table = Table(name=name)
    for row in rows:
        table_row = TableRow()
        for value in row:
            is_number = isinstance(value, int | float)
            cell = TableCell(valuetype="float", value=value) if is_number else TableCell(valuetype="string")
            cell.addElement(P(text=str(value)))
            table_row.addElement(cell)
        table.addElement(table_row)
    document.spreadsheet.addElement(table)
    document.save(str(path))


def make_odp(path: Path, slides: Sequence[tuple[str, list[str]]]) -> None:
    """Write slides into an OpenDocument presentation."""
    from odf.draw import Frame, Page, TextBox
    from odf.opendocument import OpenDocumentPresentation
    from odf.style import MasterPage, PageLayout
    from odf.text import P

    document = OpenDocumentPresentation()
    document.automaticstyles.addElement(PageLayout(name="plain"))
    master = MasterPage(name="plain", pagelayoutname="plain")
    document.masterstyles.addElement(master)
    for title, lines in slides:
        page = Page(masterpagename=master, name=title)
        for top, texts in (("1cm", [title]), ("5cm", lines)):
            frame = Frame(width="20cm", height="4cm", x="2cm", y=top)
            box = TextBox()
            for text in texts:
                box.addElement(P(text=text))
            frame.addElement(box)
            page.addElement(frame)
        document.presentation.addElement(page)
    document.save(str(path))


def make_rtf(path: Path, paragraphs: Sequence[str]) -> None:
    """Write paragraphs into a rich text file; the first one is bold."""
    head = r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss Helvetica;}}{\info{\author Imke}}\f0\fs22"
    lines = [head]
    for number, paragraph in enumerate(paragraphs):
        text = "".join(char if char.isascii() else f"\\u{ord(char)}?" for char in paragraph)
        lines.append(rf"{{\pard\sa180 \b {text}\b0\par}}" if number == 0 else rf"{{\pard\sa180 {text}\par}}")
    path.write_text("\n".join([*lines, "}"]), encoding="ascii")


def make_xlsx(path: Path, sheets: dict[str, Sequence[Sequence[object]]]) -> None:
    """Write named sheets into an Excel file."""
    from openpyxl import Workbook

    workbook = Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    workbook.save(path)


def make_xls(path: Path, name: str, rows: Sequence[Sequence[object]]) -> None:
    """Write a sheet into an old Excel file."""
    from xlwt import Workbook

    workbook = Workbook()
    sheet = workbook.add_sheet(name)
    for row_number, row in enumerate(rows):
        for column, value in enumerate(row):
            sheet.write(row_number, column, value)
    workbook.save(str(path))


def make_pptx(path: Path, slides: Sequence[tuple[str, list[str]]], note: str) -> None:
    """Write slides into a PowerPoint file, with a speaker's note on the last one."""
    from pptx import Presentation

    presentation = Presentation()
    for title, lines in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = "\n".join(lines)
    slide.notes_slide.notes_text_frame.text = note
    presentation.save(str(path))


def make_epub(path: Path, title: str, chapters: Sequence[tuple[str, str]]) -> None:
    """Write chapters into an EPUB book."""
    from ebooklib import epub

    book = epub.EpubBook()
    book.set_identifier("norway-guide")
    book.set_title(title)
    book.set_language("en")
    pages = []
    for number, (name, text) in enumerate(chapters, start=1):
        page = epub.EpubHtml(title=name, file_name=f"chapter{number}.xhtml", lang="en")
        page.content = f"<h1>{name}</h1><p>{text}</p>"
        book.add_item(page)
        pages.append(page)
    book.toc = pages
    book.spine = pages
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    epub.write_epub(str(path), book)


def make_office_files(folder: Path) -> None:
    """Write all office files into their places of the folder."""
    make_docx(folder / "health/discharge-letter.docx", LETTER)
    make_docx(folder / "work/minutes-2025-05-14.docx", MINUTES, MINUTES_TABLE)
    make_docx(folder / "letters/zufang-hetong.docx", CHINESE_CONTRACT)
    make_doc(folder / "home/old-lease.doc", OLD_LEASE)
    make_odt(folder / "home/balcony.odt", LANDLORD_LETTER)
    make_rtf(folder / "home/handover.rtf", HANDOVER)
    make_rtf(folder / "work/cv-tobias.rtf", CV)
    make_ods(folder / "home/meters.ods", "meters", METERS)
    make_xlsx(folder / "finance/budget-2025.xlsx", {"March": BUDGET, "Savings": SAVINGS})
    make_xls(folder / "finance/car-loan.xls", "loan", LOAN)
    make_pptx(folder / "work/hydrology-day.pptx", TALK, TALK_NOTE)
    make_odp(folder / "work/open-day.odp", OPEN_DAY)
    make_epub(folder / "travel/norway-guide.epub", "A small guide to Norway", BOOK)
