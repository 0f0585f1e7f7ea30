"""Rank passages with a network that reads them beside the question."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from text_runs import trained

import mnemic
from mnemic.models.build import build_model
from mnemic.objectives.retrieve_and_read import RetrieveAndReadLoss, relevance_loss
from mnemic.predict.methods import MethodError
from mnemic.predict.model import Model
from mnemic.recipe import ConfigError, load_recipe
from mnemic.respond.merge_windows import MAX_RELEVANCE, find_best_spans, select_best_span

QUESTION = "Who wrote Dracula?"
PASSAGES = [
    "The rent is 700 euros a month.",
    "Mary Shelley wrote Frankenstein in 1818, when she was twenty.",
    "Bram Stoker, who managed a theatre in London, wrote Dracula in 1897.",
    "Dracula was first read by few. " * 60 + "It was written by Bram Stoker.",
]


@pytest.fixture(scope="module")
def reader() -> Model:
    return mnemic.load("reader")


def test_a_ranking_is_that_of_a_slow_loop(reader: Model) -> None:
    ranked = reader.rerank(QUESTION, PASSAGES)
    alone = [reader.answer(QUESTION, passage) for passage in PASSAGES]
    order = sorted(range(len(PASSAGES)), key=lambda index: alone[index].no_answer)
    assert [passage.index for passage in ranked] == order == [3, 2, 1, 0]
    for passage in ranked:
        answer = alone[passage.index]
        assert passage.score == pytest.approx(answer.relevance, abs=1e-3)
        assert torch.sigmoid(torch.tensor(-passage.score)).item() == pytest.approx(answer.no_answer, abs=1e-4)
        assert (passage.seen, passage.total) == (answer.seen, answer.total)
    assert max(passage.total for passage in ranked) > 384  # a text of several windows


def test_equal_passages_keep_their_order_and_empty_ones_are_last(reader: Model) -> None:
    ranked = reader.rerank(QUESTION, ["", PASSAGES[2], PASSAGES[0], PASSAGES[2], "北京是中国的首都。"])
    assert [passage.index for passage in ranked][:2] == [1, 3]
    assert ranked[0].score == ranked[1].score > 0 > ranked[2].score
    assert (ranked[-1].index, ranked[-1].score) == (0, -MAX_RELEVANCE)
    assert reader.rerank(QUESTION, []) == []
    with pytest.raises(ValueError, match="expected several"):
        reader.rerank(QUESTION, PASSAGES[0])
    with pytest.raises(ConfigError, match="the question is empty"):
        reader.rerank(" ", PASSAGES)


def test_log_odds_and_a_head_over_windows_by_hand() -> None:
    """Two windows of two tokens; columns are no answer, first token, second token."""
    logits = torch.tensor([[[2.0, 1, 0], [2, 0, 1]], [[0, 0, 3], [0, 0, 3]]])
    spans, none = find_best_spans(logits, 30)
    best = select_best_span(spans, none)
    first, second = (window.log_softmax(-1) for window in logits)
    span, lowest = float(second[:, 2].sum()), float(min(first[:, 0].sum(), second[:, 0].sum()))
    assert best.relevance == pytest.approx(span - lowest, abs=1e-5)
    assert best.no_answer_probability == pytest.approx(1 / (1 + torch.tensor(best.relevance).exp().item()), abs=1e-6)
    assert select_best_span(spans, none, torch.tensor([0.5, -1.0])).relevance == 0.5
    assert select_best_span(spans, none, torch.tensor([0.5, 1e9])).relevance == MAX_RELEVANCE


def test_a_network_that_rates_pairs_ranks_by_its_number() -> None:
    model = trained("numbers")
    assert model.methods == ("rate", "rerank", "embed")
    texts = ["the lovely train", "the awful house", "a small lovely train", "an old house"]
    numbers = [model.rate([("the lovely train", text)])[0].number for text in texts]
    ranked = model.rerank("the lovely train", texts)
    assert [passage.index for passage in ranked] == sorted(range(4), key=lambda index: -numbers[index])
    assert [passage.score for passage in ranked] == pytest.approx(sorted(numbers, reverse=True), abs=1e-5)
    with pytest.raises(MethodError, match="cannot rerank; it can classify, embed"):
        trained("classes").rerank("the", texts)


def build_reader(sizes: dict[str, int], *sets: str) -> Any:
    torch.manual_seed(0)
    return build_model(load_recipe("reader", list(sets))["model"], sizes)


def test_a_head_for_relevance_leaves_all_other_weights_as_they_are() -> None:
    sizes = {"vocab": 50, "max_length": 16}
    sets = ["model.width=16", "model.encode.stack.depth=1", "model.encode.stack.attention.heads=2"]
    plain, scored = (build_reader(sizes, *sets, *more) for more in ((), ("model.respond.relevance=true",)))
    new = set(scored.state_dict()) - set(plain.state_dict())
    assert new == {"respond.relevance.weight", "respond.relevance.bias"}
    assert all(torch.equal(weight, scored.state_dict()[name]) for name, weight in plain.state_dict().items())
    inputs = scored.eval().dummy_inputs(sizes)
    output = scored(inputs)
    assert plain.eval()(inputs).relevance is None
    expected = output.states[:, 0] @ scored.respond.relevance.weight[0] + scored.respond.relevance.bias
    torch.testing.assert_close(output.relevance, expected)


def test_a_head_and_its_loss_go_together() -> None:
    network = build_reader({"vocab": 50, "max_length": 16}, "model.width=16", "model.encode.stack.attention.heads=2")
    batch: Any = SimpleNamespace(inputs=network.dummy_inputs({"max_length": 16}))
    with pytest.raises(ConfigError, match=r"relevance = true and objective.relevance > 0 go together"):
        RetrieveAndReadLoss(relevance=1.0)(network, batch)
    logits = torch.tensor([2.0, -1.0, 0.5])
    targets = torch.tensor([[1, 3], [0, 0], [0, 0]])
    slow = -(logits[0].sigmoid().log() + (1 - logits[1].sigmoid()).log() + (1 - logits[2].sigmoid()).log())
    loss = relevance_loss(logits, targets)
    assert float(loss.total) == pytest.approx(float(slow), abs=1e-6)
    assert int(loss.num_targets) == 3
