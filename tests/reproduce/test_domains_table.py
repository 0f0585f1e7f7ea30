"""``mnemic table domains``: rows of files, resuming, and what is no file of questions."""

import json
import lzma
from pathlib import Path

import pytest
from app_runs import run

from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.reproduce import domains_table
from mnemic.reproduce.domains_table import sample_questions

TEXT = "The lease ends on 30 June. The rent is 700 euros a month."
ROWS = [
    {"id": "1", "question": "when does the lease end ?", "answers": [{"text": "30 June", "answer_start": 18}]},
    {"id": "2", "question": "How much is the rent?", "answers": [{"text": "700 euros", "answer_start": 39}]},
    {"id": "3", "question": "Who wrote the play about Denmark?", "answers": [], "is_impossible": True},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "qa"
    folder.mkdir()
    lines = "".join(json.dumps(row | {"context": TEXT}) + "\n" for row in ROWS)
    (folder / "letters_dev.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    (folder / "mail.jsonl").write_text(lines.splitlines()[0] + "\n", encoding="utf-8")
    (folder / "pairs.jsonl").write_text('{"question": "a", "answer": "b"}\n', encoding="utf-8")
    (folder / "README.md").write_text("not questions", encoding="utf-8")
    return folder


def test_a_row_per_file_and_a_table_that_resumes(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("table", "domains", "--data", folder, "--out", tmp_path / "out")
    result = run(*command, "--json").json
    assert set(result["domains"]) == {"letters_dev", "mail"}  # no pairs, no page
    row = result["domains"]["letters_dev"]["reader"]
    assert (row["questions"], row["answerable"], row["auroc"]) == (3, 2, 100.0)
    assert row["f1_interval"][0] < row["f1"] <= row["f1_interval"][1]
    assert row["f1_or_none"] >= 66  # two of three at least
    assert "auroc" not in result["domains"]["mail"]["reader"]

    def fail(*arguments: object) -> None:
        raise AssertionError("a finished domain was read again")

    monkeypatch.setattr(domains_table, "evaluate_domain", fail)
    assert run(*command, "--json").json == result
    assert "letters_dev" in run(*command).out


def test_questions_are_drawn_by_their_ids() -> None:
    examples = [QuestionExample("?", TEXT, (), -1, str(number)) for number in range(50)]
    drawn = sample_questions(examples, 10)
    assert len({example.question_id for example in drawn}) == 10
    assert sample_questions(examples[::-1], 10) == drawn
    assert set(drawn) <= set(sample_questions(examples, 20))
    assert sample_questions(examples, 0) == examples


@pytest.mark.parametrize("name", ["nowhere", "README.md", "pairs.jsonl"])
def test_what_has_no_questions_is_an_error(name: str, folder: Path, tmp_path: Path) -> None:
    done = run("table", "domains", "--data", folder / name, "--out", tmp_path / "out")
    assert done.code == 2
    assert name in done.err
    assert len(done.err.strip().splitlines()) == 1
