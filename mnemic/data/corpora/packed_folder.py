"""Pack a folder of sequences: the same arrays compressed, small enough to travel.

Each ``NAME.bin`` of the folder is ``NAME.bin.xz`` in the packed one, and ``corpus.json`` has the
SHA-256 of its content. Nothing is unpacked to the disk: an array is read into memory as it is
decompressed.
"""

import json
import lzma
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from mnemic.data.corpora.read_documents import CorpusError

CHUNK_BYTES = 2**20
SUFFIX, METADATA_FILE = ".xz", "corpus.json"
DIGESTS = "packed"  # in corpus.json: the SHA-256 of each array's content, by file name
# Tokens are two bytes: the byte of each position in a pair has statistics of its own.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lp": 1, "lc": 3, "pb": 1}]
OnBytes = Callable[[int, int], None]  # is told how many bytes of how many are packed


def pack_folder(source: Path, folder: Path, on_progress: OnBytes = lambda num_bytes, total: None) -> None:
    """Pack the folder of sequences ``source`` into ``folder``, completely or not at all."""
    description = json.loads((source / METADATA_FILE).read_text(encoding="utf-8"))
    if DIGESTS in description:
        raise CorpusError(f"{source} is packed already: copy it")
    if folder.exists():
        raise CorpusError(f"{folder} is there already; remove it, or name another folder")
    unfinished_folder = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(unfinished_folder, ignore_errors=True)  # of a killed process
    unfinished_folder.mkdir(parents=True)
    arrays = sorted(source.glob("*.bin"))
    total, num_bytes, digests = sum(path.stat().st_size for path in arrays), 0, {}
    for path in sorted(source.iterdir()):
        if path.is_file() and path not in arrays and path.name != METADATA_FILE:
            shutil.copyfile(path, unfinished_folder / path.name)
    for path in arrays:
        digest = sha256()
        target = unfinished_folder / (path.name + SUFFIX)
        with path.open("rb") as file, lzma.open(target, "wb", check=lzma.CHECK_CRC64, filters=FILTERS) as packed:
            while chunk := file.read(CHUNK_BYTES):
                packed.write(chunk)
                digest.update(chunk)
                num_bytes += len(chunk)
                on_progress(num_bytes, total)
        digests[path.name] = digest.hexdigest()
    content = json.dumps(description | {DIGESTS: digests}, indent=1, ensure_ascii=False)
    (unfinished_folder / METADATA_FILE).write_text(content + "\n", encoding="utf-8")
    unfinished_folder.replace(folder)


def unpack_array(path: Path, dtype: str, length: int, digest: Any) -> np.ndarray:
    """Read the array that was packed as ``path`` + ``.xz``, of ``length`` elements.

    Raise if the file is missing, cut short, damaged or not the one that was packed.
    """
    packed = path.with_name(path.name + SUFFIX)
    again = "copy the folder again, or pack it again"
    if not packed.is_file():
        raise CorpusError(f"{packed} is missing: {again}")
    array = np.empty(length, dtype=dtype)
    content, position, hasher = array.view(np.uint8), 0, sha256()
    try:
        with lzma.open(packed, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                end = position + len(chunk)
                if end > len(content):
                    break
                content[position:end] = np.frombuffer(chunk, dtype=np.uint8)
                hasher.update(chunk)
                position = end
    except (lzma.LZMAError, EOFError) as error:
        raise CorpusError(f"{packed} is damaged or was cut short ({error}): {again}") from None
    if position != len(content) or chunk or hasher.hexdigest() != digest:
        raise CorpusError(f"{packed} is not the file that was packed (its SHA-256 is not that of corpus.json): {again}")
    return array
