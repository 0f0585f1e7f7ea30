"""Compare kinds of word vectors that learn from the same words.

Finished vectors are saved, so an interrupted table resumes.
"""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.checkpoint.atomic_files import write_json
from mnemic.checkpoint.lock import lock_folder
from mnemic.checkpoint.vectors import VectorTable, save_vectors
from mnemic.data import DATASETS
from mnemic.data.contract import Split
from mnemic.data.corpora.read_documents import Corpus
from mnemic.evaluate.word_vectors import classify_by_mean, mean_vectors, rate_similarity, solve_analogies
from mnemic.recipe import ConfigError, build, parameters_of
from mnemic.reproduce.rows import append_rows, describe_hardware, describe_versions, read_rows
from mnemic.text.tokenizers.words import list_words
from mnemic.train.vectors import VECTOR_LEARNERS
from mnemic.train.vectors.train import train_vectors

ROWS_FILE = "rows.jsonl"
SIMILARITY_FILES = {"wordsim": "wordsim353.tsv", "simlex": "simlex999.txt"}
ANALOGY_FILE = "questions-words.txt"
HIERARCHICAL = "-hierarchical"  # at the end of a kind's name: a tree in place of random words
DEFAULT_KINDS = (
    "svd", "cbow", "cbow-corrected", "skip-gram", "cbow-hierarchical", "skip-gram-hierarchical", "glove", "fasttext",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class VectorsTable:
    """The settings of a table of word vectors: documents, kinds, size, and seeds."""

    data: str  # a file or a folder of documents
    classes: str = ""  # a folder of texts with labels; empty: none
    kinds: Sequence[str] = DEFAULT_KINDS
    width: int = 100
    epochs: int = 0  # of kinds that have epochs; 0: as each kind has
    max_documents: int = 0  # 0: all
    seeds: int = 1
    threads: int = 1

    def __post_init__(self) -> None:
        if self.seeds < 1 or not self.kinds:
            raise ConfigError(f"a table takes kinds and seeds ≥ 1, not {self.seeds} seeds")
        for kind in self.kinds:
            build(VECTOR_LEARNERS, self.spec_of(kind)).check_installed()

    def spec_of(self, name: str) -> dict[str, Any]:
        """Return the kind and the options that a name of the table stands for."""
        kind = name.removesuffix(HIERARCHICAL)
        spec: dict[str, Any] = {"kind": kind, "width": self.width}
        if kind != name:
            spec["hierarchical"] = True
        if self.epochs and kind in VECTOR_LEARNERS and "epochs" in parameters_of(VECTOR_LEARNERS[kind]):
            spec["epochs"] = self.epochs
        return spec

    def key_of(self, name: str, seed: int) -> str:
        """Return what a row depends on."""
        corpus = Corpus.from_paths([Path(self.data)])
        settings = [self.spec_of(name), self.max_documents, self.classes, corpus.fingerprint, seed]
        return " ".join(map(str, settings))


class VectorStep(NamedTuple):
    """The progress of a table: the vectors that are learned, and the words read."""

    name: str
    seed: int
    number: int  # of the vectors, from 0
    num_read: int = 0
    num_words: int = 0


OnStep = Callable[[VectorStep], None]


class VectorSets(NamedTuple):
    """What vectors are measured on."""

    similarity: dict[str, list[tuple[str, str, float]]]
    analogies: list[tuple[str, str, str, str]]
    classes: dict[str, tuple[list[list[str]], list[int]]]  # by split: the words of texts, and labels


def train_missing_vectors(table: VectorsTable, folder: Path, on_progress: OnStep) -> Generator[VectorStep, None, None]:
    """Learn and measure missing vectors; then call ``save_vectors_table``.

    ``on_progress`` is called with a ``VectorStep`` while vectors learn; what it raises ends them.
    """
    sets, corpus = read_sets(table), Corpus.from_paths([Path(table.data)])
    with lock_folder(folder):
        for number, (seed, name) in enumerate(product(range(table.seeds), table.kinds)):
            step, key = VectorStep(name, seed, number), table.key_of(name, seed)
            yield step
            if key in load_vector_rows(folder):
                continue
            start = time.perf_counter()
            vectors = train_vectors(
                table.spec_of(name), corpus, max_documents=table.max_documents, seed=seed, threads=table.threads,
                on_progress=partial(report_step, on_progress, step),
            )  # fmt: skip
            row = {"key": key, "kind": name, "seed": seed, "seconds": round(time.perf_counter() - start, 1)}
            row |= {"words_read": vectors.card["corpus"]["words"], "words": len(vectors.words)}
            save_vectors(folder / f"{name}-{seed}", vectors)
            hardware = describe_hardware(torch.device("cpu"))
            append_rows(folder / ROWS_FILE, [row | measure_vectors(vectors, sets) | {"hardware": hardware}])


def report_step(on_progress: OnStep, step: VectorStep, num_read: int, num_words: int) -> None:
    """Report how many words of how many a kind has read."""
    on_progress(step._replace(num_read=num_read, num_words=num_words))


def measure_vectors(table: VectorTable, sets: VectorSets) -> dict[str, Any]:
    """Measure vectors on all sets: correlations and shares in percent, with their coverage."""
    ranks = {word: rank for rank, word in enumerate(table.words)}
    measured = {name: rate_similarity(table.vectors, ranks, pairs) for name, pairs in sets.similarity.items()}
    measured["analogies"] = solve_analogies(table.vectors, ranks, sets.analogies)
    row: dict[str, Any] = {name: 100 * coverage.score for name, coverage in measured.items()}
    row["covered"] = {name: [coverage.num_covered, coverage.num_examples] for name, coverage in measured.items()}
    if sets.classes:

        def embed(split: str) -> tuple[Tensor, list[int]]:
            texts, labels = sets.classes[split]
            return mean_vectors(table.vectors, ranks, texts), labels

        row["classes"] = 100 * classify_by_mean(embed("train"), embed("test"))
    return row


def read_sets(table: VectorsTable) -> VectorSets:
    """Read the test sets that gensim has, and the texts with labels."""
    spec = find_spec("gensim")
    if spec is None or spec.origin is None:
        raise ValueError("the test sets of word vectors are gensim's: pip install 'mnemic[vectors]'")
    folder = Path(spec.origin).parent / "test" / "test_data"
    similarity = {name: read_pairs(folder / file) for name, file in SIMILARITY_FILES.items()}
    return VectorSets(similarity, read_analogies(folder / ANALOGY_FILE), read_classes(table.classes))


def read_pairs(path: Path) -> list[tuple[str, str, float]]:
    """Read pairs of words with a rating; lines that begin with # are comments."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row[0].lower(), row[1].lower(), float(row[2])) for row in rows if len(row) == 3 and row[0][:1] != "#"]


def read_analogies(path: Path) -> list[tuple[str, str, str, str]]:
    """Read questions of four words; lines that begin with a colon name a section."""
    rows = [line.lower().split() for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith(":")]
    return [(row[0], row[1], row[2], row[3]) for row in rows if len(row) == 4]


def read_classes(folder: str) -> dict[str, tuple[list[list[str]], list[int]]]:
    """Read texts with labels: those to learn from, and the file ``dev``, else ``test``."""
    if not folder:
        return {}
    test_file = "dev" if any(Path(folder).expanduser().glob("dev.*")) else "test"
    source: Any = build(DATASETS, {"kind": "classes", "folder": folder, "test_file": test_file})
    splits: tuple[Split, ...] = ("train", "test")
    examples = {split: source.read_split(split) for split in splits}
    labels = sorted({example.label for rows in examples.values() for example in rows})
    return {
        split: ([list_words(example.text) for example in rows], [labels.index(example.label) for example in rows])
        for split, rows in examples.items()
    }


def load_vector_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Load the finished rows by their key."""
    return {row["key"]: row for row in read_rows(folder / ROWS_FILE)}


def save_vectors_table(table: VectorsTable, folder: Path) -> dict[str, Any]:
    """Save the rows of a table as ``table.json``."""
    rows = load_vector_rows(folder)
    keys = [table.key_of(name, seed) for name in table.kinds for seed in range(table.seeds)]
    result = {
        "table": "vectors",
        "width": table.width,
        "max_documents": table.max_documents,
        "rows": [{name: value for name, value in rows[key].items() if name != "key"} for key in keys],
        "versions": describe_versions(),
    }
    write_json(folder / "table.json", result)
    return result
