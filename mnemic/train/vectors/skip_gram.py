"""Word vectors by skip-gram, trained by gensim."""

from mnemic.train.vectors.word2vec import Word2VecLearner


class SkipGram(Word2VecLearner):
    """Predict the words around each word (Mikolov et al. 2013).

    arXiv:1310.4546, sections 2.1 to 2.3. Published with 300 dimensions and 5 negatives: 59 % of the
    analogies.

    Where we differ: no phrases (section 4). Words are left out by the formula of the authors'
    program, with its threshold; the paper has another formula, and 1e-5.
    """

    kind = "skip-gram"
