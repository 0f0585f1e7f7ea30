"""Rank the sentences of a text by how much they share with the others.

Shapes: n sentences, t different words, l different lengths, w words of all sentences.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mnemic.text.sentences import split_sentences, trim_span
from mnemic.text.stop_words import STOP_WORDS
from mnemic.text.tokenizers.words import list_words

DAMPING = 0.85  # how likely a walk follows a link, instead of starting anew anywhere
TOLERANCE = 1e-9  # of the largest change of a score in one step
MAX_STEPS = 200  # 0.85 ** 200 is 1e-14


class KeySentence(NamedTuple):
    """A sentence of one of several texts, with its score."""

    text: int  # its number, from 0
    start: int
    end: int
    score: float  # 1 on average


def find_key_sentences(texts: Sequence[str], limit: int = 0) -> list[KeySentence]:
    """Find the ``limit`` sentences of texts with the largest TextRank, in order; 0: all.

    >>> text = "Cats chase mice. It rained. Mice fear cats, and cats fear dogs. Dogs chase cats."
    >>> for number, start, end, score in find_key_sentences([text], 2):
    ...     print(text[start:end], round(score, 2))
    Cats chase mice. 1.32
    Dogs chase cats. 1.32
    """
    spans = [(number, trim_span(text, span)) for number, text in enumerate(texts) for span in split_sentences(text)]
    scores = rank_sentences([list_words(texts[number][start:end]) for number, (start, end) in spans]).tolist()
    sentences = [KeySentence(number, start, end, score) for (number, (start, end)), score in zip(spans, scores)]
    best = sorted(sentences, key=lambda sentence: -sentence.score)[: limit or None]
    return sorted(best)


def rank_sentences(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """Compute the TextRank of sentences as lists of words: n (Mihalcea and Tarau 2004).

    Two sentences are linked by the number of words that both have, divided by the sum of the
    logarithms of their lengths; PageRank on these links, with a damping of 0.85, is the score.

    Where we differ: words that are in every text (``STOP_WORDS``) do not count, if a sentence has
    others. A walk leaves a sentence without a link for any of them, so that the mean score is 1.
    The time grows with the number of words, not with the square of that of sentences: links are
    never listed, but summed by word and by length.
    """
    if not sentences:
        return np.zeros(0)
    links = SentenceLinks(sentences)
    degrees = links.multiply(np.ones(len(sentences)))
    shares = np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    scores = np.ones(len(sentences))
    for _ in range(MAX_STEPS):
        walks = links.multiply(scores * shares) + scores[degrees == 0].sum() / len(scores)
        previous, scores = scores, DAMPING * walks + 1 - DAMPING
        if np.abs(scores - previous).max() < TOLERANCE:
            break
    return scores


class SentenceLinks:
    """The matrix of the links between sentences, n n, of which only products are computed."""

    def __init__(self, sentences: Sequence[Sequence[str]]) -> None:
        contents = [[word for word in words if word not in STOP_WORDS] or list(words) for words in sentences]
        words = sorted({word for content in contents for word in content})
        numbers = {word: number for number, word in enumerate(words)}
        sets = [sorted({numbers[word] for word in content}) for content in contents]
        self.words = np.array([number for row in sets for number in row], dtype=np.int64)  # w
        self.rows = np.repeat(np.arange(len(sets)), [len(row) for row in sets])  # w
        logs = np.log(np.maximum([len(content) for content in contents], 1))  # n
        lengths, self.length_ids = np.unique(logs, return_inverse=True)  # l, n
        sums = logs[:, None] + lengths  # n l
        self.weights = np.divide(1, sums, out=np.zeros_like(sums), where=sums > 0)  # 0: two single words
        self.shape = (len(words), len(lengths))
        sizes = np.array([len(row) for row in sets])
        self.diagonal = np.divide(sizes, 2 * logs, out=np.zeros_like(logs), where=logs > 0)  # n, links to oneself

    def multiply(self, values: np.ndarray) -> np.ndarray:
        """Multiply the matrix by one value per sentence: n → n."""
        cells = self.words * self.shape[1] + self.length_ids[self.rows]
        totals = np.bincount(cells, weights=values[self.rows], minlength=self.shape[0] * self.shape[1])
        products = (totals.reshape(self.shape)[self.words] * self.weights[self.rows]).sum(1)  # w
        return np.bincount(self.rows, weights=products, minlength=len(values)) - self.diagonal * values
