"""Plain texts as they are: UTF-8, with the line ends that they have, so that offsets count."""

import sys
from pathlib import Path

TYPED = "-"  # standard input
SPOKEN = "standard input"  # its name for a person
ROWS = (".jsonl", ".tsv", ".csv")  # endings of files whose lines are texts with more beside them


def text_of(name: str) -> str:
    """A file, or standard input; what is no text is an error that names it."""
    if name == TYPED:
        return decoded(sys.stdin.buffer.read(), SPOKEN)
    path = Path(name)
    if path.is_dir():
        raise ValueError(f"{name} is a folder; give the path of a text")
    if not path.is_file():
        raise ValueError(f"there is no file {name}; give the path of a text")
    return decoded(path.read_bytes(), name)


def decoded(raw: bytes, name: str) -> str:
    """The characters of a text, none left out or changed."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        file = "FILE" if name == SPOKEN else name
        raise ValueError(
            f"{name} is no UTF-8 text: {error.reason} at byte {error.start}; a text in latin1 is "
            f"made one by iconv -f latin1 -t utf-8 {file} > NEW_FILE, and PDF and other documents "
            "are for mnemic remember"
        ) from None
