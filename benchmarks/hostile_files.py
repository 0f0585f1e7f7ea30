"""Measure how long hostile files take, how much memory, and whether good files are remembered.

Each file is remembered with a good one, by a new process into a new memory, without an embedder:

    python -m benchmarks.hostile_files
"""

import argparse
import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
START, END = f'<w:d xmlns:w="{WORD}"><w:p><w:r><w:t>', "</w:t></w:r></w:p></w:d>"
MAIL = "From: ann@x.org\nSubject: A mail\nMIME-Version: 1.0\n"
REMEMBER = """
import json, resource, sys, time
from mnemic import Memory
memory, started = Memory(sys.argv[1], embedder="none", reader=None), time.monotonic()
outcomes = {step.path: [step.outcome, *step.notes[:1]] for step in memory.remember(*sys.argv[2:])}
seconds = time.monotonic() - started
own = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
print(json.dumps([outcomes, seconds, max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)]))
"""


def pack(files: Mapping[str, str]) -> bytes:
    """Return a zip archive of files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def make_overlap() -> bytes:
    """Return a zip archive whose 9,000 entries are the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", START + "a " * 500 + END)
        for number in range(8999):
            member = copy(archive.filelist[0])
            member.filename = f"word/{number}.xml"
            archive.filelist.append(member)
    return buffer.getvalue()


def make_spine() -> bytes:
    """Return a book with one chapter 100,000 times in its spine."""
    order = '<itemref idref="c"/>' * 100_000
    return pack({
        "META-INF/container.xml": '<c><rootfile full-path="b.opf"/></c>',
        "b.opf": f'<package><manifest><item id="c" href="c.xhtml"/></manifest><spine>{order}</spine></package>',
        "c.xhtml": "<p>" + "A chapter. " * 100 + "</p>",
    })  # fmt: skip


def make_tar() -> bytes:
    """Return a packed tar archive with one file of 2 GB of zeros."""
    buffer, header = io.BytesIO(), tarfile.TarInfo("a.txt")
    header.size = 2_000_000_000
    with gzip.open(buffer, "wb", 6) as file:
        file.write(header.tobuf())
        for _ in range(2000):
            file.write(bytes(1_000_000))
    return buffer.getvalue()


def make_pdf() -> bytes:
    """Return a PDF that names one page a million times."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1000000/Kids[" + b"3 0 R " * 1_000_000 + b"]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length 41>>\nstream\nBT /F 12 Tf 72 700 Td (Hello there.) Tj ET\nendstream",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    bodies = [b"%d 0 obj\n%b\nendobj\n" % (number, body) for number, body in enumerate(objects, start=1)]
    return b"%PDF-1.4\n" + b"".join(bodies) + b"trailer <</Size 6 /Root 1 0 R>>\n%%EOF\n"


def make_slides() -> bytes:
    """Return a presentation with one slide 100,000 times."""
    return pack({
        "ppt/presentation.xml": "<p>" + '<sldId id="r"/>' * 100_000 + "</p>",
        "ppt/_rels/presentation.xml.rels": '<r><Relationship Id="r" Target="slides/s.xml"/></r>',
        "ppt/slides/s.xml": "<s><p><t>" + "A slide. " * 2000 + "</t></p></s>",
    })  # fmt: skip


FILES: dict[str, Callable[[], bytes]] = {
    "one paragraph of 20 MB.docx": lambda: pack({"word/document.xml": START + "a " * 10_000_000 + END}),
    "one word of 20 MB.docx": lambda: pack({"word/document.xml": START + "a" * 20_000_000 + END}),
    "one paragraph of 95 MB.docx": lambda: pack({"word/document.xml": START + "a " * 47_500_000 + END}),
    "90 MB of paragraphs.docx": lambda: pack({
        "word/document.xml": START + ("word " * 100 + "</w:t></w:r></w:p><w:p><w:r><w:t>") * 170_000 + END
    }),
    "9,000 overlapping entries.docx": make_overlap,
    "one chapter 100,000 times.epub": make_spine,
    "one slide 100,000 times.pptx": make_slides,
    "one page 1,000,000 times.pdf": make_pdf,
    "2 GB of zeros.tar.gz": make_tar,
    "1 GB of text.txt.gz": lambda: gzip.compress(b"a " * 500_000_000, 1),
    "mails inside mails, 1,000 deep.eml": lambda: (MAIL + "Content-Type: message/rfc822\n\n").encode() * 1000,
    "subject of 5 MB.eml": lambda: b"From: a@b.c\nSubject: " + b"=?utf-8?q?a?= " * 400_000 + b"\n\nWords.\n",
    "one cell of 100 MB.csv": lambda: b"a,b\n1," + b"x" * 100_000_000,
    "one cell of 5,000,000 lines.csv": lambda: b'a,b\n1,"' + b"x\n" * 5_000_000 + b'"\n',
    "100,000 levels.json": lambda: b"[" * 100_000 + b"]" * 100_000,
    "aliases of aliases.yaml": lambda: b"a0: &a0 [x]\n" + b"".join(
        b"a%d: &a%d [%b]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 12)
    ),
    "one output of 500 MB.ipynb": lambda: b'{"cells": [{"outputs": [{"text": "' + b"x" * 500_000_000 + b'"}]}]}',
    "1,000,000 braces.rtf": lambda: b"{\\rtf1 " + b"{" * 1_000_000 + b"words" + b"}" * 1_000_001,
    "one paragraph of 1 MB.html": lambda: b"<p>" + b"word " * 200_000,
    "300,000 comments.html": lambda: b"<!--" * 300_000,
}  # fmt: skip


def measure(folder: Path, name: str) -> str:
    """Remember a hostile file beside a good one; return a row of the table."""
    path, good = folder / name, folder / "good.txt"
    path.write_bytes(FILES[name]())
    good.write_text("All is well.", encoding="utf-8")
    size = path.stat().st_size
    command = [sys.executable, "-c", REMEMBER, str(folder / "memory.db"), str(path), str(good)]
    outcomes, seconds, kib = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    for file in folder.iterdir():
        file.unlink()
    assert outcomes[str(good)] == ["new"], "the good file was not remembered"
    outcome, *notes = outcomes[str(path)]
    reason = f"{outcome}: {notes[0]}" if notes else outcome
    return f"| {name} | {size / 1000:,.0f} kB | {seconds:.1f} s | {kib / 1024:,.0f} MB | {reason[:110]} |"


def main() -> None:
    """Print a table of all files, or of those whose names have a word in them."""
    parser = argparse.ArgumentParser(description="Measure hostile files.")
    parser.add_argument("word", nargs="?", default="", help="only files with this in their name")
    word = parser.parse_args().word
    print("| file | size | time | memory | outcome |\n| --- | ---: | ---: | ---: | --- |")
    with TemporaryDirectory() as folder:
        for name in FILES:
            if word in name:
                print(measure(Path(folder), name), flush=True)


if __name__ == "__main__":
    main()
