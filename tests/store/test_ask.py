"""Answering from a memory: hybrid retrieval, hops, a reader, evidence."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy
import pytest

from mnemic.store import AnswerSpan, Memory, StoreError
from mnemic.store.contract import EmbeddingModel, PassageEmbedding
from mnemic.store.retrieve.embedders import MINILM_PACKAGE, resolve_embedder
from mnemic.store.retrieve.hybrid import compute_mean_std, read_hop
from mnemic.store.retrieve.sentence_keys import without_sentence_vectors

FACTS = (
    "Ann Carter directed the film Blue Harbour.",
    "Blue Harbour was shot in the town of Velm.",
    "The town of Velm lies on the river Oster.",
    "Bob Miller directed the film Red Sand.",
    "Red Sand was shot in the desert.",
)


class Synonyms:
    """A real, tiny embedder that knows two pairs of synonyms, and no other word."""

    model = EmbeddingModel("synonyms", "1", 2)
    bm25_weight = 0.5
    known = ({"car", "automobile"}, {"leader", "boss"})

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str]) -> numpy.ndarray:
        words = [set(re.findall(r"\w+", text.lower())) for text in texts]
        rows_per_text = [[float(bool(text_words & group)) for group in self.known] for text_words in words]
        rows = numpy.array(rows_per_text, numpy.float32).reshape(-1, 2)
        return rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    def embed_passages(self, texts: Sequence[str]) -> list[PassageEmbedding]:
        return without_sentence_vectors(self.embed(texts))


class Numbers:
    """A confident reader that answers with the first number of a passage, if any."""

    def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
        matches = (re.search(r"\d+", text) for text in passages)
        return [AnswerSpan(*match.span(), 0.9, 0.1) if match else AnswerSpan(0, 0, 0.0, 1.0) for match in matches]


def remembered(path: Path, texts: Sequence[str], **kwargs: object) -> Memory:
    memory = Memory(path / "memory.db", **({"reader": None} | kwargs))  # type: ignore[arg-type]
    for text in texts:
        memory.note(text)
    return memory


def test_the_mixed_score_is_the_sum_of_two_standard_scores(tmp_path: Path) -> None:
    memory = remembered(tmp_path, FACTS, embedder="hashed-ngrams")
    question = "Who directed Blue Harbour?"
    hop = read_hop(memory.store, memory.embedder, question, bm25_weight=0.3)
    slots = list(hop.scores)
    assert len(slots) == len(FACTS)
    words = dict.fromkeys(slots, 0.0) | dict(memory.store.search_bm25(question, 99))
    vectors = memory.store.get_vectors(slots) @ memory.embedder.embed([question])[0]  # type: ignore[union-attr]
    bm25 = numpy.array([words[slot] for slot in slots])
    slow = 0.3 * (bm25 - bm25.mean()) / bm25.std()
    slow += 0.7 * (vectors - vectors.mean()) / vectors.std()
    assert list(hop.scores.values()) == pytest.approx(slow.tolist(), abs=1e-3)
    weights = numpy.exp(slow) / numpy.exp(slow).sum()
    assert list(hop.weights.values()) == pytest.approx(weights.tolist(), abs=1e-3)
    assert compute_mean_std([3.0, 1.0], 4) == pytest.approx((1.0, numpy.std([3, 1, 0, 0])))


def test_vectors_find_what_words_cannot_and_words_what_vectors_cannot(tmp_path: Path) -> None:
    texts = ["The automobile is in the garage.", "Ann is the boss.", "Zebras graze in Kenya."]
    with remembered(tmp_path, texts, embedder=Synonyms()) as memory:
        assert memory.ask("Where did I park my car?").text == texts[0]
        assert memory.ask("Who is our leader?").text == texts[1]
        assert memory.ask("What do zebras do?").text == texts[2]
        assert memory.search("my car", lexical=0.0)[0].text == texts[0]
        assert memory.search("zebras", lexical=1.0)[0].text == texts[2]


def test_a_second_hop_reads_with_what_the_first_found(tmp_path: Path) -> None:
    with remembered(tmp_path, FACTS, embedder="hashed-ngrams") as memory:
        question = "In what town was the film that Ann Carter directed shot?"
        first_answer = memory.ask(question, passages=1)
        second_answer = memory.ask(question, passages=1, hops=2)
    assert first_answer.text == FACTS[0]
    assert second_answer.text == FACTS[1]
    assert [evidence.sentence for evidence in second_answer.evidence] == [FACTS[1], FACTS[0]]
    assert second_answer.hops == len(second_answer.evidence[0].weights) == 2
    assert second_answer.evidence[1].weights[1] == 0.0  # what was read is not read again


def test_a_reader_answers_with_a_span_or_not_at_all(tmp_path: Path) -> None:
    texts = ["The bridge is long. It has 17 arches.", "The tower is 90 m high.", "Ann built it."]
    with remembered(tmp_path, texts, embedder="hashed-ngrams", reader=Numbers()) as memory:
        answer = memory.ask("How many arches has the bridge?")
        assert answer.text == "17"
        assert answer.evidence[0].sentence == "It has 17 arches."
        assert answer.evidence[0].passage[answer.start : answer.end] == "17"
        assert not memory.ask("Who built it?", passages=1, rerank=1).has_answer
        none = memory.ask("How many arches has the bridge?", confidence=0.999)
        assert (none.text, none.has_answer, bool(none.evidence)) == ("", False, True)


def test_an_empty_memory_and_empty_questions(tmp_path: Path) -> None:
    with remembered(tmp_path, ["One."], embedder="hashed-ngrams") as memory:
        memory.forget(1)
        answer = memory.ask("What is there?", hops=3)
        assert (answer.has_answer, answer.evidence, answer.looked) == (False, (), 0)
        assert memory.search("anything") == []
        with pytest.raises(StoreError, match="the question is empty"):
            memory.ask("  ")
        with pytest.raises(StoreError, match="at least 1"):
            memory.ask("What?", hops=0)
        with pytest.raises(StoreError, match="between 0 and 1"):
            memory.ask("What?", lexical=2)


def test_others_see_a_change_at_once(tmp_path: Path) -> None:
    """What is kept in memory between two questions is not older than the file."""
    with remembered(tmp_path, FACTS[:2], embedder="hashed-ngrams") as memory:
        assert memory.ask("Where is the river Oster?").looked == 2
        with Memory(tmp_path / "memory.db", reader=None) as second_memory:
            second_memory.note(FACTS[2])
        answer = memory.ask("Where is the river Oster?")
        assert (answer.looked, answer.text) == (3, FACTS[2])
        memory.note(FACTS[3])
        assert memory.ask("Who directed Red Sand?").text == FACTS[3]


@pytest.mark.skipif(find_spec(MINILM_PACKAGE) is None, reason="MiniLM is not installed")
def test_minilm_finds_meaning(tmp_path: Path) -> None:
    minilm = resolve_embedder("minilm")
    assert minilm is not None
    vectors = minilm.embed(["The automobile is red.", "A colour of a car.", "word " * 1200, ""])
    assert numpy.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 1], abs=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    assert minilm.count_tokens(["one two", ""]) == [2, 0]
    with remembered(tmp_path, ["The automobile is in the garage.", FACTS[0]], embedder=minilm) as memory:
        assert memory.ask("Where did I park my car?").text == "The automobile is in the garage."
        memory.close()
        assert memory.ask("Who made Blue Harbour?").text == FACTS[0]


def test_scores_in_a_memory_of_one_passage_are_small(tmp_path: Path) -> None:
    """All slots score alike there, and a deviation of nothing scales nothing."""
    with remembered(tmp_path, ["Ann sleeps. The key is in the drawer."], embedder="hashed-ngrams") as memory:
        memory.note("Ann sleeps. The key is in the drawer. ")
        answer = memory.ask("Where is the key?")
        assert answer.text == "The key is in the drawer."
        assert all(abs(evidence.score) < 10 for evidence in answer.evidence)
        assert abs(memory.search("key")[0].score) < 10
