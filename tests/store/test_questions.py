"""Questions written ahead: they are found, never shown, and go with their document."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from app_runs import run
from seq2seq_files import write_questions as write_squad
from store_runs import DROP_QUESTIONS, memory, write

from mnemic import Memory
from mnemic.recipe import load_recipe
from mnemic.store import CheckReport
from mnemic.store.answers import answer_to_dict
from mnemic.store.contract import StoreError
from mnemic.store.ingest.questions import MAX_QUESTIONS, NetworkWriter, clean_question, find_candidates
from mnemic.store.retrieve.hybrid import read_hop, retrieve_candidates
from mnemic.train.run import fit

__all__ = ["memory"]  # fixtures

TEXTS = {
    "The abode of the Smiths burned down in 1843.": ["Which conflagration destroyed homestead?", "When was the fire?"],
    "Ann wrote the report about the mill in March.": ["Whose penmanship is it?"],
    "The bread is in the kitchen.": [],
}
HIDDEN_WORDS = ("conflagration", "homestead", "penmanship")  # in questions alone


class Writer:
    """Write the questions of ``TEXTS``, and count the passages."""

    def __init__(self) -> None:
        self.num_passages = 0

    def write(self, texts: Sequence[str]) -> list[list[str]]:
        self.num_passages += len(texts)
        return [TEXTS.get(text, []) for text in texts]


@pytest.fixture
def asked(memory: Memory) -> Memory:
    """A memory whose passages have questions."""
    for text in TEXTS:
        memory.note(text)
    assert list(memory.write_questions(Writer())) == [(3, 3)]
    return memory


def list_questions(memory: Memory) -> list[list[str]]:
    rows = memory.store.get_questions(list(range(1, 100)))
    return [rows[slot_id] for slot_id in sorted(rows)]


def test_a_passage_is_found_by_its_questions(memory: Memory) -> None:
    """By words that only a question has, and by vectors; without questions it is not first."""
    for text in TEXTS:
        memory.note(text)
    query = "conflagration homestead"
    before = read_hop(memory.store, memory.embedder, query)
    list(memory.write_questions(Writer()))
    after = read_hop(memory.store, memory.embedder, query)
    first = memory.store.get_slots(after.top_slots(1))[0]
    assert first.passage.text == next(iter(TEXTS))
    assert after.weights[first.id] > 2 * before.weights[first.id]
    by_words = read_hop(memory.store, None, query)
    assert by_words.top_slots(1) == [first.id]
    by_vectors = read_hop(memory.store, memory.embedder, "the conflagrations of homesteads", bm25_weight=0.0)
    assert by_vectors.top_slots(1) == [first.id]
    assert memory.check() == CheckReport()


def test_questions_add_to_scores_and_take_nothing(memory: Memory) -> None:
    for text in TEXTS:
        memory.note(text)
    queries = [*TEXTS, *(question for questions in TEXTS.values() for question in questions)]
    before = [retrieve_candidates(memory.store, memory.embedder, query) for query in queries]
    list(memory.write_questions(Writer()))
    after = [retrieve_candidates(memory.store, memory.embedder, query) for query in queries]
    for old, new in zip(before, after):
        assert old.cosine is not None
        assert new.cosine is not None
        assert all(new.bm25.scores[slot_id] >= score for slot_id, score in old.bm25.scores.items())
        assert all(new.cosine.scores[slot_id] >= score for slot_id, score in old.cosine.scores.items())
    assert after[-1].bm25.scores[2] > 0  # by words of its question alone
    assert before[-1].bm25.scores.get(2, 0) == 0
    assert after[-1].cosine is not None
    assert after[-1].cosine.scores[2] == pytest.approx(1, abs=0.01)  # it is the question


def test_questions_are_never_shown_as_words_of_a_document(asked: Memory) -> None:
    shown = [
        repr(asked.search(query)) + repr(answer_to_dict(asked.ask(query))) for query in ("fire 1843", "penmanship")
    ]
    shown += [asked.text(document.id) + repr(document) for document in asked.memories()]
    shown.append(repr(asked.stats()))
    for word in HIDDEN_WORDS:
        # Of what was asked itself, the query is repeated.
        assert not any(word in text.replace("'penmanship'", "") for text in shown)
        assert asked.about(word) == []  # `forget --about` counts words of documents alone
    assert [len(asked.text(document.id)) for document in asked.memories()] == list(map(len, TEXTS))


def test_questions_are_written_once(asked: Memory) -> None:
    writer = Writer()
    assert list(asked.write_questions(writer)) == []
    assert writer.num_passages == 0  # also of the passage that has nothing to ask
    asked.note("The key is under the mat.")
    assert list(asked.write_questions(writer)) == [(1, 1)]


def test_forgetting_leaves_nothing_of_the_questions(asked: Memory) -> None:
    """Verified in the raw files: neither their text nor their vectors are left."""
    document = asked.memories()[0]
    result = asked.forget(document.id, verify=True)
    assert result.traces == ()
    assert result.scrubbed
    assert list_questions(asked) == [TEXTS[text] for text in list(TEXTS)[1:2]]
    path = asked.path
    if isinstance(path, Path):
        asked.close()
        content = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
        for trace in (b"conflag", b"omestea", b"When was the fire"):
            assert trace not in content
        assert b"penmanship" in content


def test_traces_of_questions_are_searched(asked: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were they left behind, forgetting would report it."""
    monkeypatch.setattr(type(asked.store), "erase_documents", lambda store, document_ids: None)
    monkeypatch.setattr("mnemic.store.sqlite.scrub.is_remembered", lambda connection, trace: False)
    monkeypatch.setattr("mnemic.store.postgres.scrub.is_remembered", lambda connection, trace: False)
    result = asked.forget(asked.memories()[1].id, verify=True)
    assert any("penmanship" in trace for trace in result.traces or ())


def test_a_new_version_loses_the_questions_of_the_old_one(asked: Memory) -> None:
    old = asked.memories()[1]
    new_id = asked.update(old.id, "Bob wrote the report about the mill in May.")
    assert TEXTS[list(TEXTS)[1]] not in list_questions(asked)
    assert asked.check() == CheckReport()
    for hop in (read_hop(asked.store, asked.embedder, "penmanship"), read_hop(asked.store, None, "penmanship")):
        slots = asked.store.get_slots(hop.top_slots(10))
        assert old.id not in {slot.document for slot in slots}
    list(asked.write_questions(Writer()))
    assert asked.forget(new_id, verify=True).traces == ()


def test_filters_hold_for_questions(asked: Memory, tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "A homestead is a farm.")
    asked.remember(tmp_path / "a.txt")
    hits = asked.search("conflagration homestead", inside=tmp_path)
    assert [hit.text for hit in hits] == ["A homestead is a farm."]


def test_export_and_import_keep_questions(asked: Memory, tmp_path: Path) -> None:
    asked.update(asked.memories()[2].id, "The bread is in the cellar.")  # one is retired
    list(asked.export(tmp_path / "memory.jsonl"))
    with Memory(tmp_path / "new.db", embedder="hashed-ngrams", reader=None) as copy:
        list(copy.take(tmp_path / "memory.jsonl"))
        assert list_questions(copy) == list_questions(asked) != []
        assert copy.check() == CheckReport()
        hops = [read_hop(one.store, one.embedder, "conflagration homestead") for one in (asked, copy)]
        assert hops[0].top_slots(1) == hops[1].top_slots(1)
        list(copy.export(tmp_path / "again.jsonl"))
    rows = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()]
    assert [row["questions"] for row in rows if "questions" in row] == list_questions(asked)


@pytest.mark.parametrize("questions", [[], "Why?", [1], ["Two\nlines?"], [""], ["\ud800"]])
def test_wrong_questions_of_an_export_are_refused(memory: Memory, tmp_path: Path, questions: object) -> None:
    memory.note("The key is under the mat.")
    path = tmp_path / "memory.jsonl"
    list(memory.export(path))
    path.write_text(path.read_text() + json.dumps({"questions": questions}) + "\n")
    with Memory(tmp_path / "new.db", embedder="hashed-ngrams", reader=None) as copy:
        with pytest.raises(StoreError, match="line 4 is not as `mnemic export-memory` writes it"):
            list(copy.take(path))
        assert not copy.exists()


def test_another_embedder_gets_vectors_of_the_questions(asked: Memory) -> None:
    list(asked.reindex("none"))
    list_ids = list(range(1, 4))
    assert asked.store.connection.fetch_value("SELECT count(*) FROM questions WHERE keys IS NOT NULL") == 0
    assert asked.check() == CheckReport()
    assert read_hop(asked.store, None, "conflagration").top_slots(1) == [1]
    list(asked.reindex("hashed-ngrams"))
    assert asked.store.get_question_vectors(list_ids).counts.tolist() == [2, 1, 0]
    assert list(asked.reindex("hashed-ngrams")) == []
    assert asked.check() == CheckReport()


def test_a_memory_of_an_older_version_gets_the_tables(asked: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    is_file = isinstance(asked.path, Path)
    set_version = "PRAGMA user_version = 3" if is_file else "UPDATE facts SET value = '3' WHERE name = 'schema'"
    for statement in (*DROP_QUESTIONS, set_version):
        asked.store.connection.execute(statement)
    asked.close()
    if is_file:
        with monkeypatch.context() as patch:  # one who may not write leaves it as it is
            patch.setattr("mnemic.store.sqlite.connection.os.access", lambda *_: False)
            assert asked.search("mill report")[0].text == list(TEXTS)[1]
            assert asked.check().faults == ()
            asked.close()
    assert asked.search("mill report")[0].text == list(TEXTS)[1]
    assert list(asked.write_questions(Writer())) == [(3, 3)]
    assert asked.check() == CheckReport()


def test_check_reports_broken_questions(asked: Memory) -> None:
    asked.store.connection.execute("DELETE FROM question_lexicon")
    faults = asked.check().faults
    assert "the questions of passage 1 are not in their full-text index" in faults


def test_candidates_are_names_and_numbers() -> None:
    text = "In 1822, Ada Lovelace and Mary-Ann Lee saw 3,000 lamps in London. The lamps of London burned for 3 days."
    candidates = [text[start:end] for start, end in find_candidates(text)]
    assert candidates == ["1822", "Ada Lovelace", "Mary-Ann Lee", "3,000", "London"]
    many = find_candidates(" and ".join(f"year {number}" for number in range(1900, 2000)))
    assert len(many) == MAX_QUESTIONS
    assert many[-1].start > many[0].start + 500  # evenly over the passage
    assert find_candidates("nothing to ask for") == []
    assert clean_question(" Who\n is\tit? \ud800") == "Who is it? \ufffd"


def test_a_network_writes_questions(tmp_path: Path) -> None:
    """From the command line, with the folder of a run; another network is refused."""
    squad = write_squad(tmp_path / "squad", 20, filler=0)
    tiny = ["model.width=16", "model.encode.stack.depth=1", "model.respond.decoder.depth=1", "train.steps=2"]
    tiny += ["train.matmul=float32", "train.validate=0", "train.keep=last", "data.length=64", "train.batch=8"]
    tiny += [f"data.folder={squad}", 'data.tokenizer={kind="byte-bpe", vocab=300}']
    for _ in fit(load_recipe("question-generation", tiny), tmp_path / "run", device="cpu"):
        pass
    questions = NetworkWriter(tmp_path / "run").write(["Ann lives in Oslo.", "nothing here"])
    assert len(questions) == 2
    assert questions[1] == []
    assert len(questions[0]) <= 2
    write(tmp_path / "a.txt", "It was 1822. Ada Lovelace saw the lamps of London.")
    memory_path, options = tmp_path / "memory.db", ["--embedder", "hashed-ngrams"]
    arguments = ["remember", tmp_path / "a.txt", "--memory", memory_path, *options, "--questions", tmp_path / "run"]
    done = run(*arguments, "--json")
    assert done.code == 0, done.err
    assert done.json["questions"] == 1
    again = run(*arguments)
    assert "questions written ahead for 0 passages" in again.out
    refused = run("remember", tmp_path / "a.txt", "--memory", memory_path, "--questions", tmp_path / "squad")
    assert refused.code == 2
