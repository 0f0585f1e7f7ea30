"""Reading more passages than are used, and ranking them by retrieval and reader together."""

from collections.abc import Callable, Iterator, Sequence
from math import exp
from pathlib import Path
from types import SimpleNamespace

import pytest

from mnemic.store import AnswerSpan, Memory, StoreError
from mnemic.store.answer import rerank
from mnemic.store.answer.rerank import (
    BATCH_SIZE,
    ENOUGH_RELEVANCE,
    FIRST_SIZE,
    MAX_RELEVANCE,
    NEXT_SIZE,
    RELEVANCE_WEIGHT,
    ReadingPlan,
    plan_reading,
    read_in_batches,
    rerank_hop,
)
from mnemic.store.retrieve.hybrid import Hop, softmax

QUESTION = "Who built the old hut by the lake?"
NUM_TEXTS = 14
TEXTS = [f"Number {number} built {'the old hut by the lake' if number < 3 else 'it'}." for number in range(NUM_TEXTS)]
TEXTS = [f"{text} A hut is a house.{' The lake is deep.' * (number % 3)}" for number, text in enumerate(TEXTS)]


class ScoredReader:
    """A reader that scores passages by a table, and counts what it reads."""

    def __init__(self, relevance: Callable[[str], float]) -> None:
        self.relevance = relevance
        self.calls: list[list[str]] = []

    def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
        self.calls.append(list(passages))
        return [self.find_number(text) for text in passages]

    def find_number(self, text: str) -> AnswerSpan:
        """The number of a passage, as probable as the passage is relevant."""
        no_answer = 1 / (1 + exp(self.relevance(text)))
        return AnswerSpan(0, text.index(" built"), 0.9 * (1 - no_answer), no_answer, self.relevance(text))

    @property
    def read(self) -> list[str]:
        """All that was read so far."""
        return [text for call in self.calls for text in call]


def get_number(text: str) -> int:
    return int(text.split()[1])


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder="hashed-ngrams", reader=None) as memory:
        for text in TEXTS:
            memory.note(text)
        yield memory


def rank_slowly(memory: Memory, relevance: Callable[[str], float], num_read: int) -> list[str]:
    """Rank passages one after another, those that were read first."""
    hits = memory.search(QUESTION, limit=NUM_TEXTS)
    fused = [(hit.score + RELEVANCE_WEIGHT * relevance(hit.text), -rank, hit.text) for rank, hit in enumerate(hits)]
    return [text for *_, text in sorted(fused[:num_read], reverse=True)] + [hit.text for hit in hits[num_read:]]


def list_passages(memory: Memory, **options: float) -> list[str]:
    """Ask, and list the passages of the evidence by their weight."""
    answer = memory.ask(QUESTION, confidence=0.0, **options)  # type: ignore[arg-type]
    weights = {evidence.passage: evidence.weights[0] for evidence in answer.evidence}
    return sorted(weights, key=lambda text: -weights[text])


@pytest.mark.parametrize("num_reranked", [6, 10, NUM_TEXTS, 1000])
def test_the_best_of_what_was_read_are_those_of_a_slow_loop(memory: Memory, num_reranked: int) -> None:
    memory.reader = reader = ScoredReader(lambda text: (7.0 * get_number(text)) % 13 - 6)
    expected = rank_slowly(memory, reader.relevance, min(num_reranked, NUM_TEXTS))
    assert list_passages(memory, rerank=num_reranked) == expected[:5]
    assert expected[:5] != [hit.text for hit in memory.search(QUESTION, limit=5)]
    assert len(reader.read) == len(set(reader.read)) == min(num_reranked, NUM_TEXTS)  # nothing is read twice
    assert len(reader.calls) == 1  # and all of it at once
    assert list_passages(memory, rerank=num_reranked, passages=2) == expected[:2]


def test_an_answer_quotes_a_passage_that_retrieval_had_far_below(memory: Memory) -> None:
    memory.reader = ScoredReader(lambda text: 9.0 if get_number(text) == 11 else -9.0)
    with_few, with_all = (memory.ask(QUESTION, rerank=count, confidence=0.0) for count in (0, NUM_TEXTS))
    assert TEXTS[11] not in {evidence.passage for evidence in with_few.evidence}
    assert with_all.evidence[0].passage == TEXTS[11]
    assert with_all.evidence[0].weights[0] == max(evidence.weights[0] for evidence in with_all.evidence) > 0.5
    assert (with_few.read, with_all.read) == (5, 5)
    assert with_all.notes == ()


def test_no_time_gives_the_order_of_retrieval_and_a_note(memory: Memory) -> None:
    memory.reader = reader = ScoredReader(lambda text: float(get_number(text)))
    plain, late = memory.ask(QUESTION, rerank=0), memory.ask(QUESTION, rerank=12, rerank_timeout_s=0)
    assert len(reader.read) == 10
    assert late.evidence == plain.evidence
    assert (late.text, late.score, late.ranked) == (plain.text, plain.score, plain.ranked)
    assert late.notes == ("after 0 s, 7 passages were not read: they are ranked by retrieval alone",)
    few = memory.ask(QUESTION, rerank=5, rerank_timeout_s=0)  # that are read anyway
    assert (few.evidence, few.notes) == (plain.evidence, ())


@pytest.mark.parametrize("position", [0, FIRST_SIZE, FIRST_SIZE + NEXT_SIZE, NUM_TEXTS])
def test_by_default_more_are_read_until_one_answers(memory: Memory, position: int) -> None:
    hits = [hit.text for hit in memory.search(QUESTION, limit=NUM_TEXTS)]
    memory.reader = reader = ScoredReader(lambda text: ENOUGH_RELEVANCE if text in hits[position:] else -1.0)
    passages = list_passages(memory)
    num_read = min(FIRST_SIZE + NEXT_SIZE * -(-max(position - FIRST_SIZE + 1, 0) // NEXT_SIZE), NUM_TEXTS)
    assert reader.read == hits[:num_read]
    assert passages == rank_slowly(memory, reader.relevance, num_read)[:5]
    answer = memory.ask(QUESTION)
    assert (answer.read, answer.notes) == (5, ())


def test_a_timeout_bounds_the_default_too(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.reader = reader = ScoredReader(lambda text: -1.0)
    monkeypatch.setattr(rerank, "time", SimpleNamespace(monotonic=lambda: float(len(reader.calls))))
    answer = memory.ask(QUESTION, rerank_timeout_s=1.5)
    assert [len(call) for call in reader.calls] == [FIRST_SIZE, NEXT_SIZE]
    assert answer.notes == ("after 1.5 s, 5 passages were not read: they are ranked by retrieval alone",)
    assert memory.ask(QUESTION, rerank_timeout_s=0).evidence == memory.ask(QUESTION, rerank=0).evidence
    assert [len(call) for call in reader.calls[2:]] == [5, 5]


def test_when_the_time_is_up_the_rest_is_ranked_by_retrieval(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which a batch takes a second."""
    memory.reader = reader = ScoredReader(lambda text: (7.0 * get_number(text)) % 13 - 6)
    monkeypatch.setattr(rerank, "time", SimpleNamespace(monotonic=lambda: float(len(reader.calls))))
    passages = list_passages(memory, rerank=NUM_TEXTS, rerank_timeout_s=1.5)  # two batches
    assert [len(call) for call in reader.calls] == [5, BATCH_SIZE]
    assert passages == rank_slowly(memory, reader.relevance, 5 + BATCH_SIZE)[:5]
    enough = memory.ask(QUESTION, rerank=NUM_TEXTS, rerank_timeout_s=60.0)
    assert enough.notes == ()
    assert [len(call) for call in reader.calls[2:]] == [5, 5, 4]


def test_slots_that_were_not_read_come_last_and_ties_keep_their_order() -> None:
    hop = Hop("?", {1: 3.0, 2: 2.0, 3: 1.0, 4: 0.5, 5: 0.4}, {}, 5)
    reranked = rerank_hop(hop, {1: -99.0, 3: 2.0})
    assert reranked.scores[1] == 3.0 - RELEVANCE_WEIGHT * MAX_RELEVANCE
    assert reranked.top_slots(9) == [3, 1, 2, 4, 5]
    assert reranked.weights == pytest.approx(softmax(reranked.scores))
    assert rerank_hop(hop, {}) is hop
    equal = Hop("?", {7: 1.0, 3: 1.0, 5: 1.0}, {}, 3)
    assert rerank_hop(equal, {7: 0.5, 3: 0.5, 5: 0.5}).top_slots(3) == [3, 5, 7]


def test_a_plan_says_when_to_stop() -> None:
    options = {"rerank": None, "timeout_s": None, "num_hops": 1}
    assert plan_reading(5, 10, **options).sizes == (3, 6, 6)  # type: ignore[arg-type]
    assert plan_reading(2, 0, **options).sizes == (2,)  # type: ignore[arg-type]
    assert plan_reading(10, 2, **options | {"num_hops": 2}).sizes == (10, 2)  # type: ignore[arg-type]
    assert plan_reading(5, 15, **options | {"rerank": 20}) == ReadingPlan((20,))  # type: ignore[arg-type]
    assert plan_reading(5, 7, **options | {"rerank": 12, "timeout_s": 1.0}).sizes == (5, 5, 2)  # type: ignore[arg-type]

    def read(texts: Sequence[str]) -> list[AnswerSpan]:
        return [AnswerSpan(0, 1, 0.5, 0.5, float(text)) for text in texts]

    def count_read(plan: ReadingPlan) -> tuple[int, bool]:
        spans, is_late = read_in_batches(read, iter([["0"], ["1", "2"], ["3"]]), plan)
        return len(spans), is_late

    assert count_read(ReadingPlan((1, 2, 1))) == (4, False)
    assert count_read(ReadingPlan((1, 2, 1), timeout_s=0.0)) == (1, True)
    assert count_read(ReadingPlan((1, 2, 1), enough_relevance=2.0)) == (3, False)
    assert count_read(ReadingPlan((1, 2, 1), timeout_s=0.0, enough_relevance=0.0)) == (1, False)
    assert read_in_batches(read, iter([]), ReadingPlan(())) == ([], False)


def test_a_reader_without_relevance_ranks_by_no_answer(memory: Memory) -> None:
    class Plain:
        def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
            return [AnswerSpan(0, 8, 0.9, 0.01 if get_number(text) == 9 else 1.0) for text in passages]

    memory.reader = Plain()
    assert list_passages(memory, rerank=NUM_TEXTS)[0] == TEXTS[9]


def test_several_hops_rerank_the_last(memory: Memory) -> None:
    memory.reader = reader = ScoredReader(lambda text: float(get_number(text)))
    answer = memory.ask(QUESTION, hops=2, passages=3, rerank=6, confidence=0.0)
    assert len({evidence.passage for evidence in answer.evidence}) == answer.read == 6
    assert len(reader.read) == 3 + 6
    first = {hit.text for hit in memory.search(QUESTION, limit=3)}
    assert first <= {evidence.passage for evidence in answer.evidence}


def test_nothing_to_rerank(tmp_path: Path, memory: Memory) -> None:
    reader = ScoredReader(lambda text: 1.0)
    with Memory(tmp_path / "empty.db", embedder="none", reader=reader) as empty:
        empty.forget(empty.note("It built nothing."))
        answer = empty.ask(QUESTION, rerank=20)
    assert (answer.text, answer.evidence, answer.notes, reader.calls) == ("", (), (), [])
    sentence = memory.ask(QUESTION, rerank=20)  # without a reader
    assert (sentence.kind, sentence.evidence) == ("sentence", memory.ask(QUESTION, rerank=0).evidence)
    for options in ({"rerank": -1}, {"rerank": 9, "rerank_timeout_s": -1.0}):
        with pytest.raises(StoreError, match="is at least 0, not -1"):
            memory.ask(QUESTION, **options)  # type: ignore[arg-type]


def test_passages_in_an_unknown_language_are_not_reranked(tmp_path: Path) -> None:
    pytest.importorskip("rjieba")
    with Memory(tmp_path / "memory.db", embedder="none") as memory:
        for text in ("北京是中国的首都。", "长城很长。", "Ann built the hut. 北京.", "The hut is old."):
            memory.note(text)
        answer = memory.ask("Who built the hut? 北京", rerank=4, passages=1)
        assert answer.text == "Ann"
        chinese = memory.ask("长城怎么样？", rerank=4, passages=1)
        assert (chinese.kind, chinese.read) == ("span", 1)
        assert chinese.evidence == memory.ask("长城怎么样？", rerank=0, passages=1).evidence
