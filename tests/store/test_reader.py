"""The shipped reader in a lasting memory: spans, confidence, none, and what it cannot read."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from math import exp
from pathlib import Path

import pytest

from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.predict.model import load
from mnemic.recipe import ConfigError
from mnemic.store import Memory, Span, StoreError
from mnemic.store.answer.confidence import FAR, USUAL, Confidence, Features, features
from mnemic.store.answer.reader import SpanReader, reader_of

TEXTS = (
    "The lease of the flat ends on 30 June. The rent is 700 euros a month.",
    "Bram Stoker, who managed a theatre in London, wrote Dracula in 1897.",
    "Mary Shelley wrote Frankenstein in 1818, when she was twenty.",
    "The old bridge across the Oster has 17 arches. It was built by Ann Carter.",
    "The tower beside the bridge is 90 m high, and is open in summer.",
    "In 1901 the bridge was painted green. Nobody liked it.",
)


class Told:
    """A reader that says what it was told, passage by passage."""

    def __init__(self, spans: dict[str, Span]) -> None:
        self.spans = spans

    def answer(self, question: str, passages: Sequence[str]) -> list[Span]:
        return [self.spans.get(text, Span(0, 0, 0.0, 1.0)) for text in passages]


@pytest.fixture(scope="module")
def shipped() -> SpanReader:
    found = reader_of("reader")
    assert isinstance(found, SpanReader)
    return found


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, shipped: SpanReader) -> Iterator[Memory]:
    place = tmp_path_factory.mktemp("reader") / "memory.db"
    with Memory(place, embedder="reader", reader=shipped) as own:
        for text in TEXTS:
            own.note(text)
        yield own


def test_what_a_second_hop_finds_is_read_behind_its_clue(
    tmp_path: Path, shipped: SpanReader
) -> None:
    """The question names neither the film nor its director: one fact leads to the other."""
    facts = (
        "Amber Road was written by Emil Gif.",
        "Amber Road was directed by Lu Greenfield.",
        "Cold Harbour was written by Tess Marlow.",
        "Cold Harbour was directed by Ian Ostrov.",
        "Paper Kites was directed by Mona Reyes.",
    )
    question = "Who directed the film that Emil Gif wrote?"
    with Memory(tmp_path / "films.db", embedder="reader", reader=shipped) as films:
        for fact in facts:
            films.note(fact)
        said = films.ask(question, hops=2, passages=1)
        assert said.text == "Lu Greenfield"
        assert said.evidence[0].sentence == facts[1]
        assert said.evidence[0].passage[said.start : said.end] == said.text
        assert films.ask(question, hops=1, passages=1, confidence=0.0).text != "Lu Greenfield"


def test_a_span_of_the_clue_is_no_answer_of_the_passage(tmp_path: Path) -> None:
    """A reader that always quotes the first words of what it is given."""

    class First:
        def answer(self, question: str, passages: Sequence[str]) -> list[Span]:
            return [Span(0, 4, 0.9, 0.0) for _ in passages]

    with Memory(tmp_path / "notes.db", embedder="hashed-ngrams", reader=First()) as notes:
        notes.note("Emil wrote Amber Road.")
        notes.note("Greenfield directed Amber Road.")
        said = notes.ask("What did Emil write?", hops=2, passages=1, confidence=0.0)
    assert [one.text for one in said.ranked] == ["Emil"]


def test_passages_are_read_together_as_they_are_alone(shipped: SpanReader) -> None:
    question, slow = "Who wrote Dracula?", load("reader")
    found = shipped.answer(question, TEXTS)
    for text, span in zip(TEXTS, found):
        alone = slow.answer(question, text)
        assert span.none == pytest.approx(alone.no_answer, abs=0.02)  # products may be rounded
    assert TEXTS[1][found[1].start : found[1].end] == "Bram Stoker"
    assert found[1].none < 0.5
    assert found[2].none > 2 * found[1].none  # who wrote another book
    assert all(span.none > 0.9 for place, span in enumerate(found) if place not in (1, 2))
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
def test_the_answer_is_a_span_with_its_sentence(
    memory: Memory, question: str, answer: str, sentence: str
) -> None:
    said = memory.ask(question)
    assert said.text.startswith(answer)
    assert (said.kind, said.found) == ("span", True)
    assert said.score > 0.5
    best = said.evidence[0]
    assert best.sentence == sentence
    assert best.passage[said.start : said.end] == said.text
    assert said.ranked[0].text == said.text
    assert said.ranked[0].evidence == best


@pytest.mark.parametrize("question", ["Who won the cup in 1998?", "When was the plumber paid?"])
def test_what_nothing_answers_has_no_answer(memory: Memory, question: str) -> None:
    said = memory.ask(question)
    assert (said.text, said.score, said.found) == ("", 0.0, False)
    assert said.evidence
    assert said.ranked[0].score < 0.5
    assert memory.ask(question, confidence=0.0).text == said.ranked[0].text


def test_strange_questions(memory: Memory) -> None:
    assert not memory.ask("???").found
    with pytest.raises(StoreError, match=r"360 words leaves the reader no room .* reader none"):
        memory.ask("Who wrote Dracula? " * 120)


def test_a_second_hop_reads_what_the_first_one_named(memory: Memory) -> None:
    said = memory.ask("Who built the bridge?", hops=2, passages=3, confidence=0.0)
    assert said.hops == len(said.evidence[0].weights) == 2
    assert said.read == len(TEXTS)


def test_chinese_is_answered_with_a_sentence_and_told(tmp_path: Path) -> None:
    pytest.importorskip("rjieba")
    with Memory(tmp_path / "memory.db", embedder="hashed-ngrams") as memory:
        memory.note("北京是中国的首都。长城很长。")
        asked = memory.ask("中国的首都是哪里？")
        assert (asked.text, asked.kind) == ("北京是中国的首都。", "sentence")
        assert [note.split(":")[0] for note in asked.notes] == [
            "the question is Chinese",
            "the reader knows no Chinese",
        ]
        other = memory.ask("What is 北京?")  # a question that is not; but nothing it could read
        assert (other.kind, other.found) == ("sentence", True)
        memory.note(TEXTS[0])
        mixed = memory.ask("When does the lease end?")
        assert (mixed.text, mixed.notes) == ("30 June", ())


def test_answers_are_ranked_and_the_same_words_add_up(tmp_path: Path) -> None:
    texts = ("The hut was built in 1911.", "In 1911 they built the hut.", "The hut burnt in 1950.")
    spans = {
        texts[0]: Span(21, 25, 0.5, 0.4),
        texts[1]: Span(3, 7, 0.5, 0.4),
        texts[2]: Span(17, 21, 0.7, 0.3),
    }
    with Memory(tmp_path / "memory.db", embedder="none", reader=Told(spans)) as memory:
        for text in texts:
            memory.note(text)
        said = memory.ask("When was the hut built?", confidence=0.0)
        assert [one.text for one in said.ranked] == ["1911", "1950"]
        assert said.ranked[0].score > said.ranked[1].score > 0
        assert sum(one.score for one in said.ranked) < 1
        assert said.ranked[1].evidence.sentence == texts[2]
        memory.reader = Told(spans | {texts[1]: Span(0, 7, 0.5, 0.4)})  # other words, as likely
        apart = {one.text: one.score for one in memory.ask(said.question, confidence=0.0).ranked}
        assert said.ranked[0].score == pytest.approx(apart["1911"] + apart["In 1911"])
        memory.reader = Told({texts[2]: spans[texts[2]]})
        assert [one.text for one in memory.ask(said.question, confidence=0.0).ranked] == ["1950"]


def test_confidence_is_one_choice_among_all_spans_and_none() -> None:
    spans = [Span(0, 1, 0.9, 0.05), Span(0, 1, 0.2, 0.7), Span(0, 0, 0.0, 1.0)]
    known = features([4.0, 3.0, 1.5], [1.0, 0.5, 0.0], spans)
    assert [own.behind for own in known] == [0.0, -1.0, -2.5]
    assert known[2][2:] == (-FAR, -FAR)
    grown = [
        exp(sum(getattr(USUAL, name) * getattr(own, name) for name in own._fields) + USUAL.answer)
        for own in known
    ]
    chances = USUAL.of(known)
    assert chances == pytest.approx([own / (1 + sum(grown)) for own in grown])
    assert chances[0] > chances[1] > chances[2]
    wild = Confidence(100.0, 100.0, 100.0, 100.0, 100.0)
    assert wild.of([Features(FAR, 0.0, FAR, FAR)])[0] <= 1.0
    assert USUAL.of([]) == []


def test_readers_by_name(tmp_path: Path, shipped: SpanReader) -> None:
    assert reader_of(None) is None
    assert reader_of("none") is None
    assert reader_of(shipped) is shipped
    with pytest.raises(StoreError, match="no reader 'nobody'; there are reader, none and folders"):
        Memory(tmp_path / "memory.db", reader="nobody")
    with Memory(tmp_path / "memory.db", embedder="none", reader=None) as memory:
        memory.note(TEXTS[0])
        said = memory.ask("When does the lease end?")
        assert (said.text, said.kind) == ("The lease of the flat ends on 30 June.", "sentence")
        assert len(said.ranked) == 2
    with Memory(tmp_path / "memory.db", reader=str(WEIGHTS / "reader")) as memory:
        assert memory.ask("When does the lease end?").text == "30 June"
    with (
        Memory(tmp_path / "memory.db", reader=str(WEIGHTS / "entnet-babi")) as memory,
        pytest.raises(ConfigError, match="it answers questions about stories: use `mnemic ask`"),
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
strange = {"transformers", "matplotlib", "tensorboard", "typer", "rich", "triton", "pypdf", "scipy"}
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
