"""Draw what `mnemic ask` prints as an SVG picture of a terminal.

    python docs/pictures/terminal.py

It remembers three small files in a temporary folder, asks one question, and writes ask.svg.
"""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

COLUMNS = 96
QUESTION = "When does the lease end?"
FILES = {
    "lease.txt": "The lease of the flat in Mill Street ends on 30 June.\n"
    "The rent is 700 euros a month, and is due on the first.\n"
    "Either side may give notice three months before.\n",
    "insurance.md": "# Insurance\n\nThe household insurance covers water and fire.\nIts premium is due on 15 March.\n",
    "boiler.txt": "The boiler was serviced on 4 June by Mr. Hill. The next service is in two years.\n",
}


def run(*argv: str, folder: str) -> str:
    colors = {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "PYTHONUTF8": "1", "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "mnemic", *argv]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | colors, capture_output=True, check=True, encoding="utf-8"
    )
    return done.stdout


def main() -> None:
    with TemporaryDirectory() as folder:
        for name, text in FILES.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        run("remember", *FILES, "--memory", "notes.db", folder=folder)
        printed = run("ask", "--memory", "notes.db", QUESTION, folder=folder)
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(f'$ mnemic ask "{QUESTION}"\n{printed.rstrip()}'))
    svg = console.export_svg(title="mnemic ask", theme=DIMMED_MONOKAI)
    # No font from the network: whatever monospace font is there.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    Path(__file__).with_name("ask.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
