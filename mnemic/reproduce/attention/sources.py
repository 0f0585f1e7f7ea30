"""Write the texts of a table of attention: samples of the user's files.

A source is written below the table's folder with a file that says what it was made of, so that the
same table never learns from other files.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from mnemic.checkpoint.atomic_files import hash_file, write_json
from mnemic.checkpoint.lock import acquire_lock
from mnemic.data.corpora.dataset import CorpusFiles
from mnemic.data.corpora.read_documents import Corpus
from mnemic.data.language_modeling.dataset import LanguageModelFiles
from mnemic.data.text_tasks.examples import TextError
from mnemic.data.text_tasks.files import find_file
from mnemic.data.text_tasks.splits import split_off_validation
from mnemic.data.text_tasks.tables import read_label_first, read_labeled
from mnemic.files import ANYONE, read_json, replace_file
from mnemic.recipe import ConfigError, construct
from mnemic.reproduce.attention.columns import COLUMNS, SourceFolders
from mnemic.reproduce.attention.scale import Scale, SourceSize

SOURCE_FILE = "source.json"
SPLITS = ("train", "validation", "test")
VALIDATION = 0.1  # of the training texts, where there is no file of its own
LOCK_TIMEOUT_S = 3600.0  # while another process writes the same texts

TextRows = Iterable[dict[str, Any]]


class TextFolder(NamedTuple):
    """A folder of the user's files: its option, their names and their reader."""

    option: str
    title: str
    files: tuple[
        tuple[str, ...], ...
    ]  # of train, validation and test: names or their beginnings, the first that is there
    read: Callable[[Path], TextRows]


def read_documents(path: Path) -> TextRows:
    """Read long texts."""
    return ({"text": text} for text in Corpus.from_paths([path]).read())


def read_classes(path: Path) -> TextRows:
    """Read texts with labels, from columns or from lines that begin with the label."""
    is_label_first = path.name.startswith("stsa.")
    examples = read_label_first(path) if is_label_first else read_labeled(path, {}, paired=False)
    return ({"text": example.text, "label": example.label} for example in examples)


SOURCES = {
    "enwiki": TextFolder("--data", "long documents", (("train",), (), ("test", "valid")), read_documents),
    "imdb": TextFolder("--classes", "reviews with their class", (("train",), (), ("test",)), read_classes),
    "sentences": TextFolder(
        "--sentences", "SST-5",
        (("stsa.fine.train", "train"), ("stsa.fine.dev", "valid", "dev"), ("stsa.fine.test", "test")), read_classes,
    ),
}  # fmt: skip


def find_source_files(name: str, folder: str) -> dict[str, Path]:
    """Find the files of a source by split; raise if one is missing."""
    source, paths = SOURCES[name], {}
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise TextError(f"no folder {str(root)!r} with {source.title}: see {source.option}")
    names = [path.name for path in root.iterdir() if path.is_file()]
    for split, prefixes in zip(SPLITS, source.files):
        matches = [prefix for prefix in prefixes if any(file.startswith(prefix) for file in names)]
        if prefixes and (matches or split != "validation"):
            paths[split] = find_file(folder, (matches or prefixes)[0])
    return paths


def prepare_sources(folders: Mapping[str, str], columns: Iterable[str], scale: Scale, root: Path) -> dict[str, Any]:
    """Write what the columns need below ``root``; return what it was made of, by source.

    Another process that does the same is waited for.
    """
    metadata = {}
    columns = list(columns)
    root.mkdir(parents=True, exist_ok=True)
    with wait_for_lock(root / ".lock"):
        for name, folder in folders.items():
            metadata[name] = write_source(name, folder, scale.source_size(name), root / name)
        prepared = SourceFolders(root)
        if "perplexity" in columns and not prepared.words.is_dir():
            vocab = scale.source_size(COLUMNS["perplexity"].source).vocab
            files = LanguageModelFiles(folder=str(root / "enwiki"), validation_file="validation", vocab=vocab)
            files.save_encoded(prepared.words)
        if "masked-words" in columns and not prepared.sequences.is_dir():
            options = {**COLUMNS["masked-words"].data, **scale.column_settings("masked-words").data}
            options |= prepared.data_of("masked-words", scale)
            options |= {"folder": str(root / "enwiki"), "cache": str(prepared.sequences)}
            construct(CorpusFiles, {k: v for k, v in options.items() if k != "kind"}, name="corpus").load_sequences()
    return metadata


@contextmanager
def wait_for_lock(path: Path) -> Iterator[None]:
    """Hold a lock file, after a process that holds it now."""
    descriptor = acquire_lock(path, timeout_s=LOCK_TIMEOUT_S)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def write_source(name: str, folder: str, size: SourceSize, target: Path) -> dict[str, Any]:
    """Write the sampled texts of a source; raise if others are there."""
    paths = find_source_files(name, folder)
    metadata = {
        "sha256": {split: hash_file(path) for split, path in paths.items()},
        "train": size.train,
        "test": size.test,
        "vocab": size.vocab,
    }
    if (target / SOURCE_FILE).is_file():
        written = read_json(target / SOURCE_FILE)
        if {key: written[key] for key in metadata} != metadata:
            raise ConfigError(f"{target} was made of other files or another number of texts: give another --out")
        return written
    shutil.rmtree(target, ignore_errors=True)  # of a killed process
    target.mkdir(parents=True)
    counts = {}
    for split, rows in read_splits(name, paths, size).items():
        counts[split] = len(rows)
        with replace_file(target / f"{split}.jsonl", mode=ANYONE) as file:
            file.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
    write_json(target / SOURCE_FILE, metadata | {"texts": counts})
    return metadata | {"texts": counts}


def read_splits(name: str, paths: Mapping[str, Path], size: SourceSize) -> dict[str, list[dict[str, Any]]]:
    """Read and sample the splits of a source.

    Without a validation file, validation is a tenth of train.
    """
    limits = {"train": size.train, "validation": 0, "test": size.test}
    rows = {split: sample_rows(SOURCES[name].read(path), limits[split], name) for split, path in paths.items()}
    if "validation" not in rows:
        rows["train"], rows["validation"] = split_off_validation(rows["train"], VALIDATION)
    if empty := [split for split in ("train", "test") if not rows[split]]:
        raise TextError(f"{paths[empty[0]]} has too few texts for this table")
    return rows


def sample_rows(rows: TextRows, limit: int, name: str) -> list[dict[str, Any]]:
    """Take the first ``limit`` long documents, or draw that many short texts; 0: all."""
    if name == "enwiki":
        return list(islice(rows, limit or None))
    texts = list(rows)
    return texts if not limit or len(texts) <= limit else Random(0).sample(texts, limit)
