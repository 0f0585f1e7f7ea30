"""METEOR by exact words and stems: by hand, its invariants, and against nltk."""

import random

import pytest

from mnemic.evaluate.meteor import align_words, count_chunks, load_stemmer, meteor_stem

WORDS = [
    "run", "runs", "running", "runner", "think", "thinking", "thinks", "The", "the", "a", "cat", "cats",
    "nation", "national", "relational", "relate", "relating", "House", "houses", "housing", "happy",
    "happily", "is", "was", "sky", "skies", "dying", "die",
]  # fmt: skip


class NoSynonyms:
    """A WordNet without a word: nltk's third stage then matches nothing."""

    def synsets(self, word: str) -> list[str]:
        return []


def draw_texts(num_cases: int, seed: int) -> list[tuple[list[str], list[list[str]]]]:
    """Draw predictions and references with many repeated words; some are empty."""
    generator = random.Random(seed)

    def draw() -> list[str]:
        return generator.choices(WORDS[: generator.choice([3, 8, len(WORDS)])], k=generator.randrange(13))

    return [(draw(), [draw() for _ in range(generator.randrange(1, 4))]) for _ in range(num_cases)]


@pytest.mark.parametrize("num_cases", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_meteor_is_that_of_nltk(num_cases: int) -> None:
    from nltk.translate.meteor_score import meteor_score

    num_above_zero = 0
    for prediction, references in draw_texts(num_cases, seed=num_cases):
        expected = meteor_score(references, prediction, wordnet=NoSynonyms())
        assert meteor_stem(prediction, references) == pytest.approx(expected, abs=1e-12)
        num_above_zero += expected > 0
    assert num_above_zero > num_cases / 2


def test_meteor_by_hand() -> None:
    """4 of 5 words match a reference of 6, in 2 pieces."""
    prediction, reference = ["the", "cats", "sat", "quietly", "there"], ["there", "the", "cat", "sits", "and", "sat"]
    precision, recall = 3 / 5, 3 / 6
    assert align_words(prediction, reference, load_stemmer()) == [(0, 1), (1, 2), (2, 5), (4, 0)]
    precision, recall = 4 / 5, 4 / 6
    mean = 10 * precision * recall / (recall + 9 * precision)
    assert meteor_stem(prediction, [reference]) == pytest.approx(mean * (1 - 0.5 * (3 / 4) ** 3))


def test_a_stem_matches_only_what_no_word_matches() -> None:
    stem = load_stemmer()
    assert align_words(["runs", "run"], ["run", "runs"], stem) == [(0, 1), (1, 0)]
    assert align_words(["runs", "runs"], ["run", "runs"], stem) == [(0, 0), (1, 1)]
    assert align_words(["runs"], ["walks"], stem) == []


def test_chunks_are_neighbors_in_both_texts() -> None:
    assert count_chunks([(0, 4), (1, 5), (2, 6)]) == 1
    assert count_chunks([(0, 4), (2, 5), (3, 6)]) == 2
    assert count_chunks([(0, 2), (1, 1), (2, 0)]) == 3


def test_meteor_falls_with_the_order_and_takes_the_best_reference() -> None:
    words = ["a", "long", "nation", "was", "happy"]
    same, turned = meteor_stem(words, [words]), meteor_stem(words[::-1], [words])
    assert same == pytest.approx(1 - 0.5 / 5**3)
    assert turned == pytest.approx(0.5)
    assert meteor_stem(words, [words[::-1], words, ["other"]]) == same
    assert meteor_stem(words, []) == meteor_stem([], [words]) == meteor_stem(words, [[]]) == 0.0


def test_without_nltk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemic.evaluate.meteor.find_spec", lambda name: None)
    load_stemmer.cache_clear()
    with pytest.raises(ValueError, match=r"mnemic\[metrics\]"):
        meteor_stem(["a"], [["a"]])
