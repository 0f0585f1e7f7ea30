"""Remember a folder like a real person's Documents, and ask it questions with known answers.

    python benchmarks/real_folder.py --set dev --makers makers/bin/python [--json FILE]
    python benchmarks/real_folder.py --set dev --folder FOLDER

The folder has 110 files of 62 kinds: ``make_folder.py`` writes it, and says at its top what it
needs. ``--makers`` is a Python with these packages, so that they stay out of the one that
runs mnemic; ``--folder`` takes a folder that is made already. Checked is, in this order,

- whether ``remember`` read every file or named it with a reason, and how long it took;
- 30 questions with an answer: is the answer right, and the file, page and line that are cited
  (``folder/score.py`` has the rules);
- 7 questions without one: are they declined.

``--set final`` asks another 30 and 7, which are kept for the end: nothing may be fitted to them.
``--set more`` has 65 and 10 more to build by.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from folder.coverage import list_coverage
from folder.score import check_lines, format_verdicts, judge_answer, load_questions, summarize_verdicts

from mnemic import Memory

ROOT = Path(__file__).parent
LISTED_GROUPS = ("passed over", "named without a reason", "readable but not read", "not readable but read")


def run_benchmark(folder: Path, memory_path: Path, questions_path: Path) -> dict[str, Any]:
    """Remember a folder, ask all questions, and return the figures."""
    questions = load_questions(questions_path)
    check_lines(questions, folder)
    with Memory(memory_path) as memory:
        started = time.perf_counter()
        steps = memory.remember(folder)
        seconds = time.perf_counter() - started
        coverage = list_coverage(folder, steps)
        verdicts, times = [], []
        for question in questions:
            started = time.perf_counter()
            verdicts.append(judge_answer(memory, question, folder))
            times.append(time.perf_counter() - started)
        passages = memory.stats().passages
    print(format_verdicts(verdicts))
    for name in LISTED_GROUPS:
        print(f"\n{name}: {len(coverage[name])}", *coverage[name], sep="\n  ")
    return {
        "files": {name: len(paths) for name, paths in coverage.items()},
        "passages": passages,
        "remember s": round(seconds, 1),
        "ask p50 ms": round(1000 * sorted(times)[len(times) // 2]),
        "questions": summarize_verdicts(verdicts),
        "coverage": coverage,
        "verdicts": [verdict._asdict() for verdict in verdicts],
    }


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--set", choices=["dev", "more", "final"], default="dev")
    parser.add_argument("--folder", type=Path, help="a folder that make_folder.py wrote")
    parser.add_argument("--makers", default=sys.executable, help="a Python that can run make_folder.py")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder
        if folder is None:
            folder = Path(scratch, "Documents")
            subprocess.run([args.makers, str(ROOT / "make_folder.py"), str(folder)], check=True)
        memory_path = Path(scratch, "memory.db")
        figures = run_benchmark(folder.resolve(), memory_path, ROOT / "folder" / f"questions_{args.set}.toml")
    if args.json:
        args.json.write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    brief = {name: value for name, value in figures.items() if name not in ("coverage", "verdicts")}
    print("\n" + json.dumps(brief, indent=1))


if __name__ == "__main__":
    main()
