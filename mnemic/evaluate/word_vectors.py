"""Measure word vectors: similarity, analogies, and classes of texts by the mean.

Shapes: n words, d width, q questions, e texts, c classes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.evaluate.metrics import accuracy, spearman_correlation

QUESTIONS_PER_BATCH = 512
Labeled = tuple[Tensor, Sequence[int]]  # texts as vectors, e d, and their labels
WEIGHT_PENALTY = 1e-4  # of a linear classifier, beside its mean loss


class Coverage(NamedTuple):
    """A score, and how many of the examples have vectors for all of their words."""

    score: float
    num_covered: int
    num_examples: int


def rate_similarity(
    vectors: Tensor, ranks: Mapping[str, int], pairs: Sequence[tuple[str, str, float]]
) -> Coverage:  # fmt: skip
    """Compute Spearman's correlation of cosines with ratings, of the pairs that have vectors."""
    covered = [(ranks[first], ranks[second], rating) for first, second, rating in pairs if {first, second} <= {*ranks}]
    if not covered:
        return Coverage(0.0, 0, len(pairs))
    rows = torch.tensor([[first, second] for first, second, _ in covered])
    cosines = nn.functional.cosine_similarity(vectors[rows[:, 0]], vectors[rows[:, 1]])
    ratings = [rating for _, _, rating in covered]
    return Coverage(spearman_correlation(cosines.tolist(), ratings), len(covered), len(pairs))


def solve_analogies(
    vectors: Tensor, ranks: Mapping[str, int], questions: Sequence[tuple[str, str, str, str]], max_words: int = 30_000
) -> Coverage:
    """Compute how often an analogy is completed with the right word.

    "a is to b as c is to …", by 3CosAdd (Mikolov et al. 2013): the word nearest to b - a + c, of
    the first ``max_words``, but none of the three. Questions with a word that is not among them do
    not count.
    """
    rows = [[ranks.get(word, max_words) for word in question] for question in questions]
    covered = torch.tensor([row for row in rows if max(row) < max_words], dtype=torch.long).view(-1, 4)  # q 4
    normalized = nn.functional.normalize(vectors[:max_words], dim=-1)  # n d
    num_right = 0
    for batch in covered.split(QUESTIONS_PER_BATCH):
        first, second, third, right = batch.unbind(1)
        cosines = (normalized[second] - normalized[first] + normalized[third]) @ normalized.T  # q n
        cosines.scatter_(1, batch[:, :3], -torch.inf)
        num_right += int((cosines.argmax(1) == right).sum())
    return Coverage(num_right / max(len(covered), 1), len(covered), len(questions))


def mean_vectors(vectors: Tensor, ranks: Mapping[str, int], texts: Sequence[Sequence[str]]) -> Tensor:
    """Average the normalized vectors of the words of each text, e d; zeros without any."""
    normalized = nn.functional.normalize(vectors, dim=-1)
    ids = [[ranks[word] for word in text if word in ranks] for text in texts]
    flat = torch.tensor([rank for text in ids for rank in text], dtype=torch.long)
    offsets = torch.tensor([0, *(len(text) for text in ids)]).cumsum(0)[:-1]
    return nn.functional.embedding_bag(flat, normalized, offsets, mode="mean")


def classify_by_mean(train: Labeled, test: Labeled, steps: int = 100) -> float:
    """Fit a linear classifier to texts as vectors (e d) with labels; return its accuracy.

    Multinomial logistic regression by L-BFGS, from zeros: the result has no chance in it.
    """
    (vectors, labels), (test_vectors, test_labels) = train, test
    targets = torch.tensor(labels)
    linear = nn.Linear(vectors.shape[1], int(targets.max()) + 1)
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)
    optimizer = torch.optim.LBFGS(linear.parameters(), max_iter=steps, line_search_fn="strong_wolfe")

    def compute_loss() -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(linear(vectors), targets) + WEIGHT_PENALTY * linear.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(compute_loss)
    with torch.no_grad():
        predictions = linear(test_vectors).argmax(1).tolist()
    return accuracy(predictions, list(test_labels))
