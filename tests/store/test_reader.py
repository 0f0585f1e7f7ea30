"""The shipped reader in a lasting memory: spans, confidence, none, and what it cannot read."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import exp
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch

from mnemic.checkpoint.shipped import EMBEDDERS, WEIGHTS
from mnemic.predict.model import load
from mnemic.recipe import ConfigError
from mnemic.store import AnswerSpan, Memory, StoreError
from mnemic.store.answer.confidence import FITTED, MAX_LOG, ConfidenceModel, SpanFeatures, compute_features
from mnemic.store.answer.reader import SpanReader, resolve_reader
from mnemic.store.retrieve import models
from mnemic.store.retrieve.embedders import HashedNgrams
from mnemic.store.retrieve.hybrid import read_hop

TEXTS = (
    "The lease of the flat ends on 30 June. The rent is 700 euros a month.",
    "Bram Stoker, who managed a theatre in London, wrote Dracula in 1897.",
    "Mary Shelley wrote Frankenstein in 1818, when she was twenty.",
    "The old bridge across the Oster has 17 arches. It was built by Ann Carter.",
    "The tower beside the bridge is 90 m high, and is open in summer.",
    "In 1901 the bridge was painted green. Nobody liked it.",
)


class FixedReader:
    """A reader that says what it was told, passage by passage."""

    def __init__(self, spans: dict[str, AnswerSpan]) -> None:
        self.spans = spans

    def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
        return [self.spans.get(text, AnswerSpan(0, 0, 0.0, 1.0)) for text in passages]


@pytest.fixture(scope="module")
def shipped() -> SpanReader:
    reader = resolve_reader("reader")
    assert isinstance(reader, SpanReader)
    return reader


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, shipped: SpanReader) -> Iterator[Memory]:
    path = tmp_path_factory.mktemp("reader") / "memory.db"
    with Memory(path, embedder="reader-small", reader=shipped) as memory:
        for text in TEXTS:
            memory.note(text)
        yield memory


def test_what_a_second_hop_finds_is_read_behind_its_clue(tmp_path: Path, shipped: SpanReader) -> None:
    """The question names neither the film nor its director: one fact leads to the other."""
    facts = (
        "Amber Road was written by Emil Gif.",
        "Amber Road was directed by Lu Greenfield.",
        "Cold Harbour was written by Tess Marlow.",
        "Cold Harbour was directed by Ian Ostrov.",
        "Paper Kites was directed by Mona Reyes.",
    )
    question = "Who directed the film that Emil Gif wrote?"
    with Memory(tmp_path / "films.db", embedder="reader-small", reader=shipped) as films:
        for fact in facts:
            films.note(fact)
        answer = films.ask(question, hops=2, passages=1)
        assert answer.text == "Lu Greenfield"
        assert answer.evidence[0].sentence == facts[1]
        assert answer.evidence[0].passage[answer.start : answer.end] == answer.text
        assert films.ask(question, hops=1, passages=1, confidence=0.0).text != "Lu Greenfield"


def test_a_span_of_the_clue_is_no_answer_of_the_passage(tmp_path: Path) -> None:
    """A reader that always quotes the first words of what it is given."""

    class First:
        def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
            return [AnswerSpan(0, 4, 0.9, 0.0) for _ in passages]

    with Memory(tmp_path / "notes.db", embedder="hashed-ngrams", reader=First()) as notes:
        notes.note("Emil wrote Amber Road.")
        notes.note("Greenfield directed Amber Road.")
        result = notes.ask("Who wrote something?", hops=2, passages=1, confidence=0.0)
    assert [ranked.text for ranked in result.ranked] == ["Emil"]


def test_passages_are_read_together_as_they_are_alone(shipped: SpanReader) -> None:
    question, slow = "Who wrote Dracula?", load("reader")
    spans = shipped.answer(question, TEXTS)
    for text, span in zip(TEXTS, spans):
        alone = slow.answer(question, text)
        assert span.no_answer == pytest.approx(alone.no_answer, abs=0.02)  # products may be rounded
    assert TEXTS[1][spans[1].start : spans[1].end] == "Bram Stoker"
    assert spans[1].no_answer < 0.5
    assert spans[2].no_answer > 2 * spans[1].no_answer  # who wrote another book
    assert all(span.no_answer > 0.9 for position, span in enumerate(spans) if position not in (1, 2))
    assert shipped.answer(question, []) == []


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        ("When does the lease end?", "30 June", "The lease of the flat ends on 30 June."),
        ("How much is the rent?", "700 euros", "The rent is 700 euros a month."),
        ("Who built the bridge?", "Ann Carter", "It was built by Ann Carter."),
        ("How high is the tower?", "90 m", TEXTS[4]),
    ],
)
def test_the_answer_is_a_span_with_its_sentence(memory: Memory, question: str, answer: str, sentence: str) -> None:
    result = memory.ask(question)
    assert result.text.startswith(answer)
    assert (result.kind, result.has_answer) == ("span", True)
    assert result.score > 0.5
    best = result.evidence[0]
    assert best.sentence == sentence
    assert best.passage[result.start : result.end] == result.text
    assert result.ranked[0].text == result.text
    assert result.ranked[0].evidence == best


@pytest.mark.parametrize("question", ["Who won the cup in 1998?", "When was the plumber paid?"])
def test_what_nothing_answers_has_no_answer(memory: Memory, question: str) -> None:
    answer = memory.ask(question)
    assert (answer.text, answer.score, answer.has_answer) == ("", 0.0, False)
    assert answer.evidence
    assert answer.ranked[0].score < 0.5
    assert memory.ask(question, confidence=0.0).text == answer.ranked[0].text


def test_strange_questions(memory: Memory) -> None:
    assert not memory.ask("???").has_answer
    with pytest.raises(StoreError, match=r"360 words leaves the reader no room .* reader none"):
        memory.ask("Who wrote Dracula? " * 120)


def test_a_second_hop_reads_what_the_first_one_named(memory: Memory) -> None:
    answer = memory.ask("Who built the bridge?", hops=2, passages=3, confidence=0.0)
    assert answer.hops == len(answer.evidence[0].weights) == 2
    assert answer.read == len(TEXTS)


def test_passages_that_the_reader_does_not_know_are_not_read(tmp_path: Path) -> None:
    pytest.importorskip("rjieba")
    with Memory(tmp_path / "memory.db", embedder="hashed-ngrams") as memory:
        memory.note("北京是中国的首都。长城很长。")
        english_answer = memory.ask("What is 北京?")  # a question that it knows; but nothing it could read
        assert english_answer.text == "中国的首都"
        assert "does not know this language" in english_answer.notes[0]
        memory.note(TEXTS[0])
        mixed = memory.ask("When does the lease end?")
        assert (mixed.text, mixed.notes) == ("30 June", ())


def test_answers_are_ranked_and_the_same_words_add_up(tmp_path: Path) -> None:
    texts = ("The hut was built in 1911.", "In 1911 they built the hut.", "The hut burnt in 1950.")
    spans = {
        texts[0]: AnswerSpan(21, 25, 0.5, 0.4),
        texts[1]: AnswerSpan(3, 7, 0.5, 0.4),
        texts[2]: AnswerSpan(17, 21, 0.7, 0.3),
    }
    with Memory(tmp_path / "memory.db", embedder="none", reader=FixedReader(spans)) as memory:
        for text in texts:
            memory.note(text)
        answer = memory.ask("When was the hut built?", confidence=0.0)
        assert [ranked.text for ranked in answer.ranked] == ["1911", "1950"]
        assert answer.ranked[0].score > answer.ranked[1].score > 0
        assert sum(ranked.score for ranked in answer.ranked) < 1
        assert answer.ranked[1].evidence.sentence == texts[2]
        memory.reader = FixedReader(spans | {texts[1]: AnswerSpan(0, 7, 0.5, 0.4)})  # other words, as likely
        apart = {ranked.text: ranked.score for ranked in memory.ask(answer.question, confidence=0.0).ranked}
        assert answer.ranked[0].score == pytest.approx(apart["1911"] + apart["In 1911"])
        memory.reader = FixedReader({texts[2]: spans[texts[2]]})
        assert [ranked.text for ranked in memory.ask(answer.question, confidence=0.0).ranked] == ["1950"]


def test_confidence_is_one_choice_among_all_spans_and_none() -> None:
    spans = [AnswerSpan(0, 1, 0.9, 0.05), AnswerSpan(0, 1, 0.2, 0.7), AnswerSpan(0, 0, 0.0, 1.0)]
    features = compute_features([4.0, 3.0, 1.5], [(1.0, 1.0), (0.5, 0.5), (0.0, 0.0)], spans, [0.5] * 3)
    assert [span_features.score_gap for span_features in features] == [0.0, -1.0, -2.5]
    assert features[2][3:] == (-MAX_LOG, -MAX_LOG, 0.5)
    exponentials = [
        exp(sum(getattr(FITTED, name) * getattr(span_features, name) for name in span_features._fields) + FITTED.bias)
        for span_features in features
    ]
    probabilities = FITTED.predict_probabilities(features)
    assert probabilities == pytest.approx([value / (1 + sum(exponentials)) for value in exponentials])
    assert probabilities[0] > probabilities[1] > probabilities[2]
    wild = ConfidenceModel(*[100.0] * 7)
    assert wild.predict_probabilities([SpanFeatures(1.0, 1.0, 0.0, MAX_LOG, MAX_LOG)])[0] <= 1.0
    assert FITTED.predict_probabilities([]) == []


def test_readers_by_name(tmp_path: Path, shipped: SpanReader) -> None:
    assert resolve_reader(None) is None
    assert resolve_reader("none") is None
    assert resolve_reader(shipped) is shipped
    with pytest.raises(StoreError, match="no reader 'nobody'; there are reader, reader-small, none and folders"):
        Memory(tmp_path / "memory.db", reader="nobody")
    with Memory(tmp_path / "memory.db", embedder="none", reader=None) as memory:
        memory.note(TEXTS[0])
        answer = memory.ask("When does the lease end?")
        assert (answer.text, answer.kind) == ("The lease of the flat ends on 30 June.", "sentence")
        assert len(answer.ranked) == 2
    with Memory(tmp_path / "memory.db", reader=str(WEIGHTS / "reader")) as memory:
        assert memory.ask("When does the lease end?").text == "30 June"
    with (
        Memory(tmp_path / "memory.db", reader=str(WEIGHTS / "entnet-babi")) as memory,
        pytest.raises(ConfigError, match=r"it answers questions about stories .`mnemic story ask`"),
    ):
        memory.ask("When does the lease end?")
    with (
        Memory(tmp_path / "memory.db", reader=None) as memory,
        pytest.raises(StoreError, match="confidence is between 0 and 1, not 2"),
    ):
        memory.ask("When?", confidence=2)


COLD = """
import sys
from mnemic import Memory
assert "torch" not in sys.modules
memory = Memory(sys.argv[1])
assert memory.stats().documents == 6 and "torch" not in sys.modules
print(memory.ask("Who wrote Dracula?").text)
strange = {"transformers", "matplotlib", "tensorboard", "typer", "rich", "triton", "pypdfium2", "scipy"}
print(*sorted(strange.intersection(sys.modules)))
"""


def test_a_cold_start_loads_what_it_needs(memory: Memory) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLD, str(memory.path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["Bram Stoker", ""]), done.stderr


POLICY = """
import os, sys
{code}
assert os.environ.get("OMP_WAIT_POLICY") == {policy!r}, "the environment was changed"
"""


ASK = 'from mnemic import Memory; Memory(sys.argv[1]).ask("Who wrote Dracula?")'
LOAD = "from mnemic.store.retrieve.models import import_torch; import_torch()"  # as it does


@pytest.mark.parametrize(
    ("code", "policy", "sleeps"),
    [(ASK, None, True), (f"{LOAD}; import torch", "active", False), (f"import torch; {LOAD}", None, False)],
)
def test_threads_of_torch_sleep_while_they_wait(memory: Memory, code: str, policy: str | None, sleeps: bool) -> None:
    """Unless the program says how they wait, or has loaded torch before."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"OMP_DISPLAY_ENV": "verbose"} | ({"OMP_WAIT_POLICY": policy} if policy else {})
    program = POLICY.format(code=code, policy=policy)
    done = subprocess.run(
        [sys.executable, "-c", program, str(memory.path)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    spins = re.findall(r"GOMP_SPINCOUNT\s*=\s*'(\w+)'", done.stderr)
    if not spins:
        pytest.skip("this OpenMP does not report how long threads spin")
    assert (int(spins[0]) == 0) == sleeps


def test_a_question_is_answered_by_one_thread_if_threads_spin(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    models.import_torch.cache_clear()
    counts, answer = list[int](), memory.reader.answer  # type: ignore[union-attr]

    def count_threads(*arguments: Any) -> Any:
        counts.append(torch.get_num_threads())
        return answer(*arguments)

    monkeypatch.setattr(memory.reader, "answer", count_threads)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        memory.ask("Who wrote Dracula?")
        threads = [Thread(target=memory.ask, args=("Who wrote Dracula?",)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with ThreadPoolExecutor(1) as pool:
            assert (torch.get_num_threads(), pool.submit(torch.get_num_threads).result()) == (2, 2)
    finally:
        torch.set_num_threads(before)
    assert set(counts) == {1}
    assert len(counts) >= 4


def test_a_shipped_embedder_gives_the_confidence_its_cosines(tmp_path: Path) -> None:
    class Named(HashedNgrams):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.model = self.model._replace(name=name)

    for name, is_shipped in ((EMBEDDERS[0], True), ("hashed-ngrams", False)):
        embedder = Named(name)
        with Memory(tmp_path / f"{name}.db", embedder=embedder, reader=None) as memory:
            memory.note("Ann built the hut.")
            memory.note("The lake is deep.")
            hop = read_hop(memory.store, embedder, "Who built the hut?")
        assert bool(hop.cosines) == is_shipped
        if is_shipped:
            vectors = embedder.embed(["Who built the hut?", "Ann built the hut."])
            assert max(hop.cosines.values()) == pytest.approx(float(vectors[0] @ vectors[1]), abs=0.01)
