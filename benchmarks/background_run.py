"""Run a benchmark in the background on a machine that is reached call by call."""

import argparse
import subprocess
import sys
import time
from pathlib import Path
from shutil import which


def report(args: argparse.Namespace, text: str) -> None:
    """Append a line to out/log."""
    line = f"{time.strftime('%T')} {text}"
    print(line, flush=True)
    with (args.out / "log").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def start_in_background(script: str, out: Path) -> None:
    """Start ``run`` of a script in a session of its own, which outlives this command."""
    out.mkdir(parents=True, exist_ok=True)
    if which("nvidia-cuda-mps-control"):  # so that processes share the GPU
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False, capture_output=True)
    options = sys.argv[sys.argv.index("start") + 1 :]
    with (out / "output").open("w", encoding="utf-8") as file:
        subprocess.Popen(
            [sys.executable, script, "run", *options], stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
