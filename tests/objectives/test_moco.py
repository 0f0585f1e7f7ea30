"""Momentum contrast: the queue, the momentum weights, and what they never hold."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.data.views.batches import ViewBatch
from mnemic.models import TextOutput, WindowBatch
from mnemic.objectives.contract import CarriedState
from mnemic.objectives.moco import EMPTY, MoCoLoss, enqueue, start_queue
from mnemic.recipe import ConfigError


class WordVectors(nn.Module):
    """A vector per word; a window is one word."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.randn(40, 4, generator=torch.Generator().manual_seed(0)))

    def forward(self, inputs: WindowBatch) -> TextOutput:
        """Return vectors as logits."""
        states = self.words[inputs.tokens]
        return TextOutput(states[:, 0], states)


def make_batch(words: list[int], text_ids: list[int], negatives: list[int] | None = None) -> ViewBatch:
    """Make first views, second views and hard negatives of one word each."""
    tokens = torch.tensor([*words, *(negatives or [])]).unsqueeze(1)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    negative_ids = torch.tensor([100 + word for word in negatives or []], dtype=torch.long)
    return ViewBatch(WindowBatch(tokens, mask, tokens, mask), torch.tensor(text_ids), negative_ids)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    return nn.functional.cosine_similarity(a, b, dim=-1)


def test_the_oldest_keys_are_replaced_in_order() -> None:
    queue: CarriedState = start_queue(6, torch.zeros(2, 3))
    assert queue["queue_ids"].tolist() == [EMPTY] * 6
    for step in range(4):
        ids = torch.tensor([2 * step, 2 * step + 1])
        queue = enqueue(queue, ids.unsqueeze(1).expand(2, 3).float(), ids)
    assert queue["queue_ids"].tolist() == [6, 7, 2, 3, 4, 5]
    assert queue["queue"][:, 0].tolist() == [6, 7, 2, 3, 4, 5]
    assert int(queue["queue_next"]) == 2


def test_the_queue_is_a_value() -> None:
    queue = start_queue(4, torch.zeros(2, 3))
    enqueue(queue, torch.ones(2, 3), torch.tensor([1, 2]))
    assert not queue["queue"].any()


def test_momentum_weights_and_loss_by_hand() -> None:
    """Three batches: no negatives, those of one batch, those of two; the weights move by half."""
    network, objective = WordVectors(), MoCoLoss(momentum=0.5, queue=4, temperature=0.1, batch=2)
    start = network.words.detach().clone()
    carried: Any = None
    batches = [make_batch([4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3], [2 * n, 2 * n + 1]) for n in range(3)]
    momentum, keys = start.clone(), []
    for number, batch in enumerate(batches):
        with torch.no_grad():
            network.words += number  # as an optimizer would
        momentum = momentum if number == 0 else 0.5 * momentum + 0.5 * network.words.detach()
        loss = objective(network, batch, carried)
        torch.testing.assert_close(loss.carried["momentum.words"], momentum)  # type: ignore[index]
        first, second = batch.inputs.tokens[:2, 0], batch.inputs.tokens[2:, 0]
        expected = torch.zeros(())
        for row in range(2):
            query = network.words[first[row]]
            scores = torch.stack([cosine(query, key) for key in [momentum[second[row]], *keys]]) / 0.1
            expected = expected - scores.log_softmax(0)[0]
        torch.testing.assert_close(loss.total, expected)
        assert int(loss.num_targets) == 2
        keys = [*keys, *momentum[second]]
        carried = loss.carried
    assert carried["queue_ids"].tolist() == [4, 5, 2, 3]
    torch.testing.assert_close(carried["queue"].norm(dim=1), torch.ones(4))


def test_the_first_batch_has_no_negatives_and_no_gradient() -> None:
    """Its positives enter the queue after the loss: they are never their own negatives."""
    network = WordVectors()
    loss = MoCoLoss(queue=2, batch=2)(network, make_batch([0, 1, 2, 3], [0, 1]))
    assert float(loss.total.detach()) == 0
    loss.total.backward()
    assert network.words.grad is not None
    assert not network.words.grad.any()


def test_equal_texts_in_the_queue_are_no_negatives() -> None:
    network, objective = WordVectors(), MoCoLoss(queue=4, batch=2)
    carried = objective(network, make_batch([0, 1, 2, 3], [7, 8])).carried
    again = objective(network, make_batch([4, 5, 6, 7], [8, 7]), carried)
    assert float(again.total.detach()) > 0  # of two keys in the queue one is a negative of each
    carried = objective(network, make_batch([0, 1, 2, 3], [7, 7])).carried
    again = objective(network, make_batch([4, 5, 6, 7], [7, 7]), carried)
    assert float(again.total.detach()) == 0


def test_hard_negatives_count_and_do_not_enter_the_queue() -> None:
    network = WordVectors()
    loss = MoCoLoss(queue=2, batch=2, temperature=0.1)(network, make_batch([0, 1, 2, 3], [0, 1], [4, 5, 6]))
    expected = torch.zeros(())
    for row in range(2):
        scores = torch.stack([cosine(network.words[row], network.words[key]) for key in (row + 2, 4, 5, 6)]) / 0.1
        expected = expected - scores.log_softmax(0)[0]
    torch.testing.assert_close(loss.total, expected)
    assert loss.carried is not None
    assert loss.carried["queue_ids"].tolist() == [0, 1]


def test_keys_have_no_gradient() -> None:
    network, objective = WordVectors(), MoCoLoss(queue=4, batch=2)
    carried = objective(network, make_batch([0, 1, 2, 3], [0, 1])).carried
    loss = objective(network, make_batch([4, 5, 6, 7], [2, 3]), carried)
    loss.total.backward()
    assert network.words.grad is not None
    assert network.words.grad.any(1).nonzero().flatten().tolist() == [4, 5]  # the queries' words
    assert not any(tensor.requires_grad for tensor in loss.carried.values())  # type: ignore[union-attr]


def test_shards_change_nothing() -> None:
    results = []
    for shards in (1, 2):
        network, carried = WordVectors(), None
        objective = MoCoLoss(queue=4, batch=2, shards=shards)
        for words in ([0, 1, 2, 3], [4, 5, 6, 7]):
            loss = objective(network, make_batch(words, words[:2], [9]), carried)
            carried = loss.carried
        loss.total.backward()
        results.append([loss.total.detach(), network.words.grad, carried["queue"]])  # type: ignore[index]
    for value, sharded in zip(*results):
        torch.testing.assert_close(value, sharded)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queue": 100, "batch": 32}, "queue = 100 does not hold whole batches of 32 .*, say 96"),
        ({"queue": 16, "batch": 32}, "queue = 16 does not hold .*, say 32"),
        ({"momentum": 1.0}, "momentum is a number from 0 to below 1, not 1.0"),
        ({"temperature": 0.0}, "moco takes a temperature above 0"),
    ],
)
def test_what_is_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MoCoLoss(**options)
