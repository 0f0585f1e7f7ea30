"""A knowledge base for the key-value memory: its files, and one that it learns."""

from pathlib import Path
from typing import Any

import pytest
import torch
from app_runs import run, sets

from mnemic.data import DATASETS
from mnemic.data.knowledge.dataset import GeneratedKnowledge, KnowledgeFolder, select_split
from mnemic.data.knowledge.format import KnowledgeError, KnowledgeQuestion, read_facts, read_questions
from mnemic.evaluate.error_rate import compute_task_errors, find_wrong_answers
from mnemic.recipe import ConfigError, build, load_recipe
from mnemic.train.run import fit, load_checkpoint


def folder(place: Path, kb: str, asked: str = "who made [A]\tB\n") -> Path:
    for name, text in (("kb.txt", kb), ("dev.txt", asked), ("test.txt", asked)):
        (place / name).write_text(text, encoding="utf-8")
    return place


# Files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("A|made_by", "expected subject|relation|object, not 'A|made_by'"),
        ("A|made_by|B|C", "expected subject|relation|object"),
        ("A||B", "expected subject|relation|object"),
    ],
)
def test_a_malformed_fact_names_file_and_line(line: str, said: str, tmp_path: Path) -> None:
    place = folder(tmp_path, f"A|made_by|B\n\n{line}\n")
    with pytest.raises(KnowledgeError) as caught:
        read_facts(place / "kb.txt")
    assert str(caught.value).startswith(f"{place / 'kb.txt'}, line 3: {said}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("who made [A]", "expected a question, a tab and answers with | between"),
        ("who made [A]\t", "expected a question, a tab and answers with | between"),
        ("who made A\tB", "expected the question's entity in [brackets], not 'who made A'"),
        ("who made []\tB", "expected the question's entity in [brackets]"),
    ],
)
def test_a_malformed_question_names_file_and_line(line: str, said: str, tmp_path: Path) -> None:
    place = folder(tmp_path, "A|made_by|B\n", f"who made [A]\tB|C|B\n{line}\n")
    with pytest.raises(KnowledgeError) as caught:
        read_questions(place / "dev.txt")
    assert str(caught.value).startswith(f"{place / 'dev.txt'}, line 2: {said}")


def test_a_missing_or_strange_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match=r"no file .*kb\.txt; a knowledge folder has kb\.txt"):
        KnowledgeFolder(folder=str(tmp_path)).load()
    (tmp_path / "kb.txt").write_bytes(b"\xff|a|b\n")
    with pytest.raises(KnowledgeError, match=r"kb\.txt is not UTF-8"):
        read_facts(tmp_path / "kb.txt")


def test_a_folder_is_read_with_its_entities_whole(tmp_path: Path) -> None:
    place = folder(
        tmp_path,
        "The Bat|made_by|Ada Berg\n$|made_by|Ada Berg\n",
        "who made [The Bat]\tAda Berg\nwhat did [Ada Berg] make\tThe Bat|$\n" * 10,
    )
    data = build(DATASETS, {"kind": "knowledge", "folder": str(place)}).load()
    assert len(data.train) == 18
    assert len(data.validation) == 2
    assert {"[the bat]", "[ada berg]", "[$]", "made_by", "!made_by"} <= set(data.tokenizer.vocabulary)
    assert data.train.num_unknown == data.train.num_unreachable == 0
    assert data.train.answers[1].tolist() == [data.tokenizer.id_of("[the bat]"), data.tokenizer.id_of("[$]")]


def test_every_tenth_question_is_held_back() -> None:
    """Evenly, since such files are sorted by relation."""
    every = [KnowledgeQuestion(f"who [{number}]", ("A",)) for number in range(95)]
    held = select_split(every, "validation", 0.1)
    assert [every.index(own) for own in held] == list(range(9, 95, 10))
    assert len(select_split(every, "train", 0.1)) == 95 - 9
    assert select_split(every, "test", 0.1) == every
    assert not select_split(every, "validation", 0.0)
    with pytest.raises(ConfigError, match=r"a share from 0 to below 1, not 1\.0"):
        select_split(every, "train", 1.0)


# Learning ------------------------------------------------------------------------------------


def test_the_generated_base_is_what_its_seed_says() -> None:
    first, again, other = (GeneratedKnowledge(films=9, seed=seed) for seed in (0, 0, 1))
    assert first.load_facts() == again.load_facts() != other.load_facts()
    sets = [first.read_split(part) for part in ("train", "validation", "test")]
    assert sum(map(len, sets)) == len({question.text for own in sets for question in own})
    ends = {(fact.subject, fact.object) for fact in first.load_facts()}
    for question in sets[0]:
        name = question.text[question.text.index("[") + 1 : question.text.index("]")]
        assert all((name, a) in ends or (a, name) in ends for a in question.answers)


def small() -> dict[str, Any]:
    return load_recipe(
        "kv-memnn",
        [
            'data={kind="generated-knowledge"}',
            "model.width=128",
            "train.epochs=8",
            "train.batch=32",
            "train.validate=0",
        ],
    )


def test_a_tiny_base_is_learnt_whole(tmp_path: Path) -> None:
    """Also by questions it never saw, about films of which it saw other questions."""
    list(fit(small(), tmp_path / "run", device="cpu"))
    checkpoint = load_checkpoint(tmp_path / "run")
    data = GeneratedKnowledge().load()
    assert compute_task_errors(checkpoint.network, data.train) == {1: 0.0}
    assert compute_task_errors(checkpoint.network, data.test)[1] <= 2.0
    again = GeneratedKnowledge().dataset("test", checkpoint.tokenizer)  # type: ignore[arg-type]
    rows = torch.arange(len(again))
    first, second = (find_wrong_answers(checkpoint.network, own, rows) for own in (again, data.test))
    assert torch.equal(first, second)


def test_from_the_command_line(tmp_path: Path) -> None:
    options = sets('data={kind="generated-knowledge", films=20}', "train.steps=3")
    trained = run("train", "kv-memnn", *options, "--out", tmp_path / "run", "--device", "cpu")
    assert trained.code == 0, trained.err
    tested = run("evaluate", tmp_path / "run", "--json", "--device", "cpu").json
    assert tested["names"] == {"1": "one-fact questions"}
    assert tested["questions"]["1"] > 20
    place = folder(tmp_path, "The Bat|directed_by|Ada Berg\n", "who directed [The Bat]\tAda Berg\n")
    other = ("evaluate", tmp_path / "run", "--data", place, "--device", "cpu")
    assert "1 of 1 answers are words the network does not know" in run(*other).err
    needs = run("train", "kv-memnn", "--out", tmp_path / "other")
    assert needs.code == 2
    assert "knowledge files: give their folder with --data DIR" in needs.err
    assert "--set data.kind=generated-knowledge" in needs.err
