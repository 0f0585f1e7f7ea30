"""What each kind of word vectors computes, against slow twins, and what all of them promise."""

from collections import Counter
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from vector_files import ANIMALS, CITIES, write_documents

from mnemic.data.corpora.read_documents import Corpus
from mnemic.recipe import ConfigError, build, select_kinds
from mnemic.train.vectors import VECTOR_LEARNERS, cooccurrence
from mnemic.train.vectors.contract import WordSpans
from mnemic.train.vectors.cooccurrence import count_pairs
from mnemic.train.vectors.glove import GloveTables, create_tables, take_glove_step
from mnemic.train.vectors.svd import compute_ppmi
from mnemic.train.vectors.train import train_vectors

OPTIONS: dict[str, dict[str, Any]] = {
    "cbow": {"width": 16, "epochs": 20, "window": 3, "subsample": 0.0, "rate": 0.05},
    "cbow-corrected": {"width": 16, "epochs": 20, "window": 3, "subsample": 0.0, "rate": 0.5},
    "fasttext": {"width": 16, "epochs": 20, "window": 3, "subsample": 0.0, "buckets": 20_000},
    "glove": {"width": 16, "epochs": 20, "window": 3},
    "skip-gram": {"width": 16, "epochs": 20, "window": 3, "subsample": 0.0, "hierarchical": True},
    "svd": {"width": 6, "window": 3},
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus.from_paths([write_documents(tmp_path_factory.mktemp("documents"))])


def spec_of(kind: str) -> dict[str, Any]:
    return {"kind": kind, "min_count": 2} | OPTIONS[kind]


@pytest.mark.parametrize("kind", VECTOR_LEARNERS)
def test_every_kind_learns_which_words_are_alike_and_repeats_it(kind: str, corpus: Corpus) -> None:
    reports: list[tuple[int, int]] = []
    table = train_vectors(spec_of(kind), corpus, on_progress=lambda *report: reports.append(report))
    for names, others in ((ANIMALS, CITIES), (CITIES, ANIMALS)):
        for name in names:
            cosines = dict(table.find_nearest(name, len(table.words)))
            inside = [cosines[word] for word in names if word != name]
            assert min(inside) > max(cosines[word] for word in others) + 0.2
    assert table.vectors.shape == (len(table.words), OPTIONS[kind]["width"])
    assert table.vectors.dtype == torch.float32
    training = [report for report in reports if report[1]]
    assert training == sorted(training)
    assert training[-1][0] == training[-1][1]
    again, other = train_vectors(spec_of(kind), corpus), train_vectors(spec_of(kind), corpus, seed=1)
    assert torch.equal(again.vectors, table.vectors)
    if kind != "svd":  # whose start is forgotten
        assert not torch.allclose(other.vectors, table.vectors, atol=1e-3)


@pytest.mark.parametrize("kind", VECTOR_LEARNERS)
def test_an_interrupt_ends_every_kind(kind: str, corpus: Corpus) -> None:
    def interrupt(num_read: int, total: int) -> None:
        if total:
            raise KeyboardInterrupt("enough")

    with pytest.raises(KeyboardInterrupt, match="enough"):
        train_vectors(spec_of(kind), corpus, on_progress=interrupt)


@pytest.mark.parametrize("kind", VECTOR_LEARNERS)
def test_numbers_out_of_range_are_named(kind: str) -> None:
    for name in ("width", "window", "min_count"):
        with pytest.raises(ConfigError, match=rf"{kind}\.{name} is a whole number from 1 on, not 0"):
            build(VECTOR_LEARNERS, {"kind": kind, name: 0})
    if kind in select_kinds(VECTOR_LEARNERS, packages=("numpy", "scipy")):
        return
    with pytest.raises(ConfigError, match=rf"{kind}\.rate"):
        build(VECTOR_LEARNERS, {"kind": kind, "rate": 0.0})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kind": "fasttext", "min_letters": 4, "max_letters": 3}, "at most max_letters, not 4 and 3"),
        ({"kind": "svd", "smoothing": 0.0}, r"svd\.smoothing is from above 0"),
        ({"kind": "glove", "max_count": 0.0}, r"glove\.max_count are above 0"),
        ({"kind": "cbow-corrected", "subsample": 1.0}, "from 0 to below 1"),
    ],
)
def test_options_of_a_kind_are_checked(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(VECTOR_LEARNERS, spec)


# Counts ------------------------------------------------------------------------------------------

TEXTS = ["a b a c x b", "c", "", "b b c a a", "x a"]
WORDS = {"a": 5, "b": 4, "c": 3}  # x has no vector


def write_texts(folder: Path) -> WordSpans:
    (folder / "texts.txt").write_text("\n\n".join(text for text in TEXTS if text), encoding="utf-8")
    return WordSpans(Corpus.from_paths([folder]))


def count_slowly(weights: list[float]) -> np.ndarray:
    counts = np.zeros((3, 3))
    for text in TEXTS:
        ids = ["abc".index(word) for word in text.split() if word != "x"]
        for i, first in enumerate(ids):
            for j, second in enumerate(ids):
                if 0 < abs(i - j) <= len(weights):
                    counts[first, second] += weights[abs(i - j) - 1]
    return counts


@pytest.mark.parametrize("block_words", [1, 5, 10_000])
@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.5, 1 / 3], [1.0] * 9])
def test_pairs_are_counted_within_each_text(
    weights: list[float], block_words: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cooccurrence, "BLOCK_WORDS", block_words)
    counts = count_pairs(write_texts(tmp_path), WORDS, weights, 16, lambda *report: None)
    np.testing.assert_allclose(counts.toarray(), count_slowly(weights), rtol=1e-6)


@pytest.mark.parametrize("smoothing", [1.0, 0.75])
def test_information_is_that_of_the_definition(smoothing: float, tmp_path: Path) -> None:
    spans = write_texts(tmp_path)
    counts = count_slowly([1.0, 0.5])
    context = Counter({j: counts[:, j].sum() ** smoothing for j in range(3)})
    expected = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            if counts[i, j]:
                probability = counts[i, j] / counts.sum()
                alone = counts[i].sum() / counts.sum() * context[j] / context.total()
                expected[i, j] = max(0.0, log(probability / alone))
    information = compute_ppmi(count_pairs(spans, WORDS, [1.0, 0.5], 16, lambda *report: None), smoothing)
    np.testing.assert_allclose(information.toarray(), expected, rtol=1e-5, atol=1e-7)
    assert (expected > 0).any()
    learner = build(VECTOR_LEARNERS, {"kind": "svd", "width": 2, "window": 2, "smoothing": smoothing, "power": 1.0})
    vectors = (
        learner.learn(spans, WORDS, num_words=16, seed=0, threads=1, on_progress=lambda *report: None).double().numpy()
    )
    left, values, _ = np.linalg.svd(expected)
    np.testing.assert_allclose(vectors @ vectors.T, (left[:, :2] * values[:2] ** 2) @ left[:, :2].T, atol=1e-5)
    assert (vectors.sum(0) > 0).all()
    with pytest.raises(ConfigError, match="at most 2 numbers from 3 words, not of 3"):
        build(VECTOR_LEARNERS, {"kind": "svd", "width": 3}).learn(
            spans, WORDS, num_words=16, seed=0, threads=1, on_progress=lambda *report: None
        )


# GloVe -------------------------------------------------------------------------------------------


def test_a_step_of_glove_is_adagrad_on_its_loss() -> None:
    """Gradients by autograd; words that occur twice in a step have the sum of theirs."""
    generator = torch.Generator().manual_seed(0)
    tables = [tensor.double() for tensor in create_tables(4, 3, generator)]
    tables[0].mul_(10)
    pairs = torch.tensor([[0, 1, 1, 3], [2, 0, 2, 3]])
    counts = torch.tensor([1.0, 50.0, 100.0, 400.0], dtype=torch.float64)
    shares = torch.tensor([(1 / 100) ** 0.75, 0.5**0.75, 1.0, 1.0], dtype=torch.float64)
    expected = [tensor.clone() for tensor in tables]
    steps = [torch.zeros_like(tensor) for tensor in expected]
    gradients_of: list[list[torch.Tensor]] = [[], []]
    for (word, context), count, share in zip(pairs.T.tolist(), counts, shares):
        vectors, biases = (tensor.clone().requires_grad_() for tensor in expected[:2])
        error = vectors[0, word] @ vectors[1, context] + biases[0, word] + biases[1, context] - count.log()
        gradients = torch.autograd.grad(0.5 * share * error**2, [vectors, biases])
        for table, gradient in enumerate(gradients):
            gradients_of[table].append(gradient)
            steps[2 + table] += gradient**2
    for table in (0, 1):
        for gradient in gradients_of[table]:
            steps[table] -= 0.05 * gradient / (expected[2 + table] + steps[2 + table]).sqrt()
    take_glove_step(GloveTables(*tables), pairs, counts.log(), shares, 0.05)
    for tensor, start, step in zip(tables, expected, steps):
        torch.testing.assert_close(tensor, start + step)
        assert step.abs().sum() > 0


def test_products_of_glove_are_the_logarithms_of_counts() -> None:
    """With enough numbers, all counts are fitted."""
    generator = torch.Generator().manual_seed(0)
    tables = create_tables(6, 8, generator)
    pairs = torch.cartesian_prod(torch.arange(6), torch.arange(6)).T
    counts = torch.randint(1, 300, (36,), generator=generator).float()
    for _ in range(2000):
        take_glove_step(tables, pairs, counts.log(), (counts / 100).clamp(max=1) ** 0.75, 0.2)
    products = tables.vectors[0] @ tables.vectors[1].T + tables.biases[0][:, None] + tables.biases[1]
    torch.testing.assert_close(products.flatten(), counts.log(), atol=0.1, rtol=0)


# fastText ----------------------------------------------------------------------------------------


def test_words_with_the_same_letters_are_near_in_fasttext_alone(tmp_path: Path) -> None:
    """A word that occurs twice, of the letters of frequent ones."""
    folder = write_documents(tmp_path / "documents")
    (folder / "rare.txt").write_text("Rabbits.\n\nRabbits.", encoding="utf-8")
    corpus = Corpus.from_paths([folder])
    ranks = {}
    for kind in ("fasttext", "skip-gram"):
        table = train_vectors(spec_of(kind), corpus)
        ranks[kind] = [word for word, _ in table.find_nearest("rabbits", len(table.words))].index("rabbit")
    assert ranks["fasttext"] == 0 < ranks["skip-gram"]
