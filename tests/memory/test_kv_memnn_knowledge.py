"""Knowledge bases for the key-value memory: their files, and learning a generated one."""

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


def write_folder(folder: Path, kb: str, questions: str = "who made [A]\tB\n") -> Path:
    for name, text in (("kb.txt", kb), ("dev.txt", questions), ("test.txt", questions)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


# Files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A|made_by", "expected subject|relation|object, not 'A|made_by'"),
        ("A|made_by|B|C", "expected subject|relation|object"),
        ("A||B", "expected subject|relation|object"),
    ],
)
def test_a_malformed_fact_names_file_and_line(line: str, message: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, f"A|made_by|B\n\n{line}\n")
    with pytest.raises(KnowledgeError) as error_info:
        read_facts(folder / "kb.txt")
    assert str(error_info.value).startswith(f"{folder / 'kb.txt'}, line 3: {message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("who made [A]", "expected a question, a tab and answers with | between"),
        ("who made [A]\t", "expected a question, a tab and answers with | between"),
        ("who made A\tB", "expected the question's entity in [brackets], not 'who made A'"),
        ("who made []\tB", "expected the question's entity in [brackets]"),
    ],
)
def test_a_malformed_question_names_file_and_line(line: str, message: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "A|made_by|B\n", f"who made [A]\tB|C|B\n{line}\n")
    with pytest.raises(KnowledgeError) as error_info:
        read_questions(folder / "dev.txt")
    assert str(error_info.value).startswith(f"{folder / 'dev.txt'}, line 2: {message}")


def test_a_missing_or_strange_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match=r"no file .*kb\.txt; a knowledge folder has kb\.txt"):
        KnowledgeFolder(folder=str(tmp_path)).load()
    (tmp_path / "kb.txt").write_bytes(b"\xff|a|b\n")
    with pytest.raises(KnowledgeError, match=r"kb\.txt is not UTF-8"):
        read_facts(tmp_path / "kb.txt")


def test_a_folder_is_read_with_its_entities_whole(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path,
        "The Bat|made_by|Ada Berg\n$|made_by|Ada Berg\n",
        "who made [The Bat]\tAda Berg\nwhat did [Ada Berg] make\tThe Bat|$\n" * 10,
    )
    data = build(DATASETS, {"kind": "knowledge", "folder": str(folder)}).load()
    assert len(data.train) == 18
    assert len(data.validation) == 2
    assert {"[the bat]", "[ada berg]", "[$]", "made_by", "!made_by"} <= set(data.tokenizer.vocabulary)
    assert data.train.num_unknown == data.train.num_unreachable == 0
    assert data.train.answers[1].tolist() == [data.tokenizer.id_of("[the bat]"), data.tokenizer.id_of("[$]")]


def test_every_tenth_question_is_held_back() -> None:
    """Evenly spaced, because such files are sorted by relation."""
    questions = [KnowledgeQuestion(f"who [{number}]", ("A",)) for number in range(95)]
    validation = select_split(questions, "validation", 0.1)
    assert [questions.index(question) for question in validation] == list(range(9, 95, 10))
    assert len(select_split(questions, "train", 0.1)) == 95 - 9
    assert select_split(questions, "test", 0.1) == questions
    assert not select_split(questions, "validation", 0.0)
    with pytest.raises(ConfigError, match=r"a share from 0 to below 1, not 1\.0"):
        select_split(questions, "train", 1.0)


# Learning ------------------------------------------------------------------------------------


def test_the_generated_base_is_what_its_seed_says() -> None:
    first, same_seed, other_seed = (GeneratedKnowledge(films=9, seed=seed) for seed in (0, 0, 1))
    assert first.load_facts() == same_seed.load_facts() != other_seed.load_facts()
    splits = [first.read_split(split) for split in ("train", "validation", "test")]
    assert sum(map(len, splits)) == len({question.text for questions in splits for question in questions})
    entity_pairs = {(fact.subject, fact.object) for fact in first.load_facts()}
    for question in splits[0]:
        name = question.text[question.text.index("[") + 1 : question.text.index("]")]
        assert all((name, answer) in entity_pairs or (answer, name) in entity_pairs for answer in question.answers)


def make_small_recipe() -> dict[str, Any]:
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


def test_a_tiny_base_is_learned_completely(tmp_path: Path) -> None:
    """Also unseen test questions, about films whose other questions were in training."""
    list(fit(make_small_recipe(), tmp_path / "run", device="cpu"))
    checkpoint = load_checkpoint(tmp_path / "run")
    data = GeneratedKnowledge().load()
    assert compute_task_errors(checkpoint.network, data.train) == {1: 0.0}
    assert compute_task_errors(checkpoint.network, data.test)[1] <= 2.0
    reloaded = GeneratedKnowledge().dataset("test", checkpoint.tokenizer)  # type: ignore[arg-type]
    rows = torch.arange(len(reloaded))
    first, second = (find_wrong_answers(checkpoint.network, dataset, rows) for dataset in (reloaded, data.test))
    assert torch.equal(first, second)


def test_from_the_command_line(tmp_path: Path) -> None:
    options = sets('data={kind="generated-knowledge", films=20}', "train.steps=3")
    trained = run("train", "kv-memnn", *options, "--out", tmp_path / "run", "--device", "cpu")
    assert trained.code == 0, trained.err
    report = run("evaluate", tmp_path / "run", "--json", "--device", "cpu").json
    assert report["names"] == {"1": "one-fact questions"}
    assert report["questions"]["1"] > 20
    folder = write_folder(tmp_path, "The Bat|directed_by|Ada Berg\n", "who directed [The Bat]\tAda Berg\n")
    evaluate_command = ("evaluate", tmp_path / "run", "--data", folder, "--device", "cpu")
    assert "1 of 1 answers are words the network does not know" in run(*evaluate_command).err
    without_data = run("train", "kv-memnn", "--out", tmp_path / "other")
    assert without_data.code == 2
    assert "knowledge files: give their folder with --data DIR" in without_data.err
    assert "--set data.kind=generated-knowledge" in without_data.err
