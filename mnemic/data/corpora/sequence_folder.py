"""Folder of pre-training sequences: written once, then memory-mapped.

The sequences of a split are four plain little-endian arrays, so any size is read in little memory:

    tokens     per token: twice its id, plus 1 where a word starts
    lengths    per sequence: its tokens, special tokens included
    seconds    per sequence: where its second segment starts; its length if there is none
    follows    per sequence: 1, 0 or IGNORE, the target of next-sentence prediction

``corpus.json`` says what they were made of, ``tokenizer.json`` holds the tokenizer. A folder can be
packed (``packed_folder``).
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mnemic.data.contract import Split
from mnemic.data.corpora.make_sequences import PretrainingSequence
from mnemic.data.corpora.packed_folder import DIGESTS, METADATA_FILE, unpack_array
from mnemic.data.corpora.read_documents import CorpusError
from mnemic.text import SubwordTokenizer, load_subword_tokenizer

ARRAYS = {"tokens": "", "lengths": "<i4", "seconds": "<i4", "follows": "|i1"}
MAX_16_BIT_VOCAB = 2**15  # a vocabulary up to this size has tokens of two bytes


class SequenceArrays(NamedTuple):
    """The arrays of one split; r sequences, t tokens."""

    tokens: np.ndarray  # t
    lengths: np.ndarray  # r
    seconds: np.ndarray  # r
    follows: np.ndarray  # r


class SequenceFolder(NamedTuple):
    """The content of a folder of sequences."""

    metadata: dict[str, Any]  # what they were made of
    tokenizer: SubwordTokenizer
    splits: dict[Split, SequenceArrays]


class SequenceFolderWriter:
    """Writes a folder of sequences split by split, under another name until it is complete."""

    def __init__(self, folder: Path, tokenizer: SubwordTokenizer) -> None:
        self.folder, self.tokenizer = folder, tokenizer
        self.unfinished_folder = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(self.unfinished_folder, ignore_errors=True)  # of a killed process
        self.unfinished_folder.mkdir(parents=True)
        self.lengths: dict[str, dict[str, int]] = {}

    def write_split(self, split: Split, sequences: Iterable[PretrainingSequence]) -> None:
        """Write the sequences of one split as they come."""
        dtype, sizes = token_dtype(len(self.tokenizer)), dict.fromkeys(ARRAYS, 0)
        with ExitStack() as files:
            paths = {name: self.unfinished_folder / f"{split}.{name}.bin" for name in ARRAYS}
            streams = {n: files.enter_context(path.open("wb")) for n, path in paths.items()}
            for sequence in sequences:
                tokens = sequence.ids.astype(np.int64) * 2 + sequence.word_starts
                second_start = int(np.searchsorted(sequence.segments, 1))
                values = (tokens, len(sequence.ids), second_start, sequence.follows)
                for (name, array_dtype), value in zip(ARRAYS.items(), values):
                    array = np.atleast_1d(np.asarray(value)).astype(array_dtype or dtype)
                    streams[name].write(array.tobytes())
                    sizes[name] += len(array)
        self.lengths[split] = sizes

    def finish(self, metadata: Mapping[str, Any]) -> SequenceFolder:
        """Write the metadata, move the folder to its final path, and load it."""
        self.tokenizer.save(self.unfinished_folder)
        description = {"about": metadata, "lengths": self.lengths}
        content = json.dumps(description, indent=1, ensure_ascii=False)
        (self.unfinished_folder / METADATA_FILE).write_text(content + "\n", encoding="utf-8")
        self.unfinished_folder.replace(self.folder)
        return load_sequence_folder(self.folder)


def load_sequence_folder(folder: Path) -> SequenceFolder:
    """Load a folder of sequences, memory-mapped; a packed one is read into memory."""
    try:
        description = json.loads((folder / METADATA_FILE).read_text(encoding="utf-8"))
        metadata, lengths, digests = description["about"], description["lengths"], description.get(DIGESTS)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise CorpusError(f"{folder} holds no sequences: {error}; remove it, or name another folder") from error
    tokenizer = load_subword_tokenizer(folder)
    if tokenizer is None:
        raise CorpusError(f"{folder} has no tokenizer.json; remove the folder")
    dtype = token_dtype(len(tokenizer))
    splits: dict[Split, SequenceArrays] = {}
    for split, sizes in lengths.items():
        arrays = {}
        for name, array_dtype in ARRAYS.items():
            path = folder / f"{split}.{name}.bin"
            if digests is None:
                arrays[name] = map_array(path, array_dtype or dtype)
            else:
                arrays[name] = unpack_array(path, array_dtype or dtype, sizes[name], digests.get(path.name))
        if {name: len(array) for name, array in arrays.items()} != sizes:
            raise CorpusError(f"files in {folder} are not as long as they were; remove the folder")
        splits[split] = SequenceArrays(**arrays)
    return SequenceFolder(metadata, tokenizer, splits)


def is_sequence_folder(folder: Path) -> bool:
    """Return whether a folder holds sequences."""
    return (folder / METADATA_FILE).is_file()


def token_dtype(vocab: int) -> str:
    """Return the dtype of stored tokens for a vocabulary size."""
    return "<u2" if vocab <= MAX_16_BIT_VOCAB else "<u4"


def map_array(path: Path, dtype: str) -> np.ndarray:
    """Memory-map an array file."""
    if not path.is_file():
        raise CorpusError(f"{path} is missing; remove its folder")
    if not path.stat().st_size:
        return np.empty(0, dtype=dtype)  # an empty file cannot be mapped
    return np.memmap(path, dtype=dtype, mode="c")  # copy-on-write: torch wants writable memory
