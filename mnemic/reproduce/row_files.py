"""Files of finished rows, a JSON object per line, so that an interrupted table resumes."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mnemic.files import write_text


def load_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Load the rows of a file; skip lines that were cut short."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def append_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Append finished rows, never to a line that was cut short."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(f"\n{json.dumps(row)}\n" for row in rows), append=True)
