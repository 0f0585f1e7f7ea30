"""Read old Word documents and slides (.doc, .ppt) through a program that is installed.

LibreOffice converts them, or antiword reads a .doc; either runs in the sandbox, which gives readers
of these kinds a temporary folder and the right to start a program.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mnemic.text.documents.office.archive import OLE_MAGIC
from mnemic.text.documents.office.blocks import build_pieces, find_line_blocks
from mnemic.text.documents.office.docx import read_docx
from mnemic.text.documents.office.pptx import read_pptx
from mnemic.text.documents.piece import DocumentError, DocumentPart, DocumentPiece, Source

TIMEOUT_S = 50
MAX_OUTPUT_BYTES = 50_000_000
PROGRAM_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
OFFICE_RESTARTS = 81  # LibreOffice wants to be started again, after it has made its profile
# Of LibreOffice, tried in turn: without one it takes a damaged file for text.
FILTERS = {".doc": ("MS Word 97", "MS Word 95", "MS WinWord 6.0"), ".ppt": ("MS PowerPoint 97",)}
KINDS = {".doc": ("an old Word document", "docx"), ".ppt": ("old PowerPoint slides", "pptx")}


def read_legacy(source: Source) -> Iterator[DocumentPart]:
    """Read an old office file; ``DocumentError`` names what to install."""
    name, target = KINDS[source.suffix]
    with source.path.open("rb") as file:
        if file.read(len(OLE_MAGIC)) != OLE_MAGIC:
            raise DocumentError(f"this is not {name}")
    office, antiword = find_office(), find_program("antiword") if target == "docx" else None
    if office is None and antiword is None:
        advice = "install LibreOffice" + (" or antiword" if target == "docx" else "")
        raise DocumentError(f"{name}; {advice}, or save it as .{target}")
    with TemporaryDirectory(prefix="mnemic-") as folder:  # mode 0700
        copy = Path(folder) / f"file{source.suffix}"
        shutil.copyfile(source.path, copy)
        if antiword is not None:
            try:
                yield from run_antiword(antiword, copy)
                return
            except DocumentError:
                if office is None:
                    raise  # it refuses some files that LibreOffice reads
        assert office is not None
        converted = convert_file(office, copy, target)
        yield from (read_docx if target == "docx" else read_pptx)(Source(converted, converted.name))


def run_antiword(program: str, path: Path) -> list[DocumentPiece]:
    """Read an old Word document by antiword, a line per paragraph."""
    output = run_program([program, "-m", "UTF-8.txt", "-w", "0", str(path)], path.parent)
    lines = output.decode("utf-8", "replace").splitlines()
    return list(build_pieces(find_line_blocks([line.removeprefix("|") for line in lines])))


def convert_file(program: str, path: Path, target: str) -> Path:
    """Convert an old office file to a new one by LibreOffice."""
    profile = f"-env:UserInstallation=file://{path.parent}/profile"
    options = ["--headless", "--norestore", "--convert-to", target, "--outdir", str(path.parent)]
    converted = path.with_suffix(f".{target}")
    for input_filter in FILTERS[path.suffix]:
        run_program([program, profile, f"--infilter={input_filter}", *options, str(path)], path.parent)
        if converted.exists():
            return converted
    raise DocumentError("LibreOffice cannot convert it; it may be damaged")


def find_program(name: str) -> str | None:
    """Find a program in the folders of the system, not in the user's PATH."""
    return shutil.which(name, path=PROGRAM_PATH)


def find_office() -> str | None:
    """Find LibreOffice itself, behind the script that starts it."""
    if (script := find_program("soffice")) is None:
        return None
    program = Path(script).resolve().with_name("soffice.bin")
    return str(program) if program.exists() else script


def run_program(command: list[str], folder: Path) -> bytes:
    """Run a program in a folder within limits and return its output."""
    environment = {"PATH": PROGRAM_PATH, "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
    program = os.path.basename(command[0])
    options: dict[str, Any] = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL}
    try:
        result = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, **options)
        if result.returncode == OFFICE_RESTARTS:
            result = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, **options)
    except subprocess.TimeoutExpired:
        raise DocumentError(f"{program} took longer than {TIMEOUT_S} s to read it") from None
    if result.returncode:
        message = " ".join(result.stderr.decode("utf-8", "replace").split())[:200]
        raise DocumentError(f"{program} cannot read it: {message or f'exit code {result.returncode}'}")
    if len(result.stdout) > MAX_OUTPUT_BYTES:
        raise DocumentError(f"{program} gave more than {MAX_OUTPUT_BYTES:,} bytes of text")
    return result.stdout
