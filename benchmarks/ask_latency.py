"""Measure what a user waits for: a cold ``mnemic ask``, and a changed file that is watched.

    python benchmarks/ask_latency.py --runs 7

The memory has one file. A cold question starts Python, imports torch, loads the network and
answers. A watched file is changed, and asked about with a memory that stays open until the answer
is the new one; the time is from the end of writing to the answer.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mnemic import Memory

QUESTION = "Where is the key?"
PLACES = ("drawer", "garden", "kitchen", "attic", "cellar", "garage", "office", "hall")
COMMAND = (sys.executable, "-m", "mnemic")


def measure_cold_questions(folder: Path, num_runs: int) -> list[float]:
    """Time whole processes of ``mnemic ask``, in seconds."""
    seconds = []
    for _ in range(num_runs):
        start = time.perf_counter()
        subprocess.run([*COMMAND, "ask", "--memory", folder / "a.db", QUESTION], check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    return seconds


def measure_changes(folder: Path, num_runs: int) -> list[float]:
    """Time how long a changed file takes to be answered from, in seconds."""
    watch = [*COMMAND, "watch", str(folder / "notes"), "--memory", str(folder / "a.db")]
    process = subprocess.Popen(watch, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    seconds = []
    with Memory(folder / "a.db") as memory:
        memory.ask(QUESTION)  # loads the network
        next(line for line in process.stderr if "watching" in line)
        for number in range(1, num_runs + 1):
            place = PLACES[number % len(PLACES)]
            (folder / "notes" / "key.txt").write_text(f"The key is in the {place}.\n", encoding="utf-8")
            start = time.perf_counter()
            while place not in memory.ask(QUESTION).text:
                time.sleep(0.05)
            seconds.append(time.perf_counter() - start)
            time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate()
    return seconds


def main() -> None:
    """Print the median and the longest of both times, with the load of the machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="questions, and changes (default: 7)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notes").mkdir()
        (folder / "notes" / "key.txt").write_text("The key is in the drawer.\n", encoding="utf-8")
        with Memory(folder / "a.db") as memory:
            memory.remember(folder / "notes")
        times = {
            "cold ask s": measure_cold_questions(folder, options.runs),
            "changed file s": measure_changes(folder, options.runs),
        }
    report = {name: {"p50": round(statistics.median(s), 2), "max": round(max(s), 2)} for name, s in times.items()}
    print(json.dumps(report | {"load": os.getloadavg()[0]}, indent=1))


if __name__ == "__main__":
    main()
