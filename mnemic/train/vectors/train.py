"""Train word vectors on a corpus: count its words, learn, and write a card."""

from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from mnemic import __version__
from mnemic.checkpoint.vectors import VectorTable
from mnemic.data.corpora.read_documents import Corpus
from mnemic.recipe import ConfigError, build, kind_name
from mnemic.train.vectors import VECTOR_LEARNERS
from mnemic.train.vectors.contract import OnProgress, WordSpans

SPANS_PER_UPDATE = 100  # of the count


def train_vectors(
    spec: Mapping[str, Any],
    corpus: Corpus,
    *,
    max_documents: int = 0,
    seed: int = 0,
    threads: int = 1,
    on_progress: OnProgress = lambda num_read, total: None,
) -> VectorTable:
    """Train word vectors on the first ``max_documents`` documents of a corpus (0: all).

    ``spec`` has a ``kind`` and its options. What ``on_progress`` raises ends the training.
    """
    if threads < 1 or max_documents < 0:
        raise ConfigError(f"threads are 1 or more and documents 0 (all) or more, not {threads} and {max_documents}")
    learner = build(VECTOR_LEARNERS, spec)
    learner.check_installed()
    spans = WordSpans(corpus, max_documents)
    all_counts = count_words(spans, on_progress)
    num_words = all_counts.total()
    counts = select_words(all_counts, learner.min_count)
    vectors = learner.learn(spans, counts, num_words=num_words, seed=seed, threads=threads, on_progress=on_progress)
    card = {
        "kind": kind_name(spec),
        "options": vars(learner),
        "seed": seed,
        "threads": threads,
        "corpus": {
            "files": [path.name for path in corpus.files],
            "fingerprint": corpus.fingerprint,
            "field": corpus.field,
            "max_documents": max_documents,
            "words": num_words,
            "different_words": len(all_counts),
        },
        "versions": {"mnemic": __version__} | {name: version(name) for name in learner.packages},
    }
    return VectorTable(tuple(counts), vectors, tuple(counts.values()), card)


def count_words(spans: WordSpans, on_progress: OnProgress) -> Counter[str]:
    """Count all words of the documents."""
    counts: Counter[str] = Counter()
    num_words = 0
    for number, words in enumerate(spans):
        counts.update(words)
        num_words += len(words)
        if number % SPANS_PER_UPDATE == 0:
            on_progress(num_words, 0)
    return counts


def select_words(counts: Mapping[str, int], min_count: int) -> dict[str, int]:
    """Select the words that are frequent enough, in the order of frequency, then alphabetical."""
    selected = sorted((-count, word) for word, count in counts.items() if count >= min_count)
    if not selected:
        max_count = max(counts.values(), default=0)
        raise ConfigError(
            f"no word of the corpus occurs {min_count} times, the most frequent one {max_count}: "
            "give more documents, or a smaller min_count"
        )
    return {word: -count for count, word in selected}
