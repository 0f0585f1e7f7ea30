"""Small documents of several kinds, whose facts the tests ask for."""

from pathlib import Path

import document_files as files

MAIL = """\
From: Ann Berg <ann@example.org>
To: Bob <bob@example.org>
Date: Mon, 2 Mar 2026 10:00:00 +0000
Subject: Opening of the bakery
Content-Type: text/plain; charset="utf-8"

Dear Bob,

the bakery opens on Friday at nine. Bring the blue folder.
"""
FILLER = "The stairs were swept, and the post was sorted by the porter as on every other day.\n"


def write_letter(path: Path) -> Path:
    """Write a text whose answer stands far below its first screen."""
    text = FILLER * 60 + "The lease of the flat in Mill Street ends on 30 June.\n" + FILLER * 60
    path.write_text(text, encoding="utf-8")
    return path


def write_contract(path: Path) -> Path:
    """Write a PDF whose answer is on its second page."""
    return files.pdf(
        path,
        [
            "Rules of the house: the stairs are swept on Mondays.",
            "The deposit is 1,400 euros and is paid by bank transfer.",
            "",
        ],
    )


def write_mail(path: Path) -> Path:
    """Write an e-mail."""
    path.write_text(MAIL, encoding="utf-8")
    return path


def write_sheet(path: Path) -> Path:
    """Write a workbook with two columns of costs."""
    rows: list[list[str | float]] = [["item", "amount"], ["paint", 42.0], ["brushes", 17.0], ["ladder", 88.0]]
    return files.workbook(path, {"Rooms": [["A plan of the rooms."]], "Costs": rows})


def write_table(path: Path) -> Path:
    """Write a table of costs."""
    path.write_text(
        "item,amount,paid\nPaint,42,2026-03-01\nBrushes,17,2026-03-04\nLadder,88,2026-03-05\n", encoding="utf-8"
    )
    return path


def write_locked(path: Path) -> Path:
    """Write a PDF that opens with the password "sesame"; it says that an account has 42 euros."""
    path.write_bytes(files.USER_LOCKED)
    return path
