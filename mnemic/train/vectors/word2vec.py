"""What the kinds that gensim trains have in common.

Shapes: n words, d width.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, ClassVar

import torch
from torch import Tensor

from mnemic.recipe import ConfigError
from mnemic.train.vectors.contract import OnProgress, WordSpans, check_options

MIN_RATE = 1e-4  # of the first rate, at the end of training
WORDS_PER_JOB = 10_000  # that a thread trains on at one learning rate
MIN_JOBS = 20  # per epoch, so that the learning rate falls smoothly on a small corpus
MAX_SEED = 2**32 - 1


class Word2VecLearner:
    """Base of the kinds that predict words from vectors, trained by gensim.

    The distance to a word nearby is drawn from 1 to ``window``. Each prediction is against
    ``negatives`` random words; with ``hierarchical`` it is a path in the Huffman tree of all words
    instead. Frequent words are left out at random, the more so the smaller ``subsample`` is; 0:
    never. The learning rate falls linearly from ``rate`` to nearly zero.
    """

    packages: tuple[str, ...] = ("gensim", "numpy")
    kind: ClassVar[str]
    predicts_context: ClassVar[bool] = True  # the words nearby from a word, not that from them

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
    ) -> None:
        check_options(
            self.kind, width=width, window=window, negatives=negatives, min_count=min_count, epochs=epochs
        )  # fmt: skip
        if rate <= 0 or not 0 <= subsample < 1:
            raise ConfigError(
                f"{self.kind}.rate is above 0 and {self.kind}.subsample from 0 to below 1, not {rate} and {subsample}"
            )
        self.width, self.window, self.negatives, self.hierarchical = width, window, negatives, hierarchical
        self.min_count, self.epochs = min_count, epochs
        self.rate, self.subsample = rate, subsample

    def check_installed(self) -> None:
        """Raise a ValueError if gensim is not installed."""
        if find_spec("gensim") is None:
            raise ValueError("training word vectors needs gensim: pip install 'mnemic[vectors]'")

    def build_model(self, options: Mapping[str, Any]) -> Any:
        """Build gensim's model."""
        from gensim.models import Word2Vec

        return Word2Vec(**options)

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
        if not 0 <= seed <= MAX_SEED:
            raise ConfigError(f"a seed of word vectors is from 0 to {MAX_SEED}, not {seed}")
        options: dict[str, Any] = {"sg": int(self.predicts_context), "hs": int(self.hierarchical)}
        options |= {"negative": 0 if self.hierarchical else self.negatives}
        options |= {"vector_size": self.width, "window": self.window, "epochs": self.epochs, "sample": self.subsample}
        options |= {"alpha": self.rate, "min_alpha": self.rate * MIN_RATE, "min_count": 1, "sorted_vocab": 0}
        options |= {"batch_words": min(max(num_words // MIN_JOBS, 1), WORDS_PER_JOB), "seed": seed, "workers": threads}
        model = self.build_model(options)
        model.build_vocab_from_freq(dict(counts))
        corpus = GensimCorpus(spans, num_words * self.epochs, on_progress)
        model.train(corpus, total_words=num_words, epochs=self.epochs)
        if corpus.error is not None:
            raise corpus.error
        assert model.wv.index_to_key == list(counts)
        return torch.from_numpy(model.wv.vectors.copy())


class GensimCorpus:
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
