"""Make a persistent memory in every engine, and a small folder to remember."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mnemic import Memory
from mnemic.store import ENGINES, RememberStep

KEY = "The key is under the mat. The bread is in the kitchen."
DROP_QUESTIONS = ("DROP TABLE question_lexicon", "DROP TABLE questions")  # of schema version 4
SECRET = "The passphrase is incomprehensibilities. Nobody else may know of it."


@pytest.fixture(params=sorted(ENGINES))
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    sqlite = request.param == "sqlite"
    location = tmp_path / "memory.db" if sqlite else request.getfixturevalue("new_address")()
    with Memory(location, embedder="hashed-ngrams", reader=None) as memory:
        yield memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "a.txt", KEY)
    write(folder / "b.md", "# Report\n\nAnn wrote the report in March.\n")
    write(folder / "c.txt", SECRET)
    return folder


def write(path: Path, text: str, *, age: int = 100) -> Path:
    """Write a file that was last changed ``age`` seconds ago."""
    path.write_text(text, encoding="utf-8")
    then = path.stat().st_mtime_ns - age * 10**9
    os.utime(path, ns=(then, then))
    return path


def outcomes(steps: list[RememberStep]) -> dict[str, str]:
    return {Path(step.path).name: step.outcome for step in steps}
