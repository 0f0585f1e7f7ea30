"""Write documents in which some words have the same neighbors, and word vectors made up by hand."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import torch

from mnemic.checkpoint.vectors import VectorTable, save_vectors

ANIMALS = ("cat", "dog", "horse", "rabbit")
CITIES = ("oslo", "rome", "paris", "lima")
AROUND = {ANIMALS: ("eats sleeps runs", "fur tail paws"), CITIES: ("streets shops trams", "mayor harbor tower")}


def write_documents(folder: Path, count: int = 400, seed: int = 0) -> Path:
    """Write documents of sentences about animals or cities; each kind has words of its own."""
    rng, rows = Random(f"{seed} vectors"), []
    for _ in range(count):
        sentences = []
        for _ in range(6):
            names = rng.choice((ANIMALS, CITIES))
            first, second = AROUND[names]
            words = [rng.choice(first.split()), rng.choice(names).capitalize(), rng.choice(second.split())]
            sentences.append(" ".join([*words, rng.choice(second.split())]) + ".")
        rows.append(json.dumps({"text": rng.choice(sentences)}))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def save_table(folder: Path, words: Sequence[str], width: int, *, seed: int = 0) -> VectorTable:
    """Save random vectors of some words; return them."""
    vectors = torch.randn(len(words), width, generator=torch.Generator().manual_seed(seed)) * 3
    table = VectorTable(tuple(words), vectors, tuple(range(len(words), 0, -1)), {"kind": "random"})
    save_vectors(folder, table)
    return table


def write_vector_lines(path: Path, vectors: Mapping[str, Sequence[float]], *, header: bool = False) -> Path:
    """Write vectors as text, as word2vec (with a header) or GloVe does."""
    lines = [f"{len(vectors)} {len(next(iter(vectors.values())))}"] if header else []
    lines += [f"{word} {' '.join(map(repr, numbers))}" for word, numbers in vectors.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
