"""Skip-gram word vectors: what they learn, that they repeat, and how training ends early."""

import importlib.util
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from vector_files import ANIMALS, CITIES, write_documents

from mnemic.checkpoint.vectors import VectorTable
from mnemic.data.corpora.read_documents import Corpus, CorpusError
from mnemic.recipe import ConfigError
from mnemic.text.tokenizers.words import list_words
from mnemic.train.vectors import contract
from mnemic.train.vectors.contract import WordSpans
from mnemic.train.vectors.train import select_words, train_vectors

SPEC = {"kind": "skip-gram", "width": 16, "min_count": 2, "epochs": 20, "window": 3, "subsample": 0.0}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus.from_paths([write_documents(tmp_path_factory.mktemp("documents"))])


@pytest.fixture(scope="module")
def table(corpus: Corpus) -> VectorTable:
    return train_vectors(SPEC, corpus)


def test_words_of_one_kind_are_nearer_than_others(table: VectorTable) -> None:
    """No two animals are in one sentence: they only share the words around them."""
    for names, others in ((ANIMALS, CITIES), (CITIES, ANIMALS)):
        for name in names:
            cosines = dict(table.find_nearest(name, len(table.words)))
            inside = [cosines[word] for word in names if word != name]
            assert min(inside) > max(cosines[word] for word in others) + 0.3


def test_the_same_words_and_seed_give_the_same_bits(table: VectorTable, corpus: Corpus) -> None:
    again, other = train_vectors(SPEC, corpus), train_vectors(SPEC, corpus, seed=1)
    assert (again.words, again.counts, again.card) == (table.words, table.counts, table.card)
    assert torch.equal(again.vectors, table.vectors)
    assert other.words == table.words
    assert not torch.equal(other.vectors, table.vectors)


@pytest.mark.parametrize("change", [{"window": 1}, {"negatives": 1}, {"epochs": 3}, {"rate": 0.1}, {"subsample": 0.01}])
def test_every_option_changes_the_vectors(change: dict[str, Any], table: VectorTable, corpus: Corpus) -> None:
    changed = train_vectors(SPEC | change, corpus)
    assert changed.words == table.words
    assert changed.card["options"] == {**table.card["options"], **change}
    assert not torch.allclose(changed.vectors, table.vectors, atol=1e-3)


def test_words_are_counted_as_a_vocabulary_reads_them(table: VectorTable, corpus: Corpus) -> None:
    counts = Counter(word for text in corpus.read() for word in list_words(text))
    assert dict(zip(table.words, table.counts)) == {word: count for word, count in counts.items() if count >= 2}
    assert list(table.counts) == sorted(table.counts, reverse=True)
    assert table.vectors.shape == (len(table.words), 16)
    assert table.card["corpus"]["words"] == counts.total()
    assert {"mnemic", "gensim", "numpy"} == table.card["versions"].keys()


def test_rare_words_have_no_vector_and_ties_are_in_alphabetical_order() -> None:
    assert select_words({"b": 3, "d": 2, "a": 3, "c": 9}, 3) == {"c": 9, "a": 3, "b": 3}
    assert list(select_words({"b": 3, "d": 2, "a": 3, "c": 9}, 1)) == ["c", "a", "b", "d"]
    with pytest.raises(ConfigError, match="no word of the corpus occurs 10 times, the most frequent one 9"):
        select_words({"c": 9}, 10)
    with pytest.raises(ConfigError, match="the most frequent one 0"):
        select_words({}, 1)


def test_long_documents_are_cut_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """gensim silently drops what is beyond 10,000 words of a text."""
    texts = [" ".join(f"w{number}" for number in range(count)) for count in (2500, 1, 0, 1000)]
    (tmp_path / "a.txt").write_text("\n\n".join(texts), encoding="utf-8")
    spans = WordSpans(Corpus.from_paths([tmp_path]))
    assert [len(words) for words in spans] == [1000, 1000, 500, 1, 1000]
    assert [word for words in spans for word in words] == " ".join(texts).split()
    assert [len(words) for words in WordSpans(spans.corpus, 2)] == [1000, 1000, 500, 1]
    assert contract.MAX_SPAN_WORDS < 10_000


def test_progress_counts_every_word_of_every_epoch(table: VectorTable, corpus: Corpus) -> None:
    reports: list[tuple[int, int]] = []
    train_vectors(SPEC | {"epochs": 3}, corpus, on_progress=lambda *report: reports.append(report))
    num_words = table.card["corpus"]["words"]
    training = [num_read for num_read, total in reports if total]
    assert {total for _, total in reports} == {0, 3 * num_words}
    assert training == sorted(training)
    assert training[-1] == 3 * num_words


@pytest.mark.parametrize("at", [0, 1])
def test_an_interrupt_while_counting_or_training_ends_it(at: int, corpus: Corpus) -> None:
    """It is raised in gensim's thread, whose death the others would wait for."""
    reports: list[int] = []

    def interrupt(num_read: int, total: int) -> None:
        reports.append(num_read)
        if bool(total) == bool(at):
            raise KeyboardInterrupt("enough")

    with pytest.raises(KeyboardInterrupt, match="enough"):
        train_vectors(SPEC, corpus, on_progress=interrupt)
    assert len(reports) < 10  # no further epoch was read


def test_a_file_that_breaks_during_training_is_reported(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = iter(range(9))

    def read(self: Corpus) -> Iterator[str]:
        yield from ["cat dog cat dog"] * 50
        if next(reads) == 2:
            raise CorpusError("texts.jsonl cannot be read after line 50")

    monkeypatch.setattr(Corpus, "read", read)
    with pytest.raises(CorpusError, match="cannot be read after line 50"):
        train_vectors(SPEC, corpus)
    assert next(reads) == 3


def test_several_threads_learn_the_same_kinds(corpus: Corpus) -> None:
    table = train_vectors(SPEC, corpus, threads=2)
    cosines = dict(table.find_nearest("cat", len(table.words)))
    assert cosines["dog"] > cosines["rome"] + 0.3
    assert table.card["threads"] == 2


def test_without_gensim_the_error_says_how_to_get_it(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "mnemic.train.vectors.word2vec.find_spec", lambda name: None if name == "gensim" else find_spec(name)
    )
    monkeypatch.setattr(Corpus, "read", lambda self: pytest.fail("the corpus was read in vain"))
    with pytest.raises(ValueError, match=r"needs gensim: pip install 'mnemic\[vectors\]'"):
        train_vectors(SPEC, corpus)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"kind": "bow"}, {}, "no kind 'bow' here.*known kinds: cbow"),
        ({"depth": 2}, {}, "does not take 'depth'"),
        ({"width": 0}, {}, r"skip-gram\.width is a whole number from 1 on, not 0"),
        ({"window": 1.5}, {}, r"skip-gram\.window is a whole number, not 1.5"),
        ({"rate": 0.0}, {}, "above 0"),
        ({"subsample": 1.0}, {}, "from 0 to below 1"),
        ({"min_count": 10**6}, {}, "no word of the corpus occurs 1000000 times"),
        ({}, {"threads": 0}, "threads are 1 or more"),
        ({}, {"max_documents": -1}, "documents 0"),
        ({}, {"seed": -1}, "a seed of word vectors is from 0"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], options: dict[str, Any], message: str, corpus: Corpus) -> None:
    with pytest.raises(ConfigError, match=message):
        train_vectors(SPEC | change, corpus, **options)
