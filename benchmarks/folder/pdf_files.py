"""Make PDF files and pictures with known facts: text, columns, locks, scans."""

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FONTS = Path("/usr/share/fonts")
LATIN_FONT = FONTS / "truetype/dejavu/DejaVuSans.ttf"
CHINESE_FONT = FONTS / "opentype/noto/NotoSansCJK-Regular.ttc"

INVOICE_ROWS = [
    ("Position", "Description", "Quantity", "Price"),
    ("1", "Roof box, 420 litres, hire for 17 days", "1", "127.50"),
    ("2", "Roof bars for the estate car", "1", "34.00"),
    ("3", "Child seat, group 2", "1", "42.00"),
]
INVOICE = [
    "Autohaus Meyerdierks, Invoice 2025-1187",
    "Invoice date: 14 July 2025",
    "Customer: Imke Sandvoss, customer number 60417",
    "Total amount: EUR 203.50 including 19 percent VAT",
    "Payable within 14 days to the account of Autohaus Meyerdierks at Volksbank Bremen-Nord.",
]
WARRANTY = [
    [
        "Warranty certificate",
        "Dishwasher Spuelstern GS 60-4, serial number SN-7704-2216.",
        "The warranty covers five years from the date of purchase, which is 3 December 2022.",
        "It covers the pump and the control unit. Wear of seals and hoses is excluded.",
    ],
    [
        "How to make a claim",
        "Claims are sent in writing to Spuelstern Service, Postfach 2210, 33311 Guetersloh.",
        "Enclose a copy of the receipt. The answer arrives within 15 working days.",
    ],
]
TERMS = [
    [
        "Weser Mutual, General terms of household insurance",
        "Section 1. Insured perils",
        "Insured are fire, lightning, burglary, tap water, storm and hail.",
        "Storm means wind of at least force 8.",
    ],
    [
        "Section 2. Valuables",
        "Jewellery and cash outside a safe are insured up to 1,200 euros.",
        "Musical instruments are insured at their replacement value.",
    ],
    [
        "Section 3. Duties after a loss",
        "A burglary must be reported to the police without delay, at the latest within 48 hours.",
        "A list of the stolen goods is handed in within two weeks.",
    ],
]
STATEMENT = [
    [
        "Sparkasse Bremen, account statement 3/2025",
        "Account holder: Imke Sandvoss and Tobias Brandt",
        "Opening balance on 1 March: EUR 2,871.06",
        "3 March, Segelwerk, salary: EUR 3,342.18",
        "4 March, Gesine Harms, rent: EUR -960.00",
        "10 March, Rieke Ingenieure, salary: EUR 2,987.40",
        "17 March, Fjordbil, deposit: EUR -150.00",
        "28 March, Kletterhalle Nord: EUR -29.00",
        "Closing balance on 31 March: EUR 4,066.72",
    ],
    ["Notice to our customers", "From 1 July the fee of the account rises to EUR 7.90 per month."],
]
SALARY = [["Rieke Ingenieure, pay slip for February 2025", "Gross salary: EUR 4,615.00", "Net: EUR 2,987.40"]]
PAPER_LEFT = [
    "Abstract. Beavers have returned to the Wuemme after 170 years of absence. We counted 23 dams "
    "along 31 kilometres of the river and measured how they change the water level.",
    "Introduction. The first pair was seen near Fischerhude in the autumn of 2014. Since then the "
    "population has grown by 18 percent per year. Farmers complain about wet meadows.",
    "Method. Levels were measured above and below each dam with pressure sensors for 14 months.",
]
PAPER_RIGHT = [
    "Results. On average a dam raises the level by 37 centimetres. The highest dam, near Ottersberg, "
    "raises it by 1.12 metres. Peaks after heavy rain arrived 3.5 hours later than before.",
    "Discussion. Dams delay small floods but have no influence on large ones. We advise to lower a "
    "dam by a pipe where a road is in danger; a pipe costs about 600 euros.",
    "Acknowledgements. We thank the foundation Lebendige Aue for its support.",
]
GROFF_SOURCE = r""".TL
Instructions for the night shift of the control room
.AU
Greta Lohse
.NH
Levels of alarm
.PP
At yellow alarm the water stands 40 centimetres below the crown of the dyke. The shift leader
informs the dyke association by telephone and writes the time into the blue book.
.PP
At red alarm the siren is sounded for one minute. It is tested on the first Saturday of every
month. AVAST, the old program, was switched off in 2019; its successor is called TIDEWATCH.
.NH
Coffee and other supplies
.PP
The emergency generator starts by itself after 12 seconds. Its tank holds diesel for 36 hours.
Spare fuses are in the red cabinet, drawer 5. WAVE AV tapes are no longer used.
.bp
.NH
Telephone numbers
.PP
The fire brigade answers at extension 112. The lock keeper of Hasenbueren, Mr Onken, is reached
at 0421 555 0160 by day and by night. The weather service sends its forecast at 04:45.
"""
CHINESE_NOTICE = [
    [
        "桂溪小区停水通知",
        "因管道维修，本小区将于六月十八日上午八点至下午五点停水。",
        "请各位业主提前储水。如有疑问，请联系物业赵经理，电话028-5550-3390。",
    ]
]
TAX_LETTER = [
    "Finanzamt Bremen-Mitte",
    "Tax assessment for the year 2023",
    "Tax number 57 114 09283",
    "You will receive a refund of 742.18 euros.",
    "The refund is transferred to your account by 20 August 2024.",
    "Objections are possible within one month.",
]
FERRY_TICKET = [
    "COLOR FJORD LINE",
    "Ferry Hirtshals - Larvik",
    "Departure 16 July 22:15",
    "Cabin 7114, deck 7",
    "Vehicle: HB TS 482",
    "Ticket number 903 226 71",
]
VACCINATION = [
    "Vaccination record of Ronja Brandt",
    "Born 9 February 2020",
    "Measles: 11 March 2021, batch MR4471",
    "Tetanus: 23 August 2022, batch TD8830",
    "Next vaccination: August 2027",
]
MARKET_NOTICE = ["锦江书市", "每年五月一日开始", "地点：人民公园南门", "旧书每本十五元", "下雨改在图书馆一楼"]


def make_text_pdf(path: Path, pages: Sequence[Sequence[str]], font: str = "Helvetica") -> None:
    """Write lines onto pages; long ones are wrapped."""
    from reportlab.lib.utils import simpleSplit
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path), invariant=1)
    for lines in pages:
        canvas.setFont(font, 12)
        y = 780
        for text in lines:
            for line in simpleSplit(text, font, 12, 460):
                canvas.drawString(70, y, line)
                y -= 18
            y -= 8
        canvas.showPage()
    canvas.save()


def make_invoice(path: Path) -> None:
    """Write an invoice with a ruled table."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table

    style = getSampleStyleSheet()["Normal"]
    head, foot = INVOICE[:3], INVOICE[3:]
    table = Table(INVOICE_ROWS, style=[("GRID", (0, 0), (-1, -1), 0.5, "black")])
    flow: list[Any] = [Paragraph(text, style) for text in head]
    flow += [Spacer(1, 20), table, Spacer(1, 20), *(Paragraph(text, style) for text in foot)]
    SimpleDocTemplate(str(path), invariant=1).build(flow)


def make_two_columns(path: Path) -> None:
    """Write a paper in two columns, line by line across both, as some programs do."""
    from reportlab.lib.utils import simpleSplit
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path), invariant=1)
    canvas.setFont("Times-Bold", 16)
    canvas.drawCentredString(297, 790, "Beavers and water levels on the lower Wuemme")
    canvas.setFont("Times-Roman", 11)
    columns = []
    for paragraphs in (PAPER_LEFT, PAPER_RIGHT):
        columns.append([line for text in paragraphs for line in [*simpleSplit(text, "Times-Roman", 11, 220), ""]])
    for row in range(max(map(len, columns))):
        for x, lines in zip((60, 315), columns):
            if row < len(lines):
                canvas.drawString(x, 750 - 14 * row, lines[row])
    canvas.showPage()
    canvas.save()


def make_groff_pdf(path: Path) -> None:
    """Typeset pages by groff, which writes spaces as movements."""
    command = ["groff", "-ms", "-Tpdf"]
    path.write_bytes(subprocess.run(command, input=GROFF_SOURCE.encode(), check=True, capture_output=True).stdout)


def lock_pdf(path: Path, *, user: str, owner: str) -> None:
    """Encrypt a PDF file with AES-256; an empty ``user`` password lets everybody read."""
    import pikepdf

    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        pdf.save(path, encryption=pikepdf.Encryption(user=user, owner=owner, R=6))


def draw_text(lines: Sequence[str], font_path: Path, size: int = 40) -> Any:
    """Draw lines of text as a picture in shades of gray, with a little noise."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", (1240, 120 + 2 * size * len(lines)), 250)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.truetype(str(font_path), size)
    for number, line in enumerate(lines):
        draw.text((90, 60 + 2 * size * number), line, font=font, fill=25)
    generator = random.Random(7)
    for _ in range(1500):
        draw.point((generator.randrange(picture.width), generator.randrange(picture.height)), fill=160)
    return picture.rotate(0.4, fillcolor=250)


def make_pdf_files(folder: Path) -> None:
    """Write all PDF files and pictures into their places of the folder."""
    from PIL import Image
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont

    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    make_invoice(folder / "finance/invoice-2025-1187.pdf")
    make_text_pdf(folder / "home/warranty-dishwasher.pdf", WARRANTY)
    make_text_pdf(folder / "home/insurance-terms.pdf", TERMS)
    make_text_pdf(folder / "finance/statement-2025-03.pdf", STATEMENT)
    lock_pdf(folder / "finance/statement-2025-03.pdf", user="", owner="sparkasse")
    make_text_pdf(folder / "finance/salary-2025-02.pdf", SALARY)
    lock_pdf(folder / "finance/salary-2025-02.pdf", user="geheim", owner="rieke")
    make_two_columns(folder / "work/beavers.pdf")
    make_groff_pdf(folder / "work/night-shift.pdf")
    make_text_pdf(folder / "letters/tingshui.pdf", CHINESE_NOTICE, "STSong-Light")
    draw_text(TAX_LETTER, LATIN_FONT).save(folder / "finance/tax-2023-scan.pdf", resolution=150)
    draw_text(FERRY_TICKET, LATIN_FONT).save(folder / "travel/ferry-ticket.jpg", quality=85)
    draw_text(VACCINATION, LATIN_FONT).save(folder / "health/vaccination-ronja.png")
    draw_text(MARKET_NOTICE, CHINESE_FONT, 48).save(folder / "letters/book-market.png")
    Image.linear_gradient("L").save(folder / "travel/fog.jpg", quality=60)
