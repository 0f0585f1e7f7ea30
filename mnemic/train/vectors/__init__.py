"""Ways to learn word vectors from documents, which an embedding can start from."""

from collections.abc import Callable

from mnemic.train.vectors.cbow import Cbow
from mnemic.train.vectors.cbow_corrected import CbowCorrected
from mnemic.train.vectors.contract import VectorLearner
from mnemic.train.vectors.fasttext import FastText
from mnemic.train.vectors.glove import Glove
from mnemic.train.vectors.skip_gram import SkipGram
from mnemic.train.vectors.svd import PpmiSvd

VECTOR_LEARNERS: dict[str, Callable[..., VectorLearner]] = {
    "cbow": Cbow,
    "cbow-corrected": CbowCorrected,
    "fasttext": FastText,
    "glove": Glove,
    "skip-gram": SkipGram,
    "svd": PpmiSvd,
}
