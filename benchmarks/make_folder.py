"""Make a folder like a real person's Documents: 110 files of 62 kinds, known facts.

    python -m venv makers
    makers/bin/pip install python-docx odfpy openpyxl xlwt python-pptx
    makers/bin/pip install ebooklib reportlab pikepdf pillow
    sudo apt-get install groff fonts-dejavu-core fonts-noto-cjk libreoffice-writer
    makers/bin/python benchmarks/make_folder.py FOLDER

LibreOffice makes the one .doc file; without it that file is only the head of one. FOLDER must not
exist. Text files are copied from ``folder/texts``; every run writes the same texts, though some
formats also hold the time at which they were written. People, firms and numbers are invented.
"""

import argparse
import io
import os
import shutil
import sqlite3
import tarfile
import zipfile
from email.message import EmailMessage
from pathlib import Path
from tempfile import TemporaryDirectory

from folder.encodings import ENCODINGS
from folder.office_files import make_office_files
from folder.pdf_files import make_pdf_files, make_text_pdf

TEXTS = Path(__file__).parent / "folder" / "texts"
OFFER = [
    [
        "Offer 25-077 of Fensterbau Wilkens",
        "Four windows of larch wood with triple glazing: EUR 6,480.00.",
        "Removal of the old windows: EUR 520.00.",
        "The offer is valid until 31 August 2025. Delivery in calendar week 41.",
    ]
]
SURVEY = "room,width mm,height mm\nkitchen,1180,1340\nbedroom,1420,1340\nbathroom,640,980\n"


def copy_texts(folder: Path) -> None:
    """Copy the text files, some in other encodings, and name mails as a mail program does."""
    shutil.copytree(TEXTS, folder)
    for name, encoding in ENCODINGS.items():
        (folder / name).write_bytes((TEXTS / name).read_text(encoding="utf-8").encode(encoding))
    for mail in (folder / "mail/Maildir/cur").iterdir():
        mail.rename(f"{mail}:2,S")
    (folder / "mail/Maildir/tmp").mkdir()


def make_mail_with_attachments(path: Path) -> None:
    """Write a mail with a PDF and a table attached."""
    mail = EmailMessage()
    mail["Date"] = "Wed, 28 May 2025 10:20:31 +0200"
    mail["From"] = "Fensterbau Wilkens <info@wilkens.example>"
    mail["To"] = "imke@sandvoss.example"
    mail["Subject"] = "Offer for new windows"
    mail.set_content(
        "Dear Mrs Sandvoss,\n\nenclosed is our offer, and the sizes that our colleague Mr Bartels measured\n"
        "on 22 May. The fitters need one and a half days.\n\nFensterbau Wilkens\n"
    )
    with TemporaryDirectory() as scratch:
        make_text_pdf(Path(scratch, "offer.pdf"), OFFER)
        offer = Path(scratch, "offer.pdf").read_bytes()
    mail.add_attachment(offer, maintype="application", subtype="pdf", filename="offer.pdf")
    mail.add_attachment(SURVEY.encode(), maintype="text", subtype="csv", filename="sizes.csv")
    mail.set_boundary("=====windows=====")
    path.write_bytes(mail.as_bytes())


def make_archives(folder: Path) -> None:
    """Write a zip archive, a tar archive, and a zip archive that was cut short."""
    with zipfile.ZipFile(folder / "photos-2019.zip", "w") as archive:
        for name in ("lighthouse-roter-sand.jpg", "wedding/cake.jpg", "wedding/dance.jpg"):
            archive.writestr(zipfile.ZipInfo(name), bytes(200))
    with tarfile.open(folder / "old-laptop.tar.gz", "w:gz") as archive:
        for name, content in (("diary/2011.txt", b"Nothing happened."), ("thesis/chapter1.tex", b"\\section{Rain}")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    content = (folder / "photos-2019.zip").read_bytes()
    (folder / "attic/half-a-download.zip").write_bytes(content[: len(content) // 2])


def make_damaged_files(folder: Path) -> None:
    """Write files that are empty, cut short, mislabeled or of no readable kind."""
    attic = folder / "attic"
    (attic / "empty.txt").touch()
    (attic / "empty.pdf").touch()
    for name, source, size in (
        ("truncated.docx", "health/discharge-letter.docx", 9000),
        ("truncated.pdf", "home/insurance-terms.pdf", 900),
        ("truncated.png", "health/vaccination-ronja.png", 500),
    ):
        (attic / name).write_bytes((folder / source).read_bytes()[:size])
    (attic / "broken.xlsx").write_bytes(bytes(range(256)) * 8)
    (attic / "broken.json").write_text('{"stations": ["Grolland", "Strom",', encoding="utf-8")
    (attic / "broken.ics").write_text("BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:", encoding="utf-8")
    (attic / "firmware.bin").write_bytes(bytes(range(255, -1, -1)) * 16)
    (attic / "not-really.pdf").write_text("This was saved under the wrong name.\n", encoding="utf-8")
    (attic / "song.mp3").write_bytes(b"ID3\x04\x00" + bytes(600))
    (attic / "film.mp4").write_bytes(b"\x00\x00\x00\x18ftypmp42" + bytes(600))
    with sqlite3.connect(attic / "bookmarks.sqlite") as database:
        database.execute("CREATE TABLE bookmark (address TEXT)")
    database.close()


def make_hidden_files(folder: Path) -> None:
    """Write hidden files, files that programs generate, and links."""
    for name, content in (
        (".secret-diary.txt", "The hidden treasure lies below the plum tree.\n"),
        (".cache/thumbnails/index.txt", "a thumbnail\n"),
        ("code/node_modules/left-pad/index.js", "module.exports = (text) => text;\n"),
        ("code/node_modules/left-pad/package.json", '{"name": "left-pad", "version": "1.3.0"}\n'),
        ("code/__pycache__/rain_gauge.cpython-311.pyc", "compiled\n"),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    links = folder / "links"
    links.mkdir()
    (links / "lease.txt").symlink_to("../home/lease.txt")
    (links / "host-name.txt").symlink_to("/etc/hostname")
    (links / "nowhere.txt").symlink_to("../home/no-such-file.txt")
    (links / "round").symlink_to("..")
    shutil.copy(folder / "home/wifi.txt", folder / "attic/wifi (copy).txt")


def make_folder(folder: Path) -> None:
    """Make the whole folder; it must not exist."""
    copy_texts(folder)
    (folder / "attic").mkdir()
    make_office_files(folder)
    make_pdf_files(folder)
    make_mail_with_attachments(folder / "mail/windows.eml")
    make_archives(folder)
    make_damaged_files(folder)
    make_hidden_files(folder)
    for number, path in enumerate(sorted(folder.rglob("*"))):
        os.utime(path, (1_750_000_000 + number,) * 2, follow_symlinks=False)


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    if folder.exists():
        parser.error(f"{folder} exists; give a folder that does not")
    make_folder(folder)
    files = [path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]
    print(f"{len(files)} files of {len({path.suffix.lower() or path.name for path in files})} kinds in {folder}")


if __name__ == "__main__":
    main()
