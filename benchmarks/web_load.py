"""Load `mnemic serve` over loopback: many ask while documents are remembered.

    python benchmarks/web_load.py --askers 32 --seconds 60 --passages 100000

It fills a memory with synthetic passages, starts a server in another process, lets ASKERS clients
ask one question after another, and uploads documents and writes notes meanwhile. Then it prints
errors, the times of answers (p50, p95), the server's memory before and after, and lost writes: of
all that was acknowledged, what is not in the memory. `--idle N` opens connections that say nothing.
"""

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

NAMES = ("Ada", "Bruno", "Clara", "Dmitri", "Elsa", "Farid", "Greta", "Hugo", "Ines", "Jonas")
THINGS = ("bicycle", "violin", "lantern", "compass", "ladder", "anchor", "kettle", "telescope", "drum", "map")
PLACES = ("cellar", "harbor", "attic", "library", "garden", "workshop", "kitchen", "tower", "barn", "museum")
BATCH = 5_000  # passages of one synthetic file
FILES_PER_UPLOAD, SENTENCES_PER_FILE = 5, 20


def write_sentence(number: int) -> str:
    """Write a sentence that says something else for each number."""
    name, thing, place = (items[number // 10**power % 10] for power, items in enumerate((NAMES, THINGS, PLACES)))
    return f"{name} keeps the {thing} number {number} in the {place} of house {number * 7 % 9973}."


def fill_memory(path: Path, num_passages: int, embedder: str) -> None:
    """Fill a memory with passages of one paragraph each."""
    from mnemic import Memory

    with tempfile.TemporaryDirectory() as folder, Memory(path, embedder=embedder, reader=None) as memory:
        for first in range(0, num_passages, BATCH):
            numbers = range(first, min(first + BATCH, num_passages))
            # A row of a table is a unit of its own; passages of 200 tokens have about ten of them.
            paragraphs = ["\n".join(write_sentence(10 * number + row) for row in range(10)) for number in numbers]
            file = Path(folder, f"houses-{first}.txt")
            file.write_text("\n\n".join(paragraphs), encoding="utf-8")
            memory.remember(file)


@contextmanager
def start_server(memory: Path, home: Path, options: list[str]) -> Iterator[tuple[int, int, str]]:
    """Start a server; yield its process, port and token."""
    command = [sys.executable, "-m", "mnemic", "serve", str(memory), "--port", "0", "--json", "--no-open", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"MNEMIC_HOME": str(home)})
    assert process.stdout is not None
    text = ""
    while "\n}" not in text:
        text += process.stdout.readline()
    port = int(json.loads(text)["url"].rpartition(":")[2])
    try:
        yield process.pid, port, (home / "serve.token").read_text(encoding="utf-8").strip()
    finally:
        started = time.monotonic()
        process.terminate()
        process.wait(30)
        print(f"ended {time.monotonic() - started:.1f} s after SIGTERM", file=sys.stderr)


class Client:
    """A client with one connection."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token
        self.connection = HTTPConnection("127.0.0.1", port, timeout=120)

    def send(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> tuple[int, Any]:
        """Send a request; return its status and its JSON."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        except OSError:
            self.connection.close()
            raise


class Load:
    """The threads of a load, and what they counted."""

    def __init__(self, port: int, token: str, memory: str, num_passages: int) -> None:
        self.port, self.token, self.num_passages = port, token, num_passages
        self.path = f"/v1/memories/{memory}"
        self.stop, self.lock = Event(), Lock()
        self.seconds: list[float] = []
        self.outcomes: Counter[str] = Counter()
        self.notes: list[int] = []
        self.jobs: dict[str, list[str]] = {}

    def count(self, outcome: str, seconds: float | None = None) -> None:
        """Count an outcome, and the time of an answer."""
        with self.lock:
            self.outcomes[outcome] += 1
            if seconds is not None:
                self.seconds.append(seconds)

    def ask(self, seed: int) -> None:
        """Ask one question after another."""
        generator, client = random.Random(seed), Client(self.port, self.token)
        while not self.stop.is_set():
            number = generator.randrange(10 * self.num_passages)
            question = f"Where is the {THINGS[number // 10 % 10]} number {number}?"
            started = time.monotonic()
            try:
                status, answer = client.send("POST", f"{self.path}/ask", json.dumps({"question": question}).encode())
            except OSError as error:
                self.count(f"asking: {type(error).__name__}")
                continue
            self.count(f"ask {status}", time.monotonic() - started)
            if status == 200 and not answer["evidence"]:
                self.count("ask without evidence")

    def write_notes(self, seed: int) -> None:
        """Write notes, and note those that were acknowledged."""
        client, number = Client(self.port, self.token), 0
        while not self.stop.is_set():
            number += 1
            body = json.dumps({"text": f"Note {number} of writer {seed} is about boat {number * 13}."}).encode()
            status, row = client.send("POST", f"{self.path}/notes", body)
            self.count(f"note {status}")
            if status == 201:
                self.notes.append(row["id"])
            self.stop.wait(0.5)

    def upload(self, seed: int) -> None:
        """Upload files, and note the jobs that were acknowledged."""
        client, number = Client(self.port, self.token), 0
        while not self.stop.is_set():
            number += 1
            names = [f"upload-{seed}-{number}-{index}.txt" for index in range(FILES_PER_UPLOAD)]
            parts = []
            for index, name in enumerate(names):
                text = " ".join(
                    write_sentence(10**6 * seed + 1000 * number + 100 * index + row)
                    for row in range(SENTENCES_PER_FILE)
                )
                head = f'--B\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
                parts.append(f"{head}{text}\r\n")
            body = ("".join(parts) + "--B--\r\n").encode()
            status, answer = client.send("POST", f"{self.path}/documents", body, "multipart/form-data; boundary=B")
            self.count(f"upload {status}")
            if status == 202:
                self.jobs[answer["job"]["id"]] = names
                while not self.stop.is_set() and client.send("GET", f"/v1/jobs/{answer['job']['id']}")[1]["state"] in (
                    "queued",
                    "running",
                ):
                    self.stop.wait(0.2)

    def run(self, num_askers: int, seconds: float) -> None:
        """Run all threads for some time."""
        targets: list[Callable[[int], None]] = [*[self.ask] * num_askers, self.write_notes, self.upload]
        threads = [Thread(target=target, args=(seed,)) for seed, target in enumerate(targets)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.stop.set()
        for thread in threads:
            thread.join()

    def find_lost(self) -> list[str]:
        """Return what was acknowledged and is not in the memory."""
        client, lost = Client(self.port, self.token), []
        for job_id, names in self.jobs.items():
            while (answer := client.send("GET", f"/v1/jobs/{job_id}"))[1].get("state") in ("queued", "running"):
                time.sleep(0.2)
            status, job = answer
            if status != 404 and job.get("state") != "done":  # 404: one of the oldest jobs, which are dropped
                lost.append(f"job {job_id}: {status} {job}")
            for name in names:
                if client.send("GET", f"{self.path}/documents?query={name}")[1]["total"] != 1:
                    lost.append(name)
        for number in self.notes:
            if client.send("GET", f"{self.path}/documents/{number}")[0] != 200:
                lost.append(f"note {number}")
        return lost


def read_memory_mb(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_idle(port: int, count: int) -> list[socket.socket]:
    """Open connections that say nothing."""
    return [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--askers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--passages", type=int, default=2_000)
    parser.add_argument("--idle", type=int, default=0)
    parser.add_argument("--embedder", default="hashed-ngrams")
    parser.add_argument("--reader", default="reader-small")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        memory = Path(folder, "load.db")
        fill_memory(memory, arguments.passages, arguments.embedder)
        options = ["--reader", arguments.reader, "--log", "none"]
        with start_server(memory, Path(folder, "home"), options) as (pid, port, token):
            client = Client(port, token)
            for number in range(3):  # the first question loads the networks
                client.send("POST", "/v1/memories/load/ask", json.dumps({"question": f"Where is {number}?"}).encode())
            before = read_memory_mb(pid)
            idle = open_idle(port, arguments.idle)
            load = Load(port, token, "load", arguments.passages)
            load.run(arguments.askers, arguments.seconds)
            after = read_memory_mb(pid)
            for connection in idle:
                connection.close()
            lost = load.find_lost()
            passages = Client(port, token).send("GET", "/v1/memories/load")[1]["passages"]
    ordered = sorted(load.seconds)
    report = {
        "askers": arguments.askers,
        "seconds": arguments.seconds,
        "passages": passages,
        "outcomes": dict(sorted(load.outcomes.items())),
        "answers_per_s": round(len(ordered) / arguments.seconds, 1),
        "p50_ms": round(1000 * statistics.median(ordered)),
        "p95_ms": round(1000 * ordered[int(0.95 * len(ordered))]),
        "max_ms": round(1000 * ordered[-1]),
        "server_mb_before": round(before),
        "server_mb_after": round(after),
        "acknowledged": len(load.notes) + sum(map(len, load.jobs.values())),
        "lost": lost,
    }
    print(json.dumps(report, indent=1))
    allowed = {"ask 200", "note 201", "upload 202"}
    if lost or set(load.outcomes) - allowed:
        sys.exit(1)


if __name__ == "__main__":
    main()
