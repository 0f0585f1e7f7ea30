"""Tiny runs of pre-training recipes on one corpus, whose sequences are made once."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import text_files
import torch
from shared_folders import make_temporary_folder

from mnemic.data.corpora import CorpusFiles
from mnemic.data.corpora.batches import CorpusBatch, CorpusDataset
from mnemic.objectives.unigram import count_targets, unigram_loss
from mnemic.recipe import Recipe, load_recipe

LENGTH = 32
DATA = ['data.tokenizer={kind="wordpiece", vocab=200}', f"data.length={LENGTH}", "data.validation=0.1"]
TINY = [*DATA, "model.width=32", "model.encode.stack.depth=2", "train.batch=16", "train.rate=0.004"]
TINY += ["train.matmul=float32", "train.epochs=1000"]


VOCAB = 30  # of ``make_corpus_batch``


def make_corpus_batch(labels: list[int], length: int = 12) -> CorpusBatch:
    """Make random ids between [CLS] (2) and [SEP] (3), with a padded last row."""
    batch_size = len(labels)
    tokens = torch.randint(5, VOCAB, (batch_size, length), generator=torch.Generator().manual_seed(0))
    tokens[:, 0], tokens[:, -1] = 2, 3
    tokens[-1, length // 2 :] = 0
    tokens[-1, length // 2] = 3
    return CorpusBatch(
        tokens=tokens,
        mask=tokens != 0,
        segments=(torch.arange(length) > length // 2).long().expand(batch_size, length) * (tokens != 0),
        word_starts=torch.ones(batch_size, length, dtype=torch.bool),
        unmaskable=tokens < 5,
        next_sentence_labels=torch.tensor(labels),
        mask_seeds=torch.arange(batch_size),
        mask_id=torch.tensor(4),
        ordinary_ids=torch.arange(5, VOCAB),
    )


@cache
def make_texts() -> Path:
    """Write the documents, once for all tests of a process."""
    return text_files.corpus(make_temporary_folder() / "texts", 300)


def make_sequences(sequence_format: Mapping[str, Any], words: str) -> Path:
    """Make the sequences of the documents in a format, once for all tests of a process."""
    name = "-".join(str(value) for value in (*sequence_format.values(), words))
    folder = make_texts().with_name(f"{make_texts().name}-{name}")
    if not folder.exists():
        sets = [f"data.folder={make_texts()}", f"data.cache={folder}", f"data.words={words}"]
        spec = load_recipe("bert-pretrain", [*DATA, *sets])["data"] | {"format": sequence_format}
        CorpusFiles(**{key: value for key, value in spec.items() if key != "kind"}).load()
    return folder


def load_tiny_recipe(name: str, *sets: str) -> Recipe:
    data = load_recipe(name)["data"]
    folder = make_sequences(data["format"], data.get("words", "text"))
    return load_recipe(name, [*TINY, f"data.folder={folder}", *sets])


def load_sequences(**options: object) -> tuple[CorpusDataset, CorpusDataset]:
    """Load the sequences of training and validation."""
    spec = load_tiny_recipe("bert-pretrain")["data"]
    data = CorpusFiles(**{key: value for key, value in spec.items() if key != "kind"} | options).load()
    return data.train, data.validation


@cache
def compute_unigram_loss() -> float:
    """Compute the unigram loss on the held-out documents."""
    counts = []
    for dataset in load_sequences():
        batch = dataset.batch(torch.arange(len(dataset)))
        counts.append(count_targets(batch.tokens[~batch.unmaskable], 200))
    return unigram_loss(*counts)
