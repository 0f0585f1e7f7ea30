"""List the files of a corpus, and read their lines, decompressed, from any byte on.

Names end in ``.jsonl`` or ``.txt``, or in either followed by ``.gz`` or ``.xz``.
"""

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.data.corpora.document import CorpusError

TEXT_SUFFIXES = (".jsonl", ".txt")
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}  # of compressed files
EXPECTED_NAME = "a name that ends in .jsonl or .txt, or in either followed by .gz or .xz"
MAX_DOCUMENT_BYTES = 64 * 2**20  # of one line or document: memory must be bounded
READ_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)  # of damaged compressed files


class Line(NamedTuple):
    """A line of a file, its number, and the offset of the next one."""

    content: bytes
    number: int  # from 1 on
    next_offset: int  # bytes, decompressed


def text_suffix(path: Path) -> str | None:
    """Return ``.jsonl`` or ``.txt``, without compression suffix; None for other files."""
    inner = Path(path.stem) if path.suffix in OPENERS else path
    return inner.suffix if inner.suffix in TEXT_SUFFIXES else None


def list_files(paths: Iterable[Path | str]) -> tuple[Path, ...]:
    """List the given files, and all text files below the given folders, sorted by name.

    In a folder, other files and those whose names start with a dot are skipped.
    """
    if isinstance(paths, str | Path):
        raise ValueError(f"paths is one path, {str(paths)!r}; expected several: [path]")
    files = [path for root in paths for path in _list_below(Path(root).expanduser())]
    seen: set[Path] = set()
    for path in files:
        if (real := path.resolve()) in seen:
            raise CorpusError(f"{path} is named twice, by itself or by its folder; name it once")
        seen.add(real)
    if not files:
        raise CorpusError("a corpus needs at least one file or folder; none was named")
    return tuple(files)


def read_raw_lines(path: Path, *, offset: int = 0, num_lines: int = 0) -> Iterator[Line]:
    """Read lines from byte ``offset`` on, with their line ends.

    ``num_lines`` lines were before them. A compressed file is decompressed up to ``offset`` and
    discarded, in little memory.
    """
    try:
        with OPENERS.get(path.suffix, open)(path, "rb") as stream:
            stream.seek(offset)
            while content := stream.readline(MAX_DOCUMENT_BYTES + 1):
                num_lines += 1
                if len(content) > MAX_DOCUMENT_BYTES:
                    raise CorpusError(describe_too_long(path, num_lines))
                offset += len(content)
                yield Line(content, num_lines, offset)
    except READ_ERRORS as error:
        raise CorpusError(f"{path} cannot be read after line {num_lines}: {error}; unpack or fetch it again") from error


def describe_too_long(path: Path, line: int) -> str:
    """Return the error message for a document that is too long."""
    return (
        f"{path}:{line}: the document is longer than {MAX_DOCUMENT_BYTES // 2**20} MiB; divide it, "
        "in .txt by blank lines"
    )


def _list_below(path: Path) -> list[Path]:
    """List a file itself, or all visible text files of a folder."""
    if path.is_dir():
        text_files = (file for file in path.rglob("*") if file.is_file() and text_suffix(file))
        parts = {file: file.relative_to(path).parts for file in text_files}
        visible_files = [file for file in parts if not any(name.startswith(".") for name in parts[file])]
        if not visible_files:
            raise CorpusError(f"no corpus in the folder {path}; expected {EXPECTED_NAME}")
        return sorted(visible_files, key=lambda file: parts[file])
    if not path.is_file():
        raise CorpusError(f"no file or folder {path}")
    if text_suffix(path) is None:
        raise CorpusError(f"{path} is of no known form; expected {EXPECTED_NAME}")
    return [path]
