"""A disk that fails, and kills in the middle of a change: nothing is lost or there by half."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HELPERS = Path(__file__).parents[1] / "helpers"
KILL = "kill"


def try_faults(folder: Path, every: int, *verbs: str) -> dict[str, int]:
    """Let every Nth change of a file fail; return the number of tries of each fault."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("preloads a library, which needs Linux and a C compiler")
    library = folder / "faults.so"
    source = HELPERS / "disk_faults.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    (folder / "run").mkdir()
    command = [sys.executable, HELPERS / "disk_faults.py", folder / "run", str(every), *verbs]
    environment = os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": str(HELPERS.parents[1])}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    counts: dict[str, int] = {}
    for _, fault, changes, tries in json.loads(result.stdout)["tries"]:
        assert changes >= tries > 0
        counts[fault] = counts.get(fault, 0) + tries
    return counts


def test_a_few_faults(tmp_path: Path) -> None:
    counts = try_faults(tmp_path, 45, "note", "forget")
    assert len(counts) == 4


@pytest.mark.slow
def test_faults_of_every_verb(tmp_path: Path) -> None:
    counts = try_faults(tmp_path, 5)
    kills = counts.pop(KILL)
    print(f"{sum(counts.values())} I/O errors, {kills} kills")
    assert sum(counts.values()) >= 200
    assert kills >= 100
