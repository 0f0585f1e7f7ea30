"""Word vectors that words with the same letters share, trained by gensim."""

from collections.abc import Mapping
from typing import Any

from mnemic.recipe import ConfigError
from mnemic.train.vectors.contract import check_options
from mnemic.train.vectors.word2vec import Word2VecLearner


class FastText(Word2VecLearner):
    """As ``skip-gram``, with vectors of letters, too (Bojanowski et al. 2017).

    arXiv:1607.04606: a word is the mean of its own vector and those of all its n-grams of
    ``min_letters`` to ``max_letters`` letters, the marks < and > of a word's ends included, hashed
    to ``buckets``. Published for English: 71 on WordSim-353 (skip-gram: 72); languages with more
    forms of a word gain.

    Where we differ: 200,000 buckets instead of 2 million, which are 2.4 GB at a width of 300; and
    only the vectors of words that were read are kept.
    """

    kind = "fasttext"

    def __init__(
        self,
        *,
        width: int = 300,
        window: int = 5,
        negatives: int = 5,
        hierarchical: bool = False,
        min_count: int = 5,
        epochs: int = 5,
        rate: float = 0.025,
        subsample: float = 1e-3,
        min_letters: int = 3,
        max_letters: int = 6,
        buckets: int = 200_000,
    ) -> None:
        super().__init__(
            width=width, window=window, negatives=negatives, hierarchical=hierarchical,
            min_count=min_count, epochs=epochs, rate=rate, subsample=subsample,
        )  # fmt: skip
        check_options(self.kind, min_letters=min_letters, max_letters=max_letters, buckets=buckets)
        if min_letters > max_letters:
            raise ConfigError(f"fasttext.min_letters is at most max_letters, not {min_letters} and {max_letters}")
        self.min_letters, self.max_letters, self.buckets = min_letters, max_letters, buckets

    def build_model(self, options: Mapping[str, Any]) -> Any:
        """Build gensim's model."""
        from gensim.models import FastText as GensimFastText

        letters = {"min_n": self.min_letters, "max_n": self.max_letters, "bucket": self.buckets}
        return GensimFastText(**options, **letters)
