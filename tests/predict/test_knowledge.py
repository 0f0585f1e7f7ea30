"""Asking a network about its knowledge base: the answer, and the facts it was read from."""

from pathlib import Path

import pytest
from app_runs import run, sets

from mnemic.checkpoint.folder import Checkpoint, load_checkpoint
from mnemic.data.knowledge.dataset import GeneratedKnowledge, KnowledgeEncoder
from mnemic.data.knowledge.format import Fact
from mnemic.predict import StoryAnswer, ask_knowledge_base

SMALL = ('data={kind="generated-knowledge"}', "model.width=128", "train.epochs=8", "train.batch=32")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "run"
    done = run("train", "kv-memnn", *sets(*SMALL), "--out", folder, "--device", "cpu")
    assert done.code == 0, done.err
    return folder


def film() -> Fact:
    return next(fact for fact in GeneratedKnowledge().load_facts() if fact.relation == "directed_by")


def proof(answer: StoryAnswer) -> str:
    return max(answer.evidence, key=lambda sentence: sentence.max_weight).text


def test_the_answer_is_read_from_the_fact_that_proves_it(run_folder: Path) -> None:
    checkpoint, fact = load_checkpoint(run_folder), film()
    answer = ask_knowledge_base(checkpoint, f"who directed [{fact.subject}]")
    assert answer.text == fact.object  # spelled as the base spells it
    assert answer.probability == answer.ranked[0][1] > answer.ranked[1][1]
    assert proof(answer) == " | ".join(fact)
    assert all(fact.subject in sentence.text for sentence in answer.evidence)
    assert answer.notes == ()


def test_a_fact_is_read_from_its_other_end(run_folder: Path) -> None:
    checkpoint, fact = load_checkpoint(run_folder), film()
    answer = ask_knowledge_base(checkpoint, f"what films did [{fact.object}] direct")
    known = {base_fact for base_fact in GeneratedKnowledge().load_facts() if base_fact[1:] == fact[1:]}
    assert answer.text in {base_fact.subject for base_fact in known}
    assert proof(answer) in {" | ".join(base_fact) for base_fact in known}


def test_every_slot_of_the_base_is_told_as_its_fact(run_folder: Path) -> None:
    """The order is the base's own: key by key, value by value."""
    checkpoint: Checkpoint = load_checkpoint(run_folder)
    source = GeneratedKnowledge()
    tokenizer = checkpoint.tokenizer
    encoder = KnowledgeEncoder(source, tokenizer)  # type: ignore[arg-type]
    base, slot_texts = encoder.base, encoder.slot_texts
    assert len(slot_texts) == len(base.key_rows)
    for slot in range(0, len(slot_texts), 17):
        key, value = (tokenizer.decode(base.texts[row[slot]].tolist()) for row in (base.key_rows, base.value_rows))
        ends = {f"[{end.lower()}]" for end in slot_texts[slot].split(" | ")[::2]}
        assert value in ends
        assert any(key.startswith(end) for end in ends)


def test_on_the_screen_and_for_programs(run_folder: Path, tmp_path: Path) -> None:
    fact, picture = film(), tmp_path / "read.svg"
    command = ("story", "ask", "--model", run_folder, f"who directed [{fact.subject}]")
    seen, printed = run(*command, "--plot", picture), run(*command, "--json")
    assert seen.code == 0, seen.err
    assert "fact" in seen.out
    assert " | ".join(fact) in seen.out
    assert printed.json["answer"] == fact.object
    assert printed.json["memory"] == "key-value"
    assert " | ".join(fact) in picture.read_text(encoding="utf-8")


def test_mistakes_are_said_in_a_line(run_folder: Path) -> None:
    assert "the question is empty" in run("story", "ask", "--model", run_folder, " ").err
    unknown = run("story", "ask", "--model", run_folder, "who directed [Nothing At All]")
    assert unknown.code == 2
    assert "as the base does, in brackets: [" in unknown.err
    name = unknown.err.partition("in brackets: [")[2].partition("]")[0]
    misspelled = run("story", "ask", "--model", run_folder, f"who directed [{name[:-1]}x]")
    assert f"[{name}]" in misspelled.err, "what is spelled alike is named"
    assert not run("story", "ask", "--model", run_folder, f"who directed [{name}]").code
    refused = run("story", "ask", "--model", run_folder, "--sentence", "Mary went home.", "Where is Mary?")
    assert refused.code == 2
    assert "ask it without a story" in refused.err
