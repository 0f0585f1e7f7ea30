"""Word vectors by skip-gram with negative sampling, trained by gensim.

Shapes: n words, d width.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec

import torch
from torch import Tensor

from mnemic.recipe import ConfigError
from mnemic.train.vectors.contract import OnProgress, WordSpans

MIN_RATE = 1e-4  # of the first rate, at the end of training
WORDS_PER_JOB = 10_000  # that a thread trains on at one learning rate
MIN_JOBS = 20  # per epoch, so that the learning rate falls smoothly on a small corpus
MAX_SEED = 2**32 - 1


class SkipGram:
    """Predict the words around each word, against ``negatives`` random ones (Mikolov et al. 2013).

    arXiv:1310.4546, sections 2.2 and 2.3. Published with 300 dimensions and 5 negatives: 59 % of
    the analogies. The distance to a predicted word is drawn from 1 to ``window``. Frequent words
    are left out at random, the more so the smaller ``subsample`` is; 0: never. The learning rate
    falls linearly from ``rate`` to nearly zero.

    Where we differ: no phrases (section 4). Words are left out by the formula of the authors'
    program, with its threshold; the paper has another formula, and 1e-5.
    """

    packages: tuple[str, ...] = ("gensim", "numpy")

    def __init__(
        self,
        *,
        width: int = 300,
        window: int = 5,
        negatives: int = 5,
        min_count: int = 5,
        epochs: int = 5,
        rate: float = 0.025,
        subsample: float = 1e-3,
    ) -> None:
        counts = {"width": width, "window": window, "negatives": negatives, "min_count": min_count, "epochs": epochs}
        for name, number in counts.items():
            if number < 1:
                raise ConfigError(f"skip-gram.{name} is a whole number from 1 on, not {number}")
        if rate <= 0 or not 0 <= subsample < 1:
            raise ConfigError(
                f"skip-gram.rate is above 0 and skip-gram.subsample from 0 to below 1, not {rate} and {subsample}"
            )
        self.width, self.window, self.negatives = width, window, negatives
        self.min_count, self.epochs = min_count, epochs
        self.rate, self.subsample = rate, subsample

    def check_installed(self) -> None:
        """Raise a ValueError if gensim is not installed."""
        if find_spec("gensim") is None:
            raise ValueError("training word vectors needs gensim: pip install 'mnemic[vectors]'")

    def learn(
        self,
        spans: WordSpans,
        counts: Mapping[str, int],
        *,
        num_words: int,
        seed: int,
        threads: int,
        on_progress: OnProgress,
    ) -> Tensor:
        """Learn one vector for each word of ``counts``: n d."""
        from gensim.models import Word2Vec

        if not 0 <= seed <= MAX_SEED:
            raise ConfigError(f"a seed of word vectors is from 0 to {MAX_SEED}, not {seed}")
        model = Word2Vec(
            vector_size=self.width, window=self.window, negative=self.negatives, epochs=self.epochs, sg=1, hs=0,
            alpha=self.rate, min_alpha=self.rate * MIN_RATE, sample=self.subsample, min_count=1, sorted_vocab=0,
            batch_words=min(max(num_words // MIN_JOBS, 1), WORDS_PER_JOB), seed=seed, workers=threads,
        )  # fmt: skip
        model.build_vocab_from_freq(dict(counts))
        feed = WordFeed(spans, num_words * self.epochs, on_progress)
        model.train(feed, total_words=num_words, epochs=self.epochs)
        if feed.error is not None:
            raise feed.error
        assert model.wv.index_to_key == list(counts)
        return torch.from_numpy(model.wv.vectors.copy())


class WordFeed:
    """Feed spans of words to gensim, which reads them in a thread of its own.

    An error in that thread would leave the others waiting for ever. It is stored instead, and ends
    this and every later epoch.
    """

    def __init__(self, spans: WordSpans, total_words: int, on_progress: OnProgress) -> None:
        self.spans, self.total_words, self.on_progress = spans, total_words, on_progress
        self.num_read = 0
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[list[str]]:
        try:
            for words in self.spans if self.error is None else ():
                self.num_read += len(words)
                self.on_progress(self.num_read, self.total_words)
                yield words
        except GeneratorExit:
            raise
        except BaseException as error:  # also KeyboardInterrupt, which stops the training
            self.error = error
