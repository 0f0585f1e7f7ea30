"""Save the finished rows of a table as JSON lines; describe what measured them."""

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from mnemic import __version__
from mnemic.files import write_text


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a file; skip lines that were cut short."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def append_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Append rows to a file, never to a line that was cut short."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(f"\n{json.dumps(row)}\n" for row in rows), append=True)


def describe_hardware(device: torch.device) -> str:
    """Describe a device: the GPU's name, or the CPU and its number of threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()}), threads: {torch.get_num_threads()}"


def describe_versions() -> dict[str, str]:
    """Return the versions of mnemic, PyTorch and Python."""
    return {"mnemic": __version__, "torch": torch.__version__, "python": platform.python_version()}
