"""Measures of word vectors: by hand, against scipy and gensim, and what has no vector."""

import random

import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from mnemic.evaluate import word_vectors
from mnemic.evaluate.word_vectors import classify_by_mean, mean_vectors, rate_similarity, solve_analogies

WORDS = [f"w{number}" for number in range(40)]
RANKS = {word: rank for rank, word in enumerate(WORDS)}


def draw_vectors(seed: int = 0, count: int = 40) -> torch.Tensor:
    return torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))


def test_similarity_is_spearmans_correlation_of_the_pairs_that_have_vectors() -> None:
    generator, vectors = random.Random(0), draw_vectors()
    pairs = [(*generator.sample(WORDS, 2), float(generator.randrange(10))) for _ in range(60)]
    cosines = [float(nn.functional.cosine_similarity(vectors[RANKS[a]], vectors[RANKS[b]], 0)) for a, b, _ in pairs]
    expected = spearmanr(cosines, [rating for *_, rating in pairs]).statistic
    unknown = [("w0", "elsewhere", 3.0), ("nowhere", "elsewhere", 1.0)]
    measured = rate_similarity(vectors, RANKS, pairs + unknown)
    assert measured == (pytest.approx(expected), 60, 62)
    assert rate_similarity(vectors, RANKS, unknown) == (0.0, 0, 2)


def test_analogies_are_completed_by_the_nearest_word_but_none_of_the_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_vectors, "QUESTIONS_PER_BATCH", 7)
    generator, vectors = random.Random(1), draw_vectors()
    questions = [tuple(generator.sample(WORDS, 4)) for _ in range(30)]
    normalized = nn.functional.normalize(vectors, dim=-1)
    answers = []
    for a, b, c, _ in questions:
        sums = normalized[RANKS[b]] - normalized[RANKS[a]] + normalized[RANKS[c]]
        scores = {word: float(sums @ normalized[rank]) for word, rank in RANKS.items() if word not in (a, b, c)}
        answers.append(max(scores, key=lambda word: scores[word]))
    right = [(a, b, c, answer) for (a, b, c, _), answer in zip(questions, answers)]
    assert solve_analogies(vectors, RANKS, right) == (1.0, 30, 30)  # type: ignore[arg-type]
    wrong = [(a, b, c, "w1" if answer == "w0" else "w0") for a, b, c, answer in right]
    assert solve_analogies(vectors, RANKS, wrong + right[:10]).score == pytest.approx(0.25)  # type: ignore[arg-type]
    rare = [("w0", "w1", "w2", "w39"), ("w0", "w1", "w2", "elsewhere")]
    assert solve_analogies(vectors, RANKS, rare, max_words=39) == (0.0, 0, 2)


def test_a_parallelogram_is_solved() -> None:
    """king - man + woman = queen, among words that are not far."""
    vectors = torch.tensor([[1.0, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1], [0.9, 0.1, 0]])
    ranks = {word: rank for rank, word in enumerate(["man", "king", "woman", "queen", "boy"])}
    assert solve_analogies(vectors, ranks, [("man", "king", "woman", "queen")]).score == 1


def test_texts_are_the_mean_of_their_normalized_words() -> None:
    vectors = draw_vectors()
    texts = [["w3", "w5", "w3", "elsewhere"], [], ["elsewhere"], ["w7"]]
    normalized = nn.functional.normalize(vectors, dim=-1)
    expected = [(2 * normalized[3] + normalized[5]) / 3, torch.zeros(6), torch.zeros(6), normalized[7]]
    torch.testing.assert_close(mean_vectors(vectors, RANKS, texts), torch.stack(expected))


def test_classes_that_a_plane_divides_are_found() -> None:
    train, test = draw_vectors(1, 200), draw_vectors(2, 100)
    plane = draw_vectors(3, 1)[0]
    labels, test_labels = ((rows @ plane > 0).long().tolist() for rows in (train, test))
    assert classify_by_mean((train, labels), (test, test_labels)) >= 0.95
    state = torch.get_rng_state()
    first, second = (classify_by_mean((train, test_labels * 2), (test, test_labels)) for _ in range(2))
    assert first == second < 0.8
    assert len(state)
