"""Kill a process at any moment of remembering, updating and forgetting: nothing is lost or half."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mnemic.store import ENGINES, Checked, Memory, StoreError

# Says what it is about to do, does it, says that it is done; for ever.
WORKER = """
import json, os, random, sys
from pathlib import Path
from mnemic.store import Memory, StoreError

path, files, seed = sys.argv[1:]
dice = random.Random(int(seed))
memory = Memory(path, embedder="hashed-ngrams")

def say(*words):
    print(json.dumps(words), flush=True)

def text(size):
    return " ".join(f"Person {dice.random()} met {dice.random()}." for _ in range(size))

try:
    known = {one.id: one for one in memory.memories()}
except StoreError:  # it is not there yet
    known = {}
say("ready")
while True:
    what = dice.choice(["note", "note", "file", "update", "forget"])
    if what in ("update", "forget") and not known:
        continue
    if what == "note":
        words = text(dice.choice([1, 5, 60]))
        say("begin", what, words)
        number = memory.note(words)
        say("done", number, words)
        known[number] = None
    elif what == "file":
        name, words = Path(files, f"{dice.random()}.txt"), text(dice.choice([1, 900]))
        name.write_text(words)
        say("begin", what, words)
        (step,) = memory.remember(name)
        say("done", step.document, words)
        known[step.document] = None
    elif what == "update":
        old, words = dice.choice(sorted(known)), text(3)
        say("begin", what, words, old)
        number = memory.update(old, words)
        say("done", number, words, old)
        del known[old]
        known[number] = None
    else:
        old = dice.choice(sorted(known))
        say("begin", what, "", old)
        memory.forget(old)
        say("done", None, "", old)
        del known[old]
"""


class Told:
    """What the memory must hold by what the worker has said."""

    def __init__(self) -> None:
        self.sure: dict[int, str] = {}  # documents that were acknowledged
        self.open: list[Any] = []  # what was begun and not acknowledged

    def hear(self, line: str) -> None:
        kind, *words = json.loads(line)
        if kind == "begin":
            self.open = words
        elif kind == "done":
            number, text, *old = words
            for one in old:
                self.sure.pop(one)
            if number is not None:
                self.sure[number] = text
            self.open = []


def killed(path: Path | str, files: Path, seed: int, after: float, told: Told) -> None:
    """Run the worker, kill it in the middle, hear everything it said before."""
    words = [sys.executable, "-c", WORKER, str(path), str(files), str(seed)]
    worker = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert json.loads(worker.stdout.readline()) == ["ready"]
    time.sleep(after)
    worker.kill()
    for line in worker.communicate()[0].splitlines():
        if line.endswith("]"):
            told.hear(line)


def compare(path: Path | str, told: Told) -> None:
    """Every acknowledged document is there, whole; only the last word may be either way."""
    if not told.sure and not begun(path):
        return
    with Memory(path, reader=None) as memory:
        assert memory.check() == Checked()
        there = {one.id: one for one in memory.memories()}
        held = {
            number: " ".join(slot.passage.text for slot in memory.store.slots_of(number))
            for number in there
        }
        _, text, *old = told.open or ("", "")
        for number, words in told.sure.items():
            assert number in there or number in old, f"{number} was acknowledged and is gone"
            if number in there:
                assert held[number] == words
        strange = {number for number in there if number not in told.sure}
        assert {held[number] for number in strange} <= {text}, "half of something is there"
        assert len(strange) <= 1
        if strange and old:
            assert not set(old) & set(there), "both the old and the new version are read"
        told.sure = {number: held[number] for number in there}
        told.open = []
        if there:
            last = max(there)
            assert memory.ask(held[last][:80]).evidence[0].document == last


def begun(path: Path | str) -> bool:
    with Memory(path, reader=None) as memory:
        try:
            return memory.store.begun()
        except StoreError:
            return False


def settled(path: Path | str) -> None:
    """Wait until a server has noticed that the worker is gone; what was on its way is then done."""
    if isinstance(path, Path):
        return
    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mnemic'"
    end = time.monotonic() + 20
    with psycopg.connect(path.partition("#")[0], autocommit=True) as connection:
        while connection.execute(sql).fetchall() != [(0,)]:
            assert time.monotonic() < end
            time.sleep(0.01)


def hunt(path: Path | str, folder: Path, kills: int, seed: int) -> int:
    files, told, dice = folder / "files", Told(), random.Random(seed)
    files.mkdir()
    for number in range(kills):
        killed(path, files, seed * 1000 + number, dice.uniform(0.0, 0.6), told)
        settled(path)
        compare(path, told)
    return len(told.sure)


@pytest.fixture(params=sorted(ENGINES))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    sqlite = request.param == "sqlite"
    return tmp_path / "memory.db" if sqlite else request.getfixturevalue("new_address")()


def test_a_few_kills(place: Path | str, tmp_path: Path) -> None:
    assert hunt(place, tmp_path, 4, seed=1) > 0


@pytest.mark.slow
def test_two_hundred_kills(place: Path | str, tmp_path: Path) -> None:
    assert hunt(place, tmp_path, 200, seed=2) > 0
