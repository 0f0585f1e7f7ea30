"""Documents as words on disk, so that a corpus is numbered once and then read at once.

    words.json            what it was made of, and how many words each part has
    tokenizer.json        the vocabulary
    train.xz, …           the ids of each part, 16 bits each, little-endian, packed

Such a folder is what ``data.folder`` may name in the place of the files themselves.
"""

import json
import lzma
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mnemic.data.contract import Part
from mnemic.data.text_tasks.examples import TextError
from mnemic.text import Words, load

ABOUT = "words.json"
FORMAT = 1
MOST = 2**16  # words that 16 bits can number


class Numbered(NamedTuple):
    """A vocabulary, and each part of the documents in it."""

    words: Words
    parts: Mapping[Part, np.ndarray]


def is_kept(folder: Path) -> bool:
    return (folder / ABOUT).is_file()


def keep(numbered: Numbered, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write a folder, whole or not at all; returns what ``words.json`` says."""
    if folder.exists():
        raise TextError(f"{folder} is there already; remove it, or name another folder")
    beside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(beside, ignore_errors=True)  # what a kill may have left
    beside.mkdir(parents=True)
    counts = {part: len(ids) for part, ids in numbered.parts.items()}
    told = {"format": FORMAT, "about": dict(about), "vocab": len(numbered.words), "words": counts}
    numbered.words.save(beside)
    for part, ids in numbered.parts.items():
        packed = lzma.compress(ids.astype("<u2").tobytes(), preset=6)
        (beside / f"{part}.xz").write_bytes(packed)
    content = json.dumps(told, indent=1, ensure_ascii=False)
    (beside / ABOUT).write_text(content + "\n", encoding="utf-8")
    beside.replace(folder)
    return told


def load_kept(folder: Path) -> Numbered:
    """What ``keep`` wrote; a file that is missing, cut short or changed in length is an error."""
    try:
        told = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        counts: dict[Part, int] = told["words"]
        if told["format"] != FORMAT:
            raise TextError(f"{folder / ABOUT} has format {told['format']!r}; expected {FORMAT}")
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise TextError(f"{folder / ABOUT} cannot be read: {error!r}; make it again") from None
    words = load(folder)
    if not isinstance(words, Words) or len(words) != told["vocab"]:
        raise TextError(f"the vocabulary in {folder} is not the one that was kept; make it again")
    parts: dict[Part, np.ndarray] = {}
    for part, count in counts.items():
        path = folder / f"{part}.xz"
        try:
            ids = np.frombuffer(lzma.decompress(path.read_bytes()), dtype="<u2")
        except (OSError, lzma.LZMAError, ValueError) as error:
            raise TextError(f"{path} cannot be unpacked: {error}; make it again") from None
        if len(ids) != count or (count and int(ids.max()) >= len(words)):
            raise TextError(f"{path} is not what {ABOUT} says of it; make it again")
        parts[part] = ids
    return Numbered(words, parts)
