"""Take the pictures of the documentation; `MNEMIC_PICTURES=docs/pictures make browser` renews them.

Otherwise they are taken into a scratch folder: what the documentation shows still works.
"""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import papers
import pytest
from document_files import pdf_pages
from serving import serve_page
from visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MAX_BYTES = 150_000
COLORS = 200
DEPOSIT = "How much is the deposit?"
CONTRACT = [
    "Tenancy agreement",
    "",
    "Between Margit Hill, 12 Mill Street, and Ann Berg, 4 Harbor Lane.",
    "1. The flat on the second floor of 12 Mill Street is let from 1 July 2025.",
    "2. The rent is 700 euros a month and is due on the third working day.",
    "3. The deposit is 1,400 euros and is paid by bank transfer before the keys are given.",
    "4. The lease ends on 30 June 2027, unless both agree in writing to go on.",
    "5. Pets are welcome if they are quiet.",
    "6. The tenant sweeps the stairs every second week.",
]
NOTES = {
    "Move": "The movers come on 28 June at eight. They charge 540 euros, with boxes.",
    "Boiler": "The boiler was serviced on 4 June by Mr. Hill. The next service is due in two years.",
}
ROOMS = ("harbor", "winter", "portrait", "glass", "paper", "silver", "garden", "music", "map", "clock")
GIFTS = (
    "Edith Marlowe",
    "Jonas Weir",
    "Clara Voss",
    "Henry Adler",
    "Ida Brandt",
    "Tomas Rell",
    "Vera Lind",
    "Otto Kern",
)


def write_lines(lines: list[str]) -> str:
    """Write lines as the content of a page of a PDF."""
    steps = ["BT /F1 22 Tf 72 700 Td", f"({lines[0]}) Tj", "/F1 12 Tf"]
    return "\n".join([*steps, *(f"0 -26 Td ({line}) Tj" for line in lines[1:]), "ET"])


def write_museum() -> str:
    """Write a long text about a museum: each room with its donor, and much that is the same."""
    pieces = ["The museum in Mill Street was founded by Edith Marlowe in 1897."]
    for number in range(1, 121):
        room, donor = ROOMS[number % len(ROOMS)], GIFTS[(number * 3) % len(GIFTS)]
        pieces += [
            f"Room {number} is the {room} room, and {donor} gave it to the city in {1897 + number}.",
            "It is warm in winter and cool in summer.",
            f"On its north wall hang {number % 7 + 2} pictures, and visitors may sit down in front of them.",
        ]
    return " ".join(pieces)


@pytest.fixture
def album(tmp_path: Path) -> Path:
    """Return the folder of the pictures."""
    return Path(os.environ.get("MNEMIC_PICTURES", tmp_path))


@pytest.fixture
def guest(browser: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """Open the page at twice the density, with a home's papers in its memory."""
    settings = {"viewport": {"width": 1080, "height": 760}, "device_scale_factor": 1.5}
    with serve_page(tmp_path_factory.mktemp("home")) as served, Visitor(browser, served, **settings) as visitor:
        folder = tmp_path_factory.mktemp("papers")
        pdf_pages(folder / "contract.pdf", [write_lines(CONTRACT)])
        visitor.upload(
            folder / "contract.pdf", papers.write_mail(folder / "bakery.eml"), papers.write_table(folder / "costs.csv")
        )
        for title, text in NOTES.items():
            visitor.add_note(text, title)
        yield visitor
        visitor.check_log()


def save(visitor: Visitor, path: Path) -> None:
    """Save what the window shows, with few colors."""
    from PIL import Image

    visitor.page.mouse.move(0, 0)
    visitor.page.wait_for_timeout(200)
    picture = Image.open(io.BytesIO(visitor.page.screenshot())).convert("RGB")
    picture.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)
    assert path.stat().st_size <= MAX_BYTES, f"{path.name}: {path.stat().st_size} bytes"


def test_pictures_of_documents(guest: Visitor, album: Path) -> None:
    for question in ("When do the movers come?", "When does the lease end?", DEPOSIT):
        assert guest.ask(question) != "No answer in these documents"
    save(guest, album / "page-ask.png")
    guest.open_evidence()
    save(guest, album / "page-evidence.png")
    guest.set_theme("dark")
    (album / "scan.pdf").write_bytes(b"%PDF-1.4 cut off")
    guest.upload(papers.write_locked(album / "bank.pdf"), album / "scan.pdf")
    guest.page.evaluate("document.activeElement.blur()")
    for name in ("scan.pdf", "bank.pdf"):
        (album / name).unlink()
    save(guest, album / "page-documents.png")


def test_a_picture_of_a_small_screen_in_chinese(browser: "Browser", guest: Visitor, album: Path) -> None:
    phone = {"viewport": {"width": 390, "height": 760}, "device_scale_factor": 2, "locale": "zh-CN"}
    with Visitor(browser, guest.served, **phone) as visitor:
        visitor.add_note("小明的生日是五月三日。他住在北京。", "小明")
        assert "五月三日" in visitor.ask("小明的生日是哪一天？")
        visitor.set_theme("dark")
        save(visitor, album / "page-small.png")
        visitor.check_log()


def test_pictures_of_networks(guest: Visitor, album: Path) -> None:
    guest.open("networks", selector="#network")
    guest.page.select_option("#network", "entnet-babi")
    guest.page.click(".network-form .primary")
    guest.page.wait_for_selector(".network-results .heat-slots")
    guest.page.set_viewport_size({"width": 1080, "height": 1000})
    save(guest, album / "page-networks.png")
    guest.page.set_viewport_size({"width": 1080, "height": 1000})
    guest.open("text", selector="#long-text")
    guest.page.fill("#long-text", write_museum())
    guest.page.fill("#text-name", "The museum in Mill Street")
    guest.page.click(".text-form .primary")
    guest.page.wait_for_selector(".strip")
    guest.page.fill("#text-question", "Who founded the museum?")
    guest.page.click(".text-ask .primary")
    guest.page.wait_for_selector(".text-answer .answer-words")
    assert "Edith Marlowe" in guest.page.inner_text(".text-answer .answer-words")
    save(guest, album / "page-text.png")
