"""TextRank: against networkx's PageRank of listed links, by hand, and its invariants."""

import random
from math import log

import networkx
import numpy as np
import pytest

from mnemic.text.stop_words import STOP_WORDS
from mnemic.text.text_rank import KeySentence, SentenceLinks, find_key_sentences, rank_sentences

WORDS = ["cat", "dog", "mouse", "house", "sky", "rain", "sea", "ship", "wind", "sail", "red", "the", "of", "and"]
TEXT = """The harbor of Old Mira was built by sailors. Rain fell. Sailors of Mira trade salt, and the
harbor keeps their ships. Nobody swims there in winter. Ships with salt leave the harbor each
morning, if the sailors are awake. A cat sleeps on the wall."""


def draw_sentences(seed: int) -> list[list[str]]:
    """Draw sentences, some of them equal, of one word, of stop words only, or empty."""
    generator = random.Random(seed)
    lengths = [generator.choice([0, 1, 1, 2, 3, 5, 9, 14]) for _ in range(generator.randrange(1, 25))]
    sentences = [generator.choices(WORDS, k=length) for length in lengths]
    return [*sentences, sentences[0], ["the", "of"], ["sky"]]


def link_slowly(first: list[str], second: list[str]) -> float:
    """The similarity of two sentences by its definition."""
    contents = [[word for word in words if word not in STOP_WORDS] or words for words in (first, second)]
    shared = len(set(contents[0]) & set(contents[1]))
    length = sum(log(len(content)) for content in contents) if shared else 0.0
    return shared / length if length else 0.0


def list_links(sentences: list[list[str]]) -> np.ndarray:
    """All links, without those of a sentence to itself: n n."""
    return np.array([
        [link_slowly(first, second) * (row != column) for column, second in enumerate(sentences)]
        for row, first in enumerate(sentences)
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_scores_are_the_pagerank_of_listed_links(seed: int) -> None:
    sentences = draw_sentences(seed)
    graph = networkx.from_numpy_array(list_links(sentences))
    expected = networkx.pagerank(graph, alpha=0.85, tol=1e-12, max_iter=500)
    scores = rank_sentences(sentences)
    count = len(sentences)
    assert scores == pytest.approx([count * expected[number] for number in range(count)], abs=1e-7)
    assert scores.mean() == pytest.approx(1)


def test_products_are_those_of_the_listed_links() -> None:
    sentences, generator = draw_sentences(99), np.random.default_rng(0)
    values = generator.normal(size=len(sentences))
    assert SentenceLinks(sentences).multiply(values) == pytest.approx(list_links(sentences) @ values, abs=1e-12)


def test_two_words_of_two_and_four_by_hand() -> None:
    """One shared word between lengths 2 and 4: a link of 1 / (ln 2 + ln 4)."""
    links = SentenceLinks([["cat", "dog"], ["cat", "sky", "sea", "ship"]])
    assert links.multiply(np.array([0.0, 1.0])) == pytest.approx([1 / (log(2) + log(4)), 0])


def test_key_sentences_are_quotes_in_the_order_of_the_texts() -> None:
    best = find_key_sentences([TEXT], 3)
    quotes = [TEXT[sentence.start : sentence.end] for sentence in best]
    assert [quote.split()[0] for quote in quotes] == ["The", "Sailors", "Ships"]
    assert all(quote == quote.strip() and quote.endswith(".") for quote in quotes)
    everything = find_key_sentences([TEXT])
    assert len(everything) == 6
    assert sum(sentence.score for sentence in everything) == pytest.approx(6)
    assert {*best} <= {*everything}
    half = TEXT.index("Ships")
    parts = find_key_sentences([TEXT[:half], "", TEXT[half:]])
    assert [sentence.score for sentence in parts] == pytest.approx([sentence.score for sentence in everything])
    assert [sentence.text for sentence in parts] == [0, 0, 0, 0, 2, 2]


def test_scores_do_not_depend_on_the_order() -> None:
    sentences = draw_sentences(5)
    order = np.random.default_rng(1).permutation(len(sentences))
    assert rank_sentences([sentences[number] for number in order]) == pytest.approx(rank_sentences(sentences)[order])


def test_texts_without_links_are_survived() -> None:
    assert find_key_sentences([]) == find_key_sentences(["", ""], 3) == []
    assert rank_sentences([["cat"], ["dog"]]) == pytest.approx([1, 1])
    assert find_key_sentences(["One sentence alone."], 5) == [KeySentence(0, 0, 19, pytest.approx(1))]
    assert len(find_key_sentences(["猫在睡觉。狗在叫。猫怕狗。"], 2)) == 2


def test_a_long_text_is_ranked_in_little_memory() -> None:
    """8,000 sentences: a list of their links would have 64 million."""
    generator = random.Random(0)
    vocabulary = [f"w{number}" for number in range(3000)]
    sentences = [generator.choices(vocabulary, k=generator.randrange(2, 30)) for _ in range(8000)]
    assert rank_sentences(sentences).mean() == pytest.approx(1)
