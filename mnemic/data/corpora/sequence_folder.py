"""Training sequences in a folder: made once, then mapped into memory and read in any order.

A set of sequences is four plain arrays, little-endian, so any size can be read in little memory:

    tokens     of every token: twice its id, and 1 more where a word begins
    lengths    of every sequence: its tokens, special ones included
    seconds    of every sequence: where its second segment begins; its length if there is none
    follows    of every sequence: 1, 0 or IGNORE, the target of next-sentence prediction

``corpus.json`` beside them says what they were made of, ``tokenizer.json`` by which vocabulary.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mnemic.data.contract import Part
from mnemic.data.corpora.document import CorpusError
from mnemic.data.corpora.sequences import Example
from mnemic.text import Subwords, load_subwords

ABOUT = "corpus.json"
ARRAYS = {"tokens": "", "lengths": "<i4", "seconds": "<i4", "follows": "|i1"}
NARROW = 2**15  # a vocabulary up to this size has tokens of two bytes


class Sequences(NamedTuple):
    """The arrays of one part; r sequences, t tokens."""

    tokens: np.ndarray  # t
    lengths: np.ndarray  # r
    seconds: np.ndarray  # r
    follows: np.ndarray  # r


class Kept(NamedTuple):
    """A folder of sequences."""

    about: dict[str, Any]  # what they were made of, as the maker of the folder said
    tokenizer: Subwords
    parts: dict[Part, Sequences]


class Making:
    """A folder in the making: part by part, beside its place, then put there as a whole."""

    def __init__(self, folder: Path, tokenizer: Subwords) -> None:
        self.folder, self.tokenizer = folder, tokenizer
        self.beside = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(self.beside, ignore_errors=True)  # what a kill may have left
        self.beside.mkdir(parents=True)
        self.lengths: dict[str, dict[str, int]] = {}

    def add(self, part: Part, examples: Iterable[Example]) -> None:
        """Write the sequences of a part as they come."""
        kind, sizes = kind_of(len(self.tokenizer)), dict.fromkeys(ARRAYS, 0)
        with ExitStack() as files:
            paths = {name: path_of(self.beside, part, name) for name in ARRAYS}
            streams = {n: files.enter_context(path.open("wb")) for n, path in paths.items()}
            for own in examples:
                tokens = own.ids.astype(np.int64) * 2 + own.starts
                rows = (tokens, len(own.ids), second_of(own), own.follows)
                for (name, fixed), row in zip(ARRAYS.items(), rows):
                    array = np.atleast_1d(np.asarray(row)).astype(fixed or kind)
                    streams[name].write(array.tobytes())
                    sizes[name] += len(array)
        self.lengths[part] = sizes

    def finish(self, about: Mapping[str, Any]) -> Kept:
        """Put the folder in its place."""
        self.tokenizer.save(self.beside)
        told = {"about": about, "lengths": self.lengths}
        content = json.dumps(told, indent=1, ensure_ascii=False)
        (self.beside / ABOUT).write_text(content + "\n", encoding="utf-8")
        self.beside.replace(self.folder)
        return load_kept(self.folder)


def load_kept(folder: Path) -> Kept:
    """What ``Making`` has written; nothing is read before it is asked for."""
    try:
        told = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        about, lengths = told["about"], told["lengths"]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise CorpusError(
            f"{folder} holds no kept sequences: {error}; remove it, or name another folder"
        ) from error
    tokenizer = load_subwords(folder)
    if tokenizer is None:
        raise CorpusError(f"{folder} has no tokenizer.json; remove the folder")
    kind = kind_of(len(tokenizer))
    parts: dict[Part, Sequences] = {}
    for part, sizes in lengths.items():
        arrays = {
            name: mapped(path_of(folder, part, name), fixed or kind)
            for name, fixed in ARRAYS.items()
        }
        if {name: len(array) for name, array in arrays.items()} != sizes:
            raise CorpusError(f"files in {folder} are not as long as they were; remove the folder")
        parts[part] = Sequences(**arrays)
    return Kept(about, tokenizer, parts)


def is_kept(folder: Path) -> bool:
    return (folder / ABOUT).is_file()


def kind_of(vocab: int) -> str:
    """How a token is written."""
    return "<u2" if vocab <= NARROW else "<u4"


def second_of(example: Example) -> int:
    """Where the second segment begins; behind the sequence if there is none."""
    return int(np.searchsorted(example.segments, 1))


def path_of(folder: Path, part: str, name: str) -> Path:
    return folder / f"{part}.{name}.bin"


def mapped(path: Path, kind: str) -> np.ndarray:
    if not path.is_file():
        raise CorpusError(f"{path} is missing; remove its folder")
    if not path.stat().st_size:
        return np.empty(0, dtype=kind)  # an empty file cannot be mapped
    return np.memmap(path, dtype=kind, mode="c")  # for torch, which wants to be able to write
