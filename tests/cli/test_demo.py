"""The demos: answers from mnemic's documentation, and a network trained on stories."""

import socket
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from app_runs import QUICK, TINY, run

from mnemic.cli.documents import demo
from mnemic.cli.networks import demo_stories

ROOT = Path(__file__).parents[2]


class Refused(socket.socket):
    def __init__(self, family: int = -1, *rest: Any, **kwargs: Any) -> None:
        assert family == socket.AF_UNIX, "a socket was opened"  # those two ends stay in this machine
        super().__init__(family, *rest, **kwargs)


def test_it_remembers_its_documentation_and_answers_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README alone, which every wheel has, must be enough."""
    monkeypatch.setattr(socket, "socket", Refused)
    monkeypatch.setattr(demo, "find_documentation", lambda folder: [ROOT / "README.md"])
    first = run("demo", "--out", tmp_path / "demo")
    assert first.code == 0, first.out
    assert "files: 1 new" in first.out
    assert first.out.count("question    ") == first.out.count("answer      ") == len(demo.QUESTIONS)
    assert "README.md, line" in first.out
    assert "answer      none" in first.out
    again = run("demo", "--out", tmp_path / "demo", "--json").json
    assert again["remembered"]["files"] == {"unchanged": 1}
    assert [answer["question"] for answer in again["answers"]] == list(demo.QUESTIONS)
    assert all(answer["right"] for answer in again["answers"])
    assert all(answer["evidence"] for answer in again["answers"])


def test_a_wheel_reads_the_pages_that_a_clone_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = demo.find_documentation(tmp_path)
    assert paths[0] == ROOT / "README.md"
    assert {path.relative_to(ROOT) for path in paths} >= {page.relative_to(ROOT) for page in ROOT.glob("docs/*.md")}
    pages = tmp_path / "site-packages" / "mnemic" / "docs"
    (pages / "howto").mkdir(parents=True)
    (pages / "howto" / "page.md").write_text("# A page", encoding="utf-8")
    monkeypatch.setattr(demo, "PAGES", pages)
    package_metadata = Message()
    monkeypatch.setattr(demo, "metadata", lambda name: package_metadata)
    with pytest.raises(ValueError, match="no README beside"):
        demo.find_documentation(tmp_path)
    package_metadata["Description"] = "# mnemic"
    readme, page = demo.find_documentation(tmp_path)
    assert readme.read_text(encoding="utf-8") == "# mnemic"
    assert page == pages / "howto" / "page.md"


def test_the_demonstration_trains_once_and_shows_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer tasks and steps than the real demo, so that answers may be wrong."""
    monkeypatch.setattr(demo_stories, "RECIPE_CHANGES", (*TINY, *QUICK, "train.epochs=2"))
    monkeypatch.setattr(demo_stories, "STORIES", demo_stories.STORIES[:1])
    first = run("demo", "--stories", "--out", tmp_path / "demo")
    assert first.code == (1 if "wrong:" in first.out else 0)
    assert "Trained in" in first.out
    assert "Mary travelled to the office." in first.out
    again = run("demo", "--stories", "--out", tmp_path / "demo", "--json")
    assert again.json["trained"]["already_trained"]
    assert again.json["answers"][0]["question"] == "Where is Mary?"


@pytest.mark.slow
def test_it_answers_right_from_all_pages(tmp_path: Path) -> None:
    done = run("demo", "--out", tmp_path / "demo", "--json")
    assert done.code == 0
    assert done.json["remembered"]["files"]["new"] > 1


@pytest.mark.slow
def test_the_demonstration_answers_right(tmp_path: Path) -> None:
    done = run("demo", "--stories", "--out", tmp_path / "demo", "--json")
    assert done.code == 0
    assert all(answer["right"] for answer in done.json["answers"])
