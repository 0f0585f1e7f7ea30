"""METEOR of a generated text, with the stages that need no dictionary."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec

RECALL_WEIGHT = 0.9  # α: the share of 1 / precision in 1 / mean; the recall counts nine times as much
MAX_PENALTY = 0.5  # γ: of words that match in no order at all
PENALTY_POWER = 3  # β


def meteor_stem(prediction: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Compute METEOR by words and stems, from 0 to 1, with the best reference.

    Lavie and Agarwal 2007: words match as they are, then by their stem (Porter 1980), in small
    letters. A harmonic mean of precision and recall falls by up to half, the more pieces the
    matches are in. The third stage, synonyms of WordNet, is left out: compare these figures only
    with each other.

    Where we differ: as in nltk, words match from the end, each with the last free one, and not so
    that the fewest matches cross.

    >>> round(meteor_stem("the runner ran".split(), ["the runners ran".split()]), 4)
    0.9815
    """
    stem = load_stemmer()
    return max((score_reference(prediction, reference, stem) for reference in references), default=0.0)


@cache
def load_stemmer() -> Callable[[str], str]:
    """Load Porter's stemmer, which nltk has."""
    if find_spec("nltk") is None:
        raise ValueError("METEOR needs nltk, for the stems of words: pip install 'mnemic[metrics]'")
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer().stem


def score_reference(prediction: Sequence[str], reference: Sequence[str], stem: Callable[[str], str]) -> float:
    """Compare a prediction with one reference."""
    matches = align_words([word.lower() for word in prediction], [word.lower() for word in reference], stem)
    if not matches:
        return 0.0
    precision, recall = len(matches) / len(prediction), len(matches) / len(reference)
    mean = 1 / (RECALL_WEIGHT / recall + (1 - RECALL_WEIGHT) / precision)
    return mean * (1 - MAX_PENALTY * (count_chunks(matches) / len(matches)) ** PENALTY_POWER)


def align_words(
    prediction: Sequence[str], reference: Sequence[str], stem: Callable[[str], str]
) -> list[tuple[int, int]]:
    """Match positions of equal words, then of equal stems, in the order of the prediction."""
    matches: dict[int, int] = {}
    stages: tuple[Callable[[str], str], ...] = (str, stem)
    for normalize in stages:
        free = defaultdict(list)
        for position, word in enumerate(reference):
            if position not in matches.values():
                free[normalize(word)].append(position)
        for position in reversed(range(len(prediction))):
            if position not in matches and (positions := free[normalize(prediction[position])]):
                matches[position] = positions.pop()
    return sorted(matches.items())


def count_chunks(matches: Sequence[tuple[int, int]]) -> int:
    """Count the pieces of matches that are neighbors in both texts."""
    neighbors = itertools.pairwise(matches)
    return 1 + sum((second[0] - first[0], second[1] - first[1]) != (1, 1) for first, second in neighbors)
