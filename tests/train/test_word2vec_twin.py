"""gensim's steps are gradients of the papers' losses, by torch with the same random words."""

import heapq
from bisect import bisect_left
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from gensim.models import Word2Vec
from torch import Tensor
from torch.nn.functional import logsigmoid

from mnemic.train.vectors.cbow_corrected import find_context, take_cbow_step

COUNTS = {f"word{number}": 40 // (number + 1) + 1 for number in range(9)}
SENTENCE = [f"word{number}" for number in (0, 3, 1, 0, 5, 8, 2, 2, 7, 4, 6)]
RATE, WIDTH = 0.05, 12


def make_model(*, is_skip_gram: bool, hierarchical: bool, window: int = 3) -> Any:
    """Make gensim's model with random outputs, which are zeros at first."""
    model = Word2Vec(
        vector_size=WIDTH, window=window, negative=0 if hierarchical else 4, hs=int(hierarchical),
        sg=int(is_skip_gram), sample=0, min_count=1, sorted_vocab=0, workers=1, seed=3,
    )  # fmt: skip
    model.build_vocab_from_freq(COUNTS)
    generator = np.random.default_rng(0)
    for table in (model.wv.vectors, model.syn1 if hierarchical else model.syn1neg):
        table[:] = generator.normal(size=table.shape, scale=0.5)
    return model


class Twin:
    """word2vec word by word: every step is a gradient of autograd."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.vectors = torch.tensor(model.wv.vectors, dtype=torch.float64)
        self.outputs = torch.tensor(model.syn1 if model.hs else model.syn1neg, dtype=torch.float64)
        self.random = np.random.RandomState()
        self.random.set_state(model.random.get_state())
        self.number = 0

    def learn(self, ids: list[int], *, mean_factor: bool) -> None:
        """Take the steps of a sentence; with ``mean_factor`` a mean's words get all of it."""
        if not self.model.hs:
            self.number = 2**24 * int(self.random.randint(0, 2**24)) + int(self.random.randint(0, 2**24))
        reductions = self.random.randint(0, self.model.window, len(ids))
        for position, (word, reduction) in enumerate(zip(ids, reductions)):
            reach = self.model.window - int(reduction)
            near = [j for j in range(max(position - reach, 0), position + reach + 1) if j != position and j < len(ids)]
            around = [ids[j] for j in near]
            for group in [[context] for context in around] if self.model.sg else [around]:
                step = self.compute_step(group, word)
                factor = len(group) if mean_factor else 1
                self.vectors.index_add_(0, torch.tensor(group), step * factor)

    def compute_step(self, group: list[int], word: int) -> Tensor:
        """Predict ``word`` from the mean of a group; return the step of each of its words."""
        inputs = self.vectors[group].requires_grad_()
        total = torch.zeros_like(inputs)
        for row, sign in self.list_targets(word):
            output = self.outputs[row].clone().requires_grad_()
            loss = -logsigmoid(sign * (inputs.mean(0) @ output))
            input_gradient, output_gradient = torch.autograd.grad(loss, [inputs, output])
            total -= RATE * input_gradient
            self.outputs[row] -= RATE * output_gradient
        return total

    def list_targets(self, word: int) -> list[tuple[int, int]]:
        """List the rows of the outputs, with 1 for those that should score high and else -1."""
        key = self.model.wv.index_to_key[word]
        if self.model.hs:
            codes, points = (self.model.wv.get_vecattr(key, name) for name in ("code", "point"))
            return [(int(point), 1 - 2 * int(code)) for code, point in zip(codes, points)]
        table, targets = self.model.cum_table.tolist(), [(word, 1)]
        for _ in range(self.model.negative):
            draw = bisect_left(table, (self.number >> 16) % table[-1])
            self.number = (self.number * 25214903917 + 11) & (2**48 - 1)
            if draw != word:
                targets.append((draw, -1))
        return targets


def relative_distance(first: Tensor, second: Tensor) -> float:
    return float((first - second).norm() / second.norm())


@pytest.mark.parametrize("hierarchical", [False, True])
@pytest.mark.parametrize("is_skip_gram", [False, True])
def test_gensims_steps_are_the_gradients_of_torch(is_skip_gram: bool, hierarchical: bool) -> None:
    """gensim looks sigmoids up in a table, which is up to 0.01 off."""
    model = make_model(is_skip_gram=is_skip_gram, hierarchical=hierarchical)
    start = torch.tensor(model.wv.vectors, dtype=torch.float64)
    twin, right = Twin(model), Twin(model)
    start_outputs = twin.outputs.clone()
    ids = [model.wv.key_to_index[word] for word in SENTENCE]
    twin.learn(ids, mean_factor=not is_skip_gram)
    right.learn(ids, mean_factor=False)
    model.train([SENTENCE], total_examples=1, epochs=1, start_alpha=RATE, end_alpha=RATE)
    outputs = torch.tensor(model.syn1 if hierarchical else model.syn1neg, dtype=torch.float64)
    moved = torch.tensor(model.wv.vectors, dtype=torch.float64) - start
    assert relative_distance(outputs - start_outputs, twin.outputs - start_outputs) < 0.03
    assert relative_distance(moved, twin.vectors - start) < 0.03
    if not is_skip_gram:  # gensim moves each word of a mean as far as a word alone
        assert relative_distance(moved, right.vectors - start) > 1


def test_the_tree_is_huffmans_and_its_leaves_are_a_distribution() -> None:
    model = make_model(is_skip_gram=True, hierarchical=True)
    counts, words = list(COUNTS.values()), list(COUNTS)
    lengths = [len(model.wv.get_vecattr(word, "code")) for word in words]
    heap, cost = list(counts), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        cost += merged
        heapq.heappush(heap, merged)
    assert sum(count * length for count, length in zip(counts, lengths)) == cost
    for (count, length), (next_count, next_length) in pairwise(zip(counts, lengths)):
        assert length <= next_length or count == next_count  # frequent words have short codes
    outputs, vector = torch.tensor(model.syn1), torch.tensor(model.wv.vectors[4])
    total = 0.0
    for word in words:
        codes = torch.tensor(model.wv.get_vecattr(word, "code").astype(float))
        points = torch.tensor(model.wv.get_vecattr(word, "point").astype(int))
        total += float(torch.sigmoid((1 - 2 * codes) * (outputs[points] @ vector)).prod())
    assert total == pytest.approx(1, abs=1e-5)


def test_corrected_steps_are_the_gradient_of_the_mean() -> None:
    """All words of a span at once; a random word that is the right one has no loss."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 9, (11,), generator=generator)
    vectors, outputs = (torch.randn(9, WIDTH, generator=generator, dtype=torch.float64) for _ in range(2))
    negatives = torch.randint(0, 9, (11, 4), generator=generator)
    assert (negatives == ids.unsqueeze(1)).any()
    around, mask = find_context(ids, torch.zeros_like(ids), 3, generator)
    mask[4] = False  # nothing is near: no loss
    inputs, targets = vectors.clone().requires_grad_(), outputs.clone().requires_grad_()
    loss = torch.zeros((), dtype=torch.float64)
    for position, word in enumerate(ids.tolist()):
        group = around[position][mask[position]]
        if not len(group):
            continue
        mean = inputs[group].mean(0)
        loss = loss - logsigmoid(mean @ targets[word])
        for other in negatives[position].tolist():
            if other != word:
                loss = loss - logsigmoid(-(mean @ targets[other]))
    gradients = torch.autograd.grad(loss, [inputs, targets])
    moved, moved_outputs = vectors.clone(), outputs.clone()
    take_cbow_step(moved, moved_outputs, around, mask, ids, negatives, RATE)
    torch.testing.assert_close(moved, vectors - RATE * gradients[0])
    torch.testing.assert_close(moved_outputs, outputs - RATE * gradients[1])


def test_words_around_a_word_are_within_a_reach_that_is_drawn() -> None:
    generator, ids = torch.Generator().manual_seed(0), torch.arange(2000) + 5
    around, mask = find_context(ids, torch.zeros_like(ids), 4, generator)
    distances = (around - ids.unsqueeze(1)).masked_fill(~mask, 0)
    reaches = distances.abs().amax(1)[4:-4]
    for position in (0, 1, 7, 1999):
        reach = int(distances[position].abs().max())
        near = [number for number in range(position - reach, position + reach + 1) if 0 <= number < 2000]
        assert sorted(around[position][mask[position]].tolist()) == [n + 5 for n in near if n != position]
    shares = torch.bincount(reaches, minlength=5)[1:] / len(reaches)
    torch.testing.assert_close(shares, torch.full((4,), 0.25), atol=0.04, rtol=0)
    around, mask = find_context(ids[:6], torch.tensor([0, 0, 1, 1, 1, 2]), 9, generator)
    assert around[1][mask[1]].tolist() == [5]
    assert set(around[3][mask[3]].tolist()) <= {7, 9}
    assert not mask[5].any()
    assert find_context(ids[:0], ids[:0], 9, generator)[0].shape == (0, 18)
