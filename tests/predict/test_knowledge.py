"""Asking a network about its knowledge base: the answer, and the facts it was read from."""

from pathlib import Path

import pytest
from app_runs import run, sets

from mnemic.checkpoint.folder import Checkpoint, load
from mnemic.data.knowledge.dataset import GeneratedKnowledge, Sets
from mnemic.data.knowledge.format import Fact
from mnemic.predict import Answer, ask_base

SMALL = ('data={kind="generated-knowledge"}', "model.width=128", "train.epochs=8", "train.batch=32")


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "run"
    done = run("train", "kv-memnn", *sets(*SMALL), "--out", folder, "--device", "cpu")
    assert done.code == 0, done.err
    return folder


def film() -> Fact:
    return next(fact for fact in GeneratedKnowledge().facts() if fact.relation == "directed_by")


def proof(answer: Answer) -> str:
    return max(answer.evidence, key=lambda one: one.most).text


def test_the_answer_is_read_from_the_fact_that_proves_it(learnt: Path) -> None:
    checkpoint, fact = load(learnt), film()
    answer = ask_base(checkpoint, f"who directed [{fact.subject}]")
    assert answer.text == fact.object  # spelled as the base spells it
    assert answer.probability == answer.ranked[0][1] > answer.ranked[1][1]
    assert proof(answer) == " | ".join(fact)
    assert all(fact.subject in one.text for one in answer.evidence)
    assert answer.notes == ()


def test_a_fact_is_read_from_its_other_end(learnt: Path) -> None:
    checkpoint, fact = load(learnt), film()
    answer = ask_base(checkpoint, f"what films did [{fact.object}] direct")
    known = {own for own in GeneratedKnowledge().facts() if own[1:] == fact[1:]}
    assert answer.text in {own.subject for own in known}
    assert proof(answer) in {" | ".join(own) for own in known}


def test_every_slot_of_the_base_is_told_as_its_fact(learnt: Path) -> None:
    """The order is the base's own: key by key, value by value."""
    checkpoint: Checkpoint = load(learnt)
    source = GeneratedKnowledge()
    words = checkpoint.tokenizer
    sets = Sets(source, words)  # type: ignore[arg-type]
    base, told = sets.base, sets.shown
    assert len(told) == len(base.key)
    for slot in range(0, len(told), 17):
        key, value = (
            words.decode(base.texts[row[slot]].tolist()) for row in (base.key, base.value)
        )
        ends = {f"[{end.lower()}]" for end in told[slot].split(" | ")[::2]}
        assert value in ends
        assert any(key.startswith(end) for end in ends)


def test_on_the_screen_and_for_programs(learnt: Path, tmp_path: Path) -> None:
    fact, picture = film(), tmp_path / "read.svg"
    asked = ("ask", "--model", learnt, f"who directed [{fact.subject}]")
    seen, told = run(*asked, "--plot", picture), run(*asked, "--json")
    assert seen.code == 0, seen.err
    assert "fact" in seen.out
    assert " | ".join(fact) in seen.out
    assert told.json["answer"] == fact.object
    assert told.json["memory"] == "key-value"
    assert " | ".join(fact) in picture.read_text(encoding="utf-8")


def test_mistakes_are_said_in_a_line(learnt: Path) -> None:
    assert "the question is empty" in run("ask", "--model", learnt, " ").err
    strange = run("ask", "--model", learnt, "who directed [Nothing At All]")
    assert strange.code == 2
    assert "as the base does, in brackets: [" in strange.err
    named = strange.err.partition("in brackets: [")[2].partition("]")[0]
    near = run("ask", "--model", learnt, f"who directed [{named[:-1]}x]")
    assert f"[{named}]" in near.err, "what is spelled alike is named"
    assert not run("ask", "--model", learnt, f"who directed [{named}]").code
    told = run("ask", "--model", learnt, "--sentence", "Mary went home.", "Where is Mary?")
    assert told.code == 2
    assert "ask it without a story" in told.err
