"""The benchmarks of long texts, on numbers that can be checked by hand."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import evidence_ablation  # noqa: E402
import long_classification  # noqa: E402
import long_context  # noqa: E402
import long_masked_lm  # noqa: E402
import long_qa  # noqa: E402
import segment_cache  # noqa: E402

from mnemic.data import DATASETS  # noqa: E402
from mnemic.data.long_context.articles import Article  # noqa: E402
from mnemic.data.long_context.batches import LongDataset  # noqa: E402
from mnemic.data.long_context.hide import SentenceTokens  # noqa: E402
from mnemic.evaluate import long_context as recall  # noqa: E402
from mnemic.recipe import build  # noqa: E402
from mnemic.train.initialize import build_network  # noqa: E402

MODEL = {
    "width": 16,
    "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": 1}},
    "memory": {"kind": "selective", "slots": 8, "threshold": 0.5},
    "respond": {"kind": "predictor"},
    "segments": {"unit": "sentences"},
}


@pytest.fixture(scope="module")
def stories() -> LongDataset:
    spec = {"kind": "long-stories", "length": 32, "segments": 4, "tasks": [1], "count": 60}
    source = build(DATASETS, spec | {"tokenizer": {"kind": "wordpiece", "vocab": 400}})
    return source.load().test.with_segments(4)


def make_networks(stories: LongDataset, count: int) -> list[Any]:
    sizes = {"vocab": len(stories.tokenizer), "max_length": stories.length}
    return [build_network(MODEL, sizes, seed).eval() for seed in range(count)]


def test_cited_slots_are_the_fewest_that_make_up_the_share() -> None:
    weights = torch.tensor([[0.1, 0.6, 0.3, -1.0], [0.95, 0.0, 0.05, -1.0]])
    assert evidence_ablation.find_cited_slots(weights, 0.8).tolist() == [
        [False, True, True, False],
        [True, False, False, False],
    ]
    assert evidence_ablation.find_cited_slots(weights, 0.0).sum(1).tolist() == [0, 0]
    lowest = evidence_ablation.lowest_mask(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([2]))
    assert lowest.tolist() == [[False, True, True]]


@pytest.mark.parametrize(("wins", "losses", "probability"), [(0, 0, 1.0), (3, 3, 1.0), (0, 3, 0.25), (10, 0, 2 / 1024)])
def test_the_sign_test_counts_tails(wins: int, losses: int, probability: float) -> None:
    assert long_classification.compute_sign_test(wins, losses) == pytest.approx(probability, rel=0.01)
    first, second = torch.tensor([True, True, False]), torch.tensor([False, True, True])
    assert long_classification.compare_runs("a", "b", first, second) == {"only a": 1, "only b": 1, "p": 1.0}


def test_memories_without_a_controller_are_of_equal_size() -> None:
    article = Article(tuple("abcdefg"), (0, 0, 0, 1, 1, 2, 2), ())
    assert long_qa.choose_sentences("first", article, 3, 0) == [0, 3, 5]
    assert long_qa.choose_sentences("first", article, 5, 0) == [0, 3, 5, 1, 4]
    random_sentences = long_qa.choose_sentences("random", article, 4, 0)
    assert len(set(random_sentences)) == 4
    assert random_sentences == long_qa.choose_sentences("random", article, 4, 0)
    assert sorted(long_qa.choose_sentences("random", article, 99, 1)) == list(range(7))


def test_networks_that_read_the_same_documents_answer_as_each_does_alone(
    stories: LongDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "find_correct_answers", lambda output, _: output.logits[:, 0, ::2].sum(-1) > 0)
    networks, rows = make_networks(stories, 3), list(range(12))
    alone = [recall.find_wrong_answers(network, stories, rows, 2) for network in networks]
    assert len({tuple(wrong.tolist()) for wrong in alone}) > 1, "they must differ for this test to show anything"
    monkeypatch.setattr(segment_cache, "find_correct_answers", recall.find_correct_answers)
    monkeypatch.setattr(segment_cache, "MAX_SEGMENTS", 5)
    for workers in (1, 2):
        cached = segment_cache.find_wrong_with_cache(networks, stories, rows, 2, num_workers=workers)
        for expected, *results in zip(alone, recall.find_wrong_answers_per_network(networks, stories, rows, 2), cached):
            assert all(torch.equal(expected, wrong) for wrong in results)


def test_the_last_segment_alone_is_what_a_memory_that_never_lasts_holds(stories: LongDataset) -> None:
    (network,), rows = make_networks(stories, 1), list(range(8))
    with torch.no_grad():
        alone = network(long_context.make_last_segment_batch(stories, rows).inputs).logits
        lasting = network(stories.batch(torch.tensor(rows)).inputs).logits
        network.carry_memory = False
        emptied = network(stories.batch(torch.tensor(rows)).inputs).logits
    torch.testing.assert_close(alone, emptied)
    assert not torch.allclose(alone, lasting)


def test_retrieval_keeps_the_best_that_fit_in_the_order_they_were_told() -> None:
    sizes = {0.9: 4, 0.1: 2, 0.8: 3, 0.7: 9}
    candidates = [
        (similarity, position, SentenceTokens(np.zeros(n))) for position, (similarity, n) in enumerate(sizes.items())
    ]
    best = long_context.keep_best_sentences(candidates, 8)
    assert [similarity for similarity, *_ in best] == [0.9, 0.8]
    assert [similarity for similarity, *_ in long_context.keep_best_sentences(candidates, 16)] == [0.9, 0.8, 0.7]


def test_the_parts_of_processes_are_joined() -> None:
    first = {"tokens": 5, "wrong": [True, False], "tasks": [1, 2], "read": 10, "seconds": 2.0}
    second = {"tokens": 5, "wrong": [False], "tasks": [1], "read": 30, "seconds": 4.0}
    row = long_context.join_parts([process_part | {"peak": None, "once": False} for process_part in (first, second)])
    assert (row["accuracy"], row["mean"]) == ({1: 50.0, 2: 100.0}, 75.0)
    assert (row["questions"], row["tokens a second"]) == (3, 10)
    cached = long_context.join_parts([first | {"peak": None, "once": True}])
    assert "tokens a second" not in cached  # most were not read


def test_word_losses_are_means_over_words_and_the_first_segment_is_left_out() -> None:
    with_memory = torch.tensor([[[9.0, 3.0], [2.0, 2.0]], [[0.0, 0.0], [6.0, 2.0]]])
    emptied = torch.tensor([[[9.0, 3.0], [4.0, 2.0]], [[0.0, 0.0], [6.0, 2.0]]])
    summary = long_masked_lm.summarize_losses({"with memory": with_memory, "emptied": emptied})
    assert summary["loss"] == {"with memory": 2.0, "emptied": 2.5}
    assert summary["difference"][0] == 0.5
    assert summary["by segment"]["with memory"] == [3.0, 2.0]
    assert summary["words by segment"] == [3, 4]


@pytest.mark.parametrize("unit", ["sentences", "tokens"])
@pytest.mark.parametrize("memory", ["selective", "blended"])
def test_segments_that_come_again_are_encoded_once(stories: LongDataset, memory: str, unit: str) -> None:
    network = build_network(
        MODEL | {"segments": {"unit": unit}, "memory": {"kind": memory, "slots": 8}},
        {"vocab": len(stories.tokenizer), "max_length": stories.length},
        0,
    ).eval()
    cache, calls = segment_cache.SegmentCache([network]), []
    network.encode.register_forward_hook(lambda *call: calls.append(len(call[2])))
    for rows in ([0, 1, 2], [2, 0, 3], [3, 1]):
        inputs = stories.batch(torch.tensor(rows)).inputs
        with torch.no_grad():
            plain, (cached,) = network.encode_segments(inputs), cache(inputs)
        assert torch.equal(plain.mask.sum((1, 2)), cached.mask.sum((1, 2)))
        if memory == "blended":
            assert torch.equal(plain.mask.sum(2), cached.mask.sum(2))
        torch.testing.assert_close(plain.items[plain.mask], cached.items[cached.mask])
        assert not cached.items[~cached.mask].any()
    assert len(calls) == 5, "the third batch has nothing new"
    assert calls[3] < calls[1] == calls[0], "of the second batch one document is"
