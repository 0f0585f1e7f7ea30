"""Run a benchmark in the background on a machine that is reached call by call.

What it needs travels as archives in pieces, each in a folder of its own.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path
from shutil import which

from compress_weights import write_atomically


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


def split_file(archive: Path, carry: Path, name: str, piece_bytes: int) -> None:
    """Split an archive into pieces, each in a folder of its own; the last one is marked."""
    content = archive.read_bytes()
    for number, start in enumerate(range(0, len(content), piece_bytes)):
        suffix = ".last" if start + piece_bytes >= len(content) else ""
        write_atomically(carry / f"{name}-{number}" / f"{name}.{number}{suffix}", content[start : start + piece_bytes])
    archive.unlink()


def join_pieces(carry: Path, name: str) -> bytes | None:
    """Join the pieces of an archive; None if some are not there yet."""
    last = list(carry.glob(f"{name}-*/{name}.*.last"))
    pieces = [path for path in carry.glob(f"{name}-*/{name}.*") if not path.name.startswith(".")]
    if not last or len(pieces) <= int(last[0].name.split(".")[1]):
        return None
    pieces.sort(key=lambda path: int(path.name.split(".")[1]))
    return b"".join(path.read_bytes() for path in pieces)
