"""Folder of token ids: a corpus that is encoded once and then loaded quickly.

    words.json            what it was made of, and how many tokens each split has
    tokenizer.json        the vocabulary
    train.xz, …           the ids of each split, 16 bits each, little-endian, compressed

A recipe can give such a folder as ``data.folder``, instead of the files themselves.
"""

import json
import lzma
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mnemic.data.contract import Split
from mnemic.data.text_tasks.examples import TextError
from mnemic.text import WordTokenizer, load_tokenizer

METADATA_FILE = "words.json"
FORMAT = 1
MAX_VOCAB = 2**16  # ids that fit into 16 bits


class EncodedSplits(NamedTuple):
    """A tokenizer, and the token ids of each split."""

    tokenizer: WordTokenizer
    splits: Mapping[Split, np.ndarray]


def is_token_folder(folder: Path) -> bool:
    """Return whether a folder holds token ids."""
    return (folder / METADATA_FILE).is_file()


def save_token_folder(encoded: EncodedSplits, folder: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write a token folder, completely or not at all; return its ``words.json``."""
    if folder.exists():
        raise TextError(f"{folder} is there already; remove it, or name another folder")
    unfinished_folder = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(unfinished_folder, ignore_errors=True)  # of a killed process
    unfinished_folder.mkdir(parents=True)
    counts = {split: len(ids) for split, ids in encoded.splits.items()}
    metadata = {"format": FORMAT, "about": dict(options), "vocab": len(encoded.tokenizer), "words": counts}
    encoded.tokenizer.save(unfinished_folder)
    for split, ids in encoded.splits.items():
        packed = lzma.compress(ids.astype("<u2").tobytes(), preset=6)
        (unfinished_folder / f"{split}.xz").write_bytes(packed)
    content = json.dumps(metadata, indent=1, ensure_ascii=False)
    (unfinished_folder / METADATA_FILE).write_text(content + "\n", encoding="utf-8")
    unfinished_folder.replace(folder)
    return metadata


def load_token_folder(folder: Path) -> EncodedSplits:
    """Load a token folder; raise if a file is missing or changed in length."""
    try:
        metadata = json.loads((folder / METADATA_FILE).read_text(encoding="utf-8"))
        counts: dict[Split, int] = metadata["words"]
        if metadata["format"] != FORMAT:
            raise TextError(f"{folder / METADATA_FILE} has format {metadata['format']!r}; expected {FORMAT}")
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise TextError(f"{folder / METADATA_FILE} cannot be read: {error!r}; make it again") from None
    tokenizer = load_tokenizer(folder)
    if not isinstance(tokenizer, WordTokenizer) or len(tokenizer) != metadata["vocab"]:
        raise TextError(f"the vocabulary in {folder} is not the one that was saved; make it again")
    splits: dict[Split, np.ndarray] = {}
    for split, count in counts.items():
        path = folder / f"{split}.xz"
        try:
            ids = np.frombuffer(lzma.decompress(path.read_bytes()), dtype="<u2")
        except (OSError, lzma.LZMAError, ValueError) as error:
            raise TextError(f"{path} cannot be unpacked: {error}; make it again") from None
        if len(ids) != count or (count and int(ids.max()) >= len(tokenizer)):
            raise TextError(f"{path} is not what {METADATA_FILE} says of it; make it again")
        splits[split] = ids
    return EncodedSplits(tokenizer, splits)
