"""Tokens of a corpus in a folder, so that it is tokenised once and then read from disk.

Four plain arrays, little-endian, and a JSON file that says what they were made of. They are mapped
into memory, so any size can be read, and every place is reached at once.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mnemic.data.corpora.document import CorpusError, Place
from mnemic.data.corpora.tokens import TokenDocument, Tokens

ABOUT = "kept.json"
ARRAYS = {
    "ids": "<i4",  # of every token
    "starts": "|b1",  # of every token: whether it begins a word
    "ends": "<i4",  # of every sentence: tokens of its document up to its end
    "documents": "<i8",  # of every document, two: tokens and sentences of all up to its end
}
BEGIN = Place()


@dataclass(frozen=True)
class Kept:
    """Tokenised documents; ``read`` is what a ``Stream`` reads from."""

    folder: Path
    arrays: dict[str, np.ndarray]

    @classmethod
    def load(cls, folder: Path, about: str) -> "Kept":
        """What ``keep`` has written; an error if it was not ``about`` this."""
        try:
            told = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise CorpusError(
                f"{folder} holds no kept tokens: {error}; remove it, or name another folder"
            ) from error
        if told.get("about") != about:
            raise CorpusError(
                f"the tokens in {folder} were kept of something else ({told.get('about')!r}, not "
                f"{about!r}); remove the folder, or name another one"
            )
        arrays = {name: _mapped(folder / f"{name}.bin", kind) for name, kind in ARRAYS.items()}
        if {name: len(array) for name, array in arrays.items()} != told.get("lengths"):
            raise CorpusError(f"files in {folder} are not as long as they were; remove the folder")
        return cls(folder, arrays)

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.arrays["documents"]) // 2

    def read(self, place: Place = BEGIN) -> Iterator[TokenDocument]:
        """All documents behind ``place``, of which only the number counts."""
        ids, starts, ends, borders = (self.arrays[name] for name in ARRAYS)
        token, sentence = borders[2 * place.number - 2 :][:2].tolist() if place.number else (0, 0)
        for number in range(place.number, len(self)):
            last, behind = borders[2 * number : 2 * number + 2].tolist()
            own = ends[sentence:behind].tolist()
            tokens = Tokens(ids[token:last], starts[token:last], own)
            yield TokenDocument(tokens, Place(number=number + 1))
            token, sentence = last, behind


def keep(documents: Iterable[TokenDocument], folder: Path, about: str) -> Kept:
    """Write the documents into ``folder``, whole or not at all; if it is there, only load it.

    ``about`` names what the tokens hang on, such as the corpus's fingerprint, the part of it and
    the tokenizer.
    """
    if folder.exists():
        return Kept.load(folder, about)
    beside = folder.with_name(folder.name + ".new")
    shutil.rmtree(beside, ignore_errors=True)  # what a kill may have left
    beside.mkdir(parents=True)
    lengths = dict.fromkeys(ARRAYS, 0)
    with ExitStack() as files:
        streams = {n: files.enter_context((beside / f"{n}.bin").open("wb")) for n in ARRAYS}
        for document in documents:
            ids, starts, ends = document.tokens
            lengths["ids"] += len(ids)
            lengths["ends"] += len(ends)
            rows = (ids, starts, ends, [lengths["ids"], lengths["ends"]])
            for (name, kind), row in zip(ARRAYS.items(), rows):
                streams[name].write(np.asarray(row, dtype=kind).tobytes())
            lengths["documents"] += 2
    lengths["starts"] = lengths["ids"]
    content = json.dumps({"about": about, "lengths": lengths}, indent=1)
    (beside / ABOUT).write_text(content + "\n", encoding="utf-8")
    beside.replace(folder)
    return Kept.load(folder, about)


def _mapped(path: Path, kind: str) -> np.ndarray:
    if not path.is_file():
        raise CorpusError(f"{path} is missing; remove its folder")
    if not path.stat().st_size:
        return np.empty(0, dtype=kind)  # an empty file cannot be mapped
    return np.memmap(path, dtype=kind, mode="r")
