"""Read files that other programs wrote."""

import json
from pathlib import Path
from typing import Any


def read_json(path: Path, *, error: type[ValueError] = ValueError, hint: str = "") -> dict[str, Any]:
    """Read a JSON object from a file, or raise ``error``.

    ``hint`` ends the message about a file that is missing.
    """
    if not path.is_file():
        raise error(f"{path} is missing{hint}")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as problem:
        raise error(f"{path} is no valid JSON: {problem}") from None
    if not isinstance(value, dict):
        raise error(f"{path} holds a {type(value).__name__}; expected a JSON object")
    return value
