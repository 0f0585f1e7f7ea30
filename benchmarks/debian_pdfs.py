"""Ask three books of Debian, PDF files by groff and LaTeX, twelve questions with known pages.

    sudo apt-get install bash-doc debian-faq debian-reference-en
    python benchmarks/debian_pdfs.py [--json FILE]

The gold pages are those of Debian 12 (bash 5.2, debian-faq 11.1, debian-reference 2.100), found
with pdftotext. An answer counts if its text is right by the rules of ``folder/score.py`` and the
page that is cited has it.
"""

import argparse
import gzip
import json
import shutil
import tempfile
import time
from pathlib import Path

from folder.score import format_verdicts, judge_answer, load_questions, summarize_verdicts

from mnemic import Memory

BOOKS = {
    "bash.pdf": "/usr/share/doc/bash/bash.pdf",
    "debian-faq.pdf": "/usr/share/doc/debian/FAQ/debian-faq.en.pdf.gz",
    "debian-reference.en.pdf": "/usr/share/debian-reference/debian-reference.en.pdf",
}
QUESTIONS = Path(__file__).parent / "folder" / "questions_debian.toml"


def copy_books(folder: Path) -> None:
    """Copy the books into a folder, unpacked; raise ``FileNotFoundError`` without them."""
    folder.mkdir()
    for name, path in BOOKS.items():
        open_book = gzip.open if path.endswith(".gz") else open
        with open_book(path, "rb") as source, (folder / name).open("wb") as target:
            shutil.copyfileobj(source, target)


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve() / "books"
        copy_books(folder)
        with Memory(Path(scratch, "memory.db")) as memory:
            started = time.perf_counter()
            steps = memory.remember(folder)
            seconds = time.perf_counter() - started
            verdicts = [judge_answer(memory, question, folder) for question in load_questions(QUESTIONS)]
            passages = memory.stats().passages
    print(format_verdicts(verdicts))
    figures = {
        "files": {Path(step.path).name: [step.outcome, *step.notes] for step in steps},
        "passages": passages,
        "remember s": round(seconds, 1),
        "questions": summarize_verdicts(verdicts),
    }
    print("\n" + json.dumps(figures, indent=1))
    if args.json:
        rows = figures | {"verdicts": [verdict._asdict() for verdict in verdicts]}
        args.json.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
