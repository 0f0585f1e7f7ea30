"""Word vectors by the continuous bag of words, trained by gensim."""

from mnemic.train.vectors.word2vec import Word2VecLearner


class Cbow(Word2VecLearner):
    """Predict each word from the mean of those around it (Mikolov et al. 2013).

    arXiv:1301.3781, section 3.1. As the authors' program, gensim moves every word of a mean by the
    whole gradient, instead of its share; ``cbow-corrected`` does not.
    """

    kind = "cbow"
    predicts_context = False
