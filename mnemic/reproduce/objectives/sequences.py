"""Make the sequences of a table of objectives, in every format.

Below ``root`` there is a folder per format, with one vocabulary. All are made of sequences of
single sentences, which are the user's, or are made of the user's texts.
"""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from mnemic.data.corpora.dataset import CorpusFiles
from mnemic.data.corpora.packed_folder import METADATA_FILE
from mnemic.data.corpora.read_documents import CorpusError, list_files
from mnemic.data.corpora.regroup import SENTENCES, regroup_folder
from mnemic.data.corpora.sequence_folder import is_sequence_folder, load_sequence_folder
from mnemic.files import read_json
from mnemic.recipe import construct
from mnemic.reproduce.attention.sources import wait_for_lock
from mnemic.reproduce.objectives.rows import HELD_OUT_FORMAT, ObjectiveRow, build_data_spec, name_sequences
from mnemic.reproduce.objectives.scale import ObjectivesScale

SENTENCE_TOKENS = 512  # a longer sentence is cut
VALIDATION = "valid"  # files with this beginning are held out; else a share of the documents
NAMES_NEED_TEXTS = "names are found in texts, and --data has sequences"


def find_reason(row: ObjectiveRow, data: str, root: Path) -> str:
    """Say why a row has no sequences; empty if it has or gets some."""
    is_made = is_sequence_folder(root / name_sequences(SENTENCES, row.words))
    if row.words == "text" or is_made or not is_sequence_folder(Path(data).expanduser()):
        return ""
    return NAMES_NEED_TEXTS


def prepare_sequences(data: str, rows: Iterable[ObjectiveRow], scale: ObjectivesScale, root: Path) -> None:
    """Write the sequences that rows need below ``root``; those that are there stay.

    Another process that does the same is waited for.
    """
    needed = {(HELD_OUT_FORMAT, "text"), *((row.format, row.words) for row in rows)}
    root.mkdir(parents=True, exist_ok=True)
    with wait_for_lock(root / ".lock"):
        for words in ("text", "entities"):
            formats = sorted(format for format, kind in needed if kind == words)
            missing = [name for name in formats if not is_sequence_folder(root / name_sequences(name, words))]
            if missing:
                sentences = load_sequence_folder(prepare_sentences(data, words, scale, root))
                if not len(sentences.splits["validation"].lengths):
                    raise CorpusError(f"{data} has no held-out texts: add a file whose name begins with {VALIDATION!r}")
                for name in missing:
                    folder = root / name_sequences(name, words)
                    regroup_folder(sentences, folder, format={"kind": name}, max_tokens=scale.length)


def prepare_sentences(data: str, words: str, scale: ObjectivesScale, root: Path) -> Path:
    """Return the folder of single sentences; make it of texts if it is not there."""
    folder, path = root / name_sequences(SENTENCES, words), Path(data).expanduser()
    if is_sequence_folder(folder):
        return folder
    if is_sequence_folder(path):
        return path
    has_validation = any(file.name.startswith(VALIDATION) for file in list_files([path]))
    # Words of all kinds have one vocabulary.
    tokenizer: dict[str, Any] = {"kind": "wordpiece", "vocab": scale.vocab, "coverage": 0.9999}
    if words != "text":
        tokenizer = {"kind": "stored", "folder": str(prepare_sentences(data, "text", scale, root))}
    options = {
        "folder": str(path), "validation_file": VALIDATION if has_validation else "", "tokenizer": tokenizer,
        "format": {"kind": SENTENCES}, "length": SENTENCE_TOKENS, "words": words, "cache": str(folder),
    }  # fmt: skip
    construct(CorpusFiles, options, name="corpus").load_sequences()
    return folder


def load_corpus(format: str, length: int, folder: Path, words: str = "text") -> CorpusFiles:
    """Return the data of sequences in a folder."""
    spec = build_data_spec(format, length, folder, words=words)
    return construct(CorpusFiles, {key: value for key, value in spec.items() if key != "kind"}, name="corpus")


def hash_sequences(folder: Path) -> str:
    """Hash what sequences were made of, and how many there are, packed or not."""
    description = read_json(folder / METADATA_FILE)
    about = {key: value for key, value in description["about"].items() if key != "tokenizer"}
    key = json.dumps([about, description["lengths"]], sort_keys=True)
    return sha256(key.encode()).hexdigest()[:16]


def measure_mean_length(folder: Path) -> float:
    """Return the mean number of tokens of training sequences."""
    lengths = read_json(folder / METADATA_FILE)["lengths"]["train"]
    return float(lengths["tokens"]) / float(lengths["lengths"])
