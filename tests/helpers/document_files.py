"""Write small files of every format that a memory reads."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def pdf(path: Path, pages: Sequence[str], title: str = "A title") -> Path:
    """Write a PDF with one line of text per page.

    An empty page has no text layer, like a scan.
    """
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids ["
        + " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
        + "] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Title ({title}) >>",
    ]
    for number, text in enumerate(pages):
        content_stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else "0 0 m 100 100 l S"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {6 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(content_stream)} >>\nstream\n{content_stream}\nendstream")
    content, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    count = len(objects) + 1
    path.write_bytes(
        content
        + f"xref\n0 {count}\n0000000000 65535 f \n{table}".encode()
        + f"trailer\n<< /Size {count} /Root 1 0 R /Info 4 0 R >>\n".encode()
        + f"startxref\n{len(content)}\n%%EOF\n".encode()
    )
    return path


def archive(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive_file:
        for name, content in files.items():
            archive_file.writestr(name, content)
    return path


def docx(path: Path, paragraphs: Sequence[str]) -> Path:
    """Write a Word document; a form feed before a paragraph starts a page."""
    body = "".join(
        "<w:p><w:r>"
        + ("<w:lastRenderedPageBreak/>" if text.startswith("\f") else "")
        + f"<w:t>{text.lstrip(chr(12))}</w:t></w:r></w:p>"
        for text in paragraphs
    )
    return archive(
        path,
        {
            "word/document.xml": f'<w:document xmlns:w="{WORD}">{body}</w:document>',
            "docProps/core.xml": '<c xmlns:dc="d"><dc:title>A report</dc:title></c>',
        },
    )


def epub(path: Path, chapters: Sequence[str]) -> Path:
    items = "".join(f'<item id="c{n}" href="c{n}.xhtml"/>' for n in range(len(chapters)))
    order = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    files = {
        "META-INF/container.xml": '<c><rootfile full-path="book/content.opf"/></c>',
        "book/content.opf": '<package xmlns:dc="d"><metadata><dc:title>A book</dc:title></metadata>'
        f"<manifest>{items}</manifest><spine>{order}</spine></package>",
    }
    for number, text in enumerate(chapters):
        files[f"book/c{number}.xhtml"] = f"<html><body><p>{text}</p></body></html>"
    return archive(path, files)


MAIL = """\
From: Ann <ann@example.org>
To: Bob <bob@example.org>
Date: Mon, 2 Mar 2026 10:00:00 +0000
Subject: =?utf-8?q?The_caf=C3=A9?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/plain; charset="iso-8859-1"
Content-Transfer-Encoding: quoted-printable

The caf=E9 opens on Friday. Bring the blue folder.
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="menu.pdf"

x
--b--
"""
