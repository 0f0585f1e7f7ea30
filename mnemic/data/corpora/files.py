"""Which files a corpus is made of, and their lines, unpacked, from any byte on.

Names end in ``.jsonl`` or ``.txt``, or in either with ``.gz`` or ``.xz`` behind it.
"""

import gzip
import io
import lzma
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mnemic.data.corpora.document import CorpusError

FORMS = (".jsonl", ".txt")
PACKED = (".gz", ".xz")
KNOWN = "a name that ends in .jsonl or .txt, or in either with .gz or .xz behind it"
MOST = 64 * 2**20  # bytes of one line or document; beyond that, memory would not be bounded
BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error)  # what a damaged packed file raises


class Line(NamedTuple):
    """One line of a file, its number from 1 on, and where the next one begins."""

    content: bytes
    number: int
    after: int  # bytes, unpacked


def form_of(path: Path) -> str | None:
    """``.jsonl`` or ``.txt``, whether packed or not; None for a file of another form."""
    inner = Path(path.stem) if path.suffix in PACKED else path
    return inner.suffix if inner.suffix in FORMS else None


def files_of(paths: Iterable[Path | str]) -> tuple[Path, ...]:
    """The files named, in that order; a folder stands for all below it, in the order of names.

    In a folder, files of other forms and those whose names begin with a dot are passed over.
    """
    if isinstance(paths, str | Path):
        raise ValueError(f"paths is one path, {str(paths)!r}; expected several: [path]")
    found = [path for given in paths for path in _below(Path(given).expanduser())]
    seen: set[Path] = set()
    for path in found:
        if (real := path.resolve()) in seen:
            raise CorpusError(f"{path} is named twice, by itself or by its folder; name it once")
        seen.add(real)
    if not found:
        raise CorpusError("a corpus needs at least one file or folder; none was named")
    return tuple(found)


def lines(path: Path, *, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """The lines behind byte ``offset``, of which ``number`` were before; line ends stay on.

    A packed file is unpacked up to ``offset`` and thrown away, in little memory.
    """
    try:
        with unpacked(path) as stream:
            stream.seek(offset)
            while content := stream.readline(MOST + 1):
                number += 1
                if len(content) > MOST:
                    raise CorpusError(too_long(path, number))
                offset += len(content)
                yield Line(content, number, offset)
    except BROKEN as error:
        raise CorpusError(
            f"{path} cannot be read behind line {number}: {error}; unpack or fetch it again"
        ) from error


def too_long(path: Path, number: int) -> str:
    return (
        f"{path}:{number}: the document is longer than {MOST // 2**20} MiB; divide it, in .txt "
        "by blank lines"
    )


def unpacked(path: Path) -> io.BufferedIOBase:
    if path.suffix == ".gz":
        return gzip.open(path)
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


def _below(path: Path) -> list[Path]:
    if path.is_dir():
        inside = (file for file in path.rglob("*") if file.is_file() and form_of(file))
        shown = [file for file in inside if not _hidden(file.relative_to(path))]
        if not shown:
            raise CorpusError(f"no corpus in the folder {path}; expected {KNOWN}")
        return sorted(shown, key=lambda file: file.relative_to(path).parts)
    if not path.is_file():
        raise CorpusError(f"no file or folder {path}")
    if form_of(path) is None:
        raise CorpusError(f"{path} is of no known form; expected {KNOWN}")
    return [path]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
