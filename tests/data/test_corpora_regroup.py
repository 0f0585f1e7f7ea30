"""Sequences of single sentences stand for their texts: all other formats can be made of them."""

from pathlib import Path

import numpy as np
import pytest
import text_files

from mnemic.data.corpora import CorpusFiles
from mnemic.data.corpora.read_documents import CorpusError
from mnemic.data.corpora.regroup import regroup_documents, regroup_folder
from mnemic.data.corpora.sequence_folder import SequenceArrays, SequenceFolder, load_sequence_folder

TOKENIZER = {"kind": "wordpiece", "vocab": 200}


def make(folder: Path, kind: str, length: int) -> SequenceFolder:
    """Make sequences of one format from the texts of a test."""
    if not (folder / "texts").exists():
        text_files.corpus(folder / "texts", 60)
    options = {"tokenizer": TOKENIZER, "length": length, "validation": 0.1, "format": {"kind": kind}}
    return CorpusFiles(folder=str(folder / "texts"), cache=str(folder / kind), **options).load_sequences()


def list_sequences(arrays: SequenceArrays) -> list[tuple[int, ...]]:
    ends = np.cumsum(arrays.lengths)
    return sorted(tuple(arrays.tokens[end - length : end].tolist()) for end, length in zip(ends, arrays.lengths))


def test_regrouped_sequences_are_those_of_the_texts(tmp_path: Path) -> None:
    sentences = make(tmp_path, "sentences", 64)
    direct = make(tmp_path, "doc-sentences", 32)
    regroup_folder(sentences, tmp_path / "regrouped", format={"kind": "doc-sentences"}, max_tokens=32)
    regrouped = load_sequence_folder(tmp_path / "regrouped")
    for split, arrays in direct.splits.items():
        assert list_sequences(regrouped.splits[split]) == list_sequences(arrays)
    stored = {"kind": "stored", "folder": str(tmp_path / "regrouped")}
    options = {"tokenizer": stored, "length": 32, "format": {"kind": "doc-sentences"}}
    assert len(CorpusFiles(folder=str(tmp_path / "regrouped"), **options).load().train) == len(
        direct.splits["train"][1]
    )


def test_documents_end_where_they_did() -> None:
    """Two documents: a b and c; d. The second token starts no word."""
    tokens = np.array([5, 21, 22, 7, 5, 25, 7, 5, 27, 7], dtype="<u2")
    follows = np.array([0, 1, 0], dtype="|i1")
    first, second = regroup_documents(SequenceArrays(tokens, np.array([4, 3, 3]), np.array([4, 3, 3]), follows))
    assert first.ids.tolist() == [10, 11, 12]
    assert first.word_starts.tolist() == [True, False, True]
    assert first.sentence_ends == [2, 3]
    assert second.ids.tolist() == [13]
    assert second.sentence_ends == [1]


def test_other_formats_cannot_be_regrouped(tmp_path: Path) -> None:
    sequences = make(tmp_path, "full-sentences", 32)
    with pytest.raises(CorpusError, match=r"'full-sentences' cannot be made into others.*kind=sentences"):
        regroup_folder(sequences, tmp_path / "new", format={"kind": "doc-sentences"}, max_tokens=32)
