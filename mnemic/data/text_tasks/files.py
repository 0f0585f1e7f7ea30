"""Find and read the files of a dataset: plain, .gz or .xz, in utf-8."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mnemic.data.corpora.read_documents import OPENERS, READ_ERRORS
from mnemic.data.text_tasks.examples import TextError


def find_file(folder: str, name: str) -> Path:
    """Find the file ``name`` in ``folder``, or the only one whose name starts with it."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise TextError(f"no folder {str(root)!r}; give the one with the data's files: --data DIR")
    if (root / name).is_file():
        return root / name
    paths = sorted(path for path in root.iterdir() if path.is_file())
    matches = [path for path in paths if path.name.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(path.name for path in matches or paths) or "no files"
    raise TextError(
        f"{'no' if not matches else 'more than one'} file named {name!r} in {root} (there: "
        f"{names}); say which file it is with data.train_file (to train on), data.validation_file (validation) or "
        "data.test_file (to test on; --split validation needs none), such as data.test_file=dev"
    )


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read a file line by line, with line numbers from 1."""
    with OPENERS.get(path.suffix, open)(path, "rb") as file:
        yield from decode_lines(file, str(path))


def read_bytes(path: Path) -> bytes:
    """Read all bytes of a file, decompressed."""
    with OPENERS.get(path.suffix, open)(path, "rb") as file:
        try:
            return bytes(file.read())
        except READ_ERRORS as error:
            reason = str(error) or "the file is cut short"
            raise TextError(f"{path} cannot be unpacked: {reason}") from None


def decode_lines(file: Iterable[bytes], path: str) -> Iterator[tuple[int, str]]:
    """Decode lines and number them from 1; strip line ends and a byte order mark."""
    number = 0
    try:
        for number, raw in enumerate(file, start=1):
            text = raw.decode("utf-8")
            yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise TextError(f"{path}, line {number}: not utf-8 ({error.reason})") from None
    except READ_ERRORS as error:
        reason = str(error) or "the file is cut short"
        raise TextError(f"{path} cannot be unpacked after line {number}: {reason}") from None


def read_json(path: Path) -> Any:
    """Parse a file of JSON."""
    try:
        return json.loads("\n".join(line for _, line in read_lines(path)))
    except json.JSONDecodeError as error:
        raise TextError(f"{path}, line {error.lineno}: no valid JSON ({error.msg})") from None
