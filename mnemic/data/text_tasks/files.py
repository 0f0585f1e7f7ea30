"""Find and open the files of a data set: plain, .gz or .xz, always utf-8."""

import gzip
import json
import lzma
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from mnemic.data.corpora.files import BROKEN
from mnemic.data.text_tasks.examples import TextError

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}


def find(folder: str, name: str) -> Path:
    """The file ``name`` in ``folder``, or the only one whose name begins with it."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise TextError(f"no folder {str(root)!r}; give the one with the data's files: --data DIR")
    if (root / name).is_file():
        return root / name
    found = sorted(path for path in root.iterdir() if path.is_file())
    fitting = [path for path in found if path.name.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(path.name for path in fitting or found) or "no files"
    raise TextError(
        f"{'no' if not fitting else 'more than one'} file named {name!r} in {root} (there: "
        f"{there}); say which file it is with data.learnt (to train on), data.held (validation) or "
        "data.tested (to test on), such as --set data.tested=dev"
    )


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line of a file, as ``decoded`` gives them."""
    with OPENERS.get(path.suffix, open)(path, "rb") as file:
        yield from decoded(file, str(path))


def content(path: Path) -> bytes:
    """All bytes of a file, unpacked."""
    with OPENERS.get(path.suffix, open)(path, "rb") as file:
        try:
            return bytes(file.read())
        except BROKEN as error:
            reason = str(error) or "the file is cut short"
            raise TextError(f"{path} cannot be unpacked: {reason}") from None


def decoded(file: Iterable[bytes], path: str) -> Iterator[tuple[int, str]]:
    """Every line with its number, from 1, without its end; a byte order mark is left out."""
    number = 0
    try:
        for number, raw in enumerate(file, start=1):
            text = raw.decode("utf-8")
            yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise TextError(f"{path}, line {number}: not utf-8 ({error.reason})") from None
    except BROKEN as error:
        reason = str(error) or "the file is cut short"
        raise TextError(f"{path} cannot be unpacked after line {number}: {reason}") from None


def read_json(path: Path) -> Any:
    """A whole file of JSON."""
    try:
        return json.loads("\n".join(line for _, line in lines(path)))
    except json.JSONDecodeError as error:
        raise TextError(f"{path}, line {error.lineno}: no valid JSON ({error.msg})") from None
