"""Kill a process while it remembers, updates and forgets: nothing is lost or half-done."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mnemic.store import ENGINES, CheckReport, Memory, StoreError

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


class WorkerLog:
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
            for old_number in old:
                self.sure.pop(old_number)
            if number is not None:
                self.sure[number] = text
            self.open = []


def run_and_kill(path: Path | str, files: Path, seed: int, after: float, log: WorkerLog) -> None:
    """Run the worker, kill it in the middle, hear everything it said before."""
    words = [sys.executable, "-c", WORKER, str(path), str(files), str(seed)]
    worker = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert json.loads(worker.stdout.readline()) == ["ready"]
    while not log.sure:  # on a busy machine the first word may take long
        log.hear(worker.stdout.readline())
    time.sleep(after)
    worker.kill()
    for line in worker.communicate()[0].splitlines():
        if line.endswith("]"):
            log.hear(line)


def compare(path: Path | str, log: WorkerLog) -> None:
    """Every acknowledged document is there, whole; only the last word may be either way."""
    if not log.sure and not is_initialized(path):
        return
    with Memory(path, reader=None) as memory:
        assert memory.check() == CheckReport()
        documents = {document.id: document for document in memory.memories()}
        texts = {
            number: " ".join(slot.passage.text for slot in memory.store.list_slots(number)) for number in documents
        }
        _, text, *old = log.open or ("", "")
        for number, words in log.sure.items():
            assert number in documents or number in old, f"{number} was acknowledged and is gone"
            if number in documents:
                assert texts[number] == words
        unacknowledged = {number for number in documents if number not in log.sure}
        assert {texts[number] for number in unacknowledged} <= {text}, "half of something is there"
        assert len(unacknowledged) <= 1
        if unacknowledged and old:
            assert not set(old) & set(documents), "both the old and the new version are read"
        log.sure = {number: texts[number] for number in documents}
        log.open = []
        if documents:
            last = max(documents)
            assert memory.ask(texts[last][:80]).evidence[0].document == last


def is_initialized(path: Path | str) -> bool:
    with Memory(path, reader=None) as memory:
        try:
            return memory.store.is_initialized()
        except StoreError:
            return False


def wait_until_settled(path: Path | str) -> None:
    """Wait until the server has noticed that the worker is gone."""
    if isinstance(path, Path):
        return
    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mnemic'"
    end = time.monotonic() + 20
    with psycopg.connect(path.partition("#")[0], autocommit=True) as connection:
        while connection.execute(sql).fetchall() != [(0,)]:
            assert time.monotonic() < end
            time.sleep(0.01)


def hunt(path: Path | str, folder: Path, kills: int, seed: int) -> int:
    files, log, generator = folder / "files", WorkerLog(), random.Random(seed)
    files.mkdir()
    for number in range(kills):
        run_and_kill(path, files, seed * 1000 + number, generator.uniform(0.0, 0.6), log)
        wait_until_settled(path)
        compare(path, log)
    return len(log.sure)


@pytest.fixture(params=sorted(ENGINES))
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    sqlite = request.param == "sqlite"
    return tmp_path / "memory.db" if sqlite else request.getfixturevalue("new_address")()


def test_a_few_kills(location: Path | str, tmp_path: Path) -> None:
    assert hunt(location, tmp_path, 4, seed=1) > 0


@pytest.mark.slow
def test_three_hundred_kills(location: Path | str, tmp_path: Path) -> None:
    assert hunt(location, tmp_path, 300, seed=2) > 0
