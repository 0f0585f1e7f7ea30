"""Where words go: results to standard output, everything else to standard error."""

import json
import sys
import unicodedata
from typing import Any

from rich.console import Console

WIDTH = 110  # columns of tables that go into a file or a pipe
CUT = 240  # characters of a passage on the screen


def out() -> Console:
    """Standard output, for results."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDTH)


def err() -> Console:
    """Standard error, for progress and warnings."""
    return Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """A line for the person who watches."""
    print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Not an error, but it must be said."""
    say(f"warning: {text}")


def visible(text: str) -> str:
    """A stranger's text without control characters, which would command the terminal."""
    return "".join(" " if unicodedata.category(one) == "Cc" else one for one in text)


def cut(text: str, most: int = CUT, tail: int = 0) -> str:
    """A long text's beginning, and as much of its end as ``tail`` says; … for what is left out."""
    if len(text) <= most:
        return text
    return f"{text[: most - tail]}…{text[len(text) - tail :]}"


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=False, default=str))


def percent(error: float | None) -> str:
    return "-" if error is None else f"{error:.1f} %"


def figure(name: str, value: float) -> str:
    """One figure of a set of texts: percent, but for losses."""
    return f"{value:.3f}" if name == "loss" else f"{value:.1f}"


def duration(seconds: float) -> str:
    """A time in words: 4.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size(count: int) -> str:
    """A number of bytes in words."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count = count / 1000  # type: ignore[assignment]
    return f"{count:.1f} GB"
