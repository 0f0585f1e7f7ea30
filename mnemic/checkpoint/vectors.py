"""Save, verify and load word vectors. A folder of them has plain files:

    vectors.json           how they were made, and the SHA-256 of the other files
    words.json             the words, most frequent first, and how often each occurs
    vectors.safetensors    the vectors, one row per word

The folder is written under another name and renamed when it is complete. Nothing is pickled.
Vectors of others are read from a text file, ``word v1 v2 …`` per line (see ``vector_lines``).

Shapes: n words, d width.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.checkpoint.atomic_files import CheckpointError, hash_file, replace_folder, write_json
from mnemic.checkpoint.tensors import read_tensors, write_tensors
from mnemic.checkpoint.vector_lines import read_vector_lines
from mnemic.files import read_json

VECTOR_FORMAT = 1
CARD, WORDS, VECTORS = "vectors.json", "words.json", "vectors.safetensors"
TENSOR_NAME = "vectors"


class VectorTable(NamedTuple):
    """Words with one vector each."""

    words: tuple[str, ...]  # most frequent first
    vectors: Tensor  # n d
    counts: tuple[int, ...] = ()  # how often each word occurs; empty: unknown
    card: Mapping[str, Any] = {}  # how the vectors were made; empty: unknown

    @property
    def width(self) -> int:
        """The width of a vector."""
        return self.vectors.shape[1]

    def find_nearest(self, word: str, top_k: int = 5) -> list[tuple[str, float]]:
        """Find the words whose vectors have the largest cosine with that of ``word``."""
        if word not in self.words:
            raise ValueError(f"{word!r} has no vector; give one of the {len(self.words):,} words")
        index = self.words.index(word)
        normalized = torch.nn.functional.normalize(self.vectors, dim=-1)  # n d
        cosines = normalized @ normalized[index]  # n
        cosines[index] = -torch.inf
        best = cosines.topk(min(top_k, len(self.words) - 1))
        return [(self.words[row], cosine) for row, cosine in zip(best.indices.tolist(), best.values.tolist())]


def save_vectors(folder: Path, table: VectorTable) -> None:
    """Save word vectors to ``folder``, which they replace atomically."""
    new_folder = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new_folder, ignore_errors=True)
    new_folder.mkdir(parents=True)
    write_tensors(new_folder / VECTORS, {TENSOR_NAME: table.vectors})
    write_json(new_folder / WORDS, {"words": table.words, "counts": table.counts})
    files = {path.name: hash_file(path) for path in sorted(new_folder.iterdir())}
    write_json(new_folder / CARD, {"format": VECTOR_FORMAT, **table.card, "files": files})
    replace_folder(new_folder, folder)


def is_vector_folder(path: Path) -> bool:
    """Return whether a folder holds word vectors, whole or not."""
    return (path / CARD).is_file()


def check_vectors_replaceable(folder: Path) -> None:
    """Raise an error if word vectors would replace something else."""
    if folder.exists() and not is_vector_folder(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckpointError(f"{folder} holds no word vectors, which would replace it; give another --out")


def load_vectors(path: Path) -> VectorTable:
    """Load word vectors from a folder, or from a text file, and verify them."""
    if is_vector_folder(path):
        return load_vector_folder(path)
    chunks = list(iterate_vectors(path))
    rows: dict[str, int] = {}
    for row, word in enumerate(word for chunk in chunks for word in chunk.words):
        rows.setdefault(word, row)  # the first of equal words counts
    return VectorTable(tuple(rows), torch.cat([chunk.vectors for chunk in chunks])[list(rows.values())])


def iterate_vectors(path: Path) -> Iterator[VectorTable]:
    """Yield the word vectors of a folder or a text file, chunk by chunk."""
    if is_vector_folder(path):
        yield load_vector_folder(path)
    elif path.is_file():
        for words, vectors in read_vector_lines(path):
            yield VectorTable(words, vectors)
    else:
        reason = f"the folder has no {CARD}" if path.is_dir() else "there is no such folder or file"
        raise CheckpointError(
            f"no word vectors in {str(path)!r} ({reason}); make some with `mnemic train vectors --data DIR --out "
            f"{path}`, or give a text file with a word and its numbers per line"
        )


def load_vector_folder(folder: Path) -> VectorTable:
    """Load what ``save_vectors`` wrote; raise an error if a file is missing or changed."""
    card = read_json(folder / CARD, error=CheckpointError)
    if card.get("format") != VECTOR_FORMAT:
        raise CheckpointError(
            f"{folder / CARD} has format {card.get('format')!r}; this version reads format {VECTOR_FORMAT}"
        )
    digests = card.get("files")
    if not isinstance(digests, dict) or digests.keys() != {WORDS, VECTORS}:
        raise CheckpointError(f"{folder / CARD} does not list the files {WORDS} and {VECTORS}")
    for name, digest in digests.items():
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder / name} is missing; restore it from a copy, or train again with --fresh")
        if hash_file(folder / name) != digest:
            raise CheckpointError(
                f"{folder / name} was changed or cut short after it was saved (its SHA-256 is not that of {CARD}); "
                "restore it from a copy, or train again with --fresh"
            )
    content, tensors = read_json(folder / WORDS, error=CheckpointError), read_tensors(folder / VECTORS)
    words: Any = content.get("words")
    counts: Any = content.get("counts")
    vectors = tensors.get(TENSOR_NAME)
    if not is_list_of(words, str) or not is_list_of(counts, int) or len({*words}) < len(words):
        raise CheckpointError(f"{folder / WORDS} does not hold 'words', each once, and their 'counts'")
    if vectors is None or vectors.dim() != 2 or len(vectors) != len(words) or len(counts) not in (0, len(words)):
        raise CheckpointError(f"{folder / VECTORS} does not hold one vector for each of {len(words):,} words")
    if not words or not vectors.isfinite().all():
        raise CheckpointError(f"{folder / VECTORS} holds no numbers, or some that are not finite")
    card = {key: value for key, value in card.items() if key not in ("format", "files")}
    return VectorTable(tuple(words), vectors.float(), tuple(counts), card)


def is_list_of(value: Any, item_type: type) -> bool:
    """Return whether a value is a list of items of one type."""
    return isinstance(value, list) and all(type(item) is item_type for item in value)
