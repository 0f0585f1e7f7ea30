"""Ways to learn word vectors from documents, which an embedding can start from."""

from collections.abc import Callable

from mnemic.train.vectors.contract import VectorLearner
from mnemic.train.vectors.skip_gram import SkipGram

VECTOR_LEARNERS: dict[str, Callable[..., VectorLearner]] = {"skip-gram": SkipGram}
