"""Print results to standard output, everything else to standard error; format numbers."""

import json
import sys
import unicodedata
from typing import Any

from rich.console import Console

PIPE_WIDTH = 110  # columns of tables in a file or a pipe
MAX_PASSAGE_CHARS = 240  # printed per passage


def get_stdout() -> Console:
    """Return a console on standard output, for results."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def get_stderr() -> Console:
    """Return a console on standard error, for progress and warnings."""
    return Console(stderr=True, highlight=False)


def print_status(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr, flush=True)


def print_warning(text: str) -> None:
    """Print a warning to standard error."""
    print_status(f"warning: {text}")


def sanitize(text: str) -> str:
    """Replace control characters of a foreign text, which could control the terminal."""
    return "".join(" " if unicodedata.category(character) == "Cc" else character for character in text)


def truncate(text: str, max_chars: int = MAX_PASSAGE_CHARS, tail_chars: int = 0) -> str:
    """Truncate a long text with …, keeping its last ``tail_chars`` characters."""
    if len(text) <= max_chars:
        return text
    return f"{text[: max_chars - tail_chars]}…{text[len(text) - tail_chars :]}"


def print_json(value: Any) -> None:
    """Print a value as JSON to standard output."""
    print(json.dumps(value, indent=1, ensure_ascii=False, default=str))


def format_percent(error: float | None) -> str:
    return "-" if error is None else f"{error:.1f} %"


def format_metric(name: str, value: float) -> str:
    """Format a metric: percent with one decimal, losses with three."""
    return f"{value:.3f}" if name == "loss" else f"{value:.1f}"


def format_duration(seconds: float) -> str:
    """Format a duration: 4.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, remainder = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remainder} s"
    return f"{minutes // 60} h {minutes % 60} min"


def format_bytes(count: int) -> str:
    """Format a number of bytes with a unit: 12 B, 3.4 MB."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count = count / 1000  # type: ignore[assignment]
    return f"{count:.1f} GB"
