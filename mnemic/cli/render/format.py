"""Format numbers and texts for a person."""

import json
import re
from typing import Any

MAX_PASSAGE_CHARS = 240  # printed per passage
# What a terminal obeys instead of printing it, or what makes it print other than what is there:
# control characters (C0, DEL, C1), changes of direction, ends of lines, invisible tags, and halves
# of characters, which stand for bytes of a file's name.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_BLANK = frozenset("\t\n\v\f\r\x85\u2028\u2029")


def sanitize(text: str) -> str:
    """Make a foreign text safe for a terminal, with escapes such as \\x1b."""
    return _UNSAFE.sub(lambda match: " " if match[0] in _BLANK else ascii(match[0])[1:-1], text)


def escape_blanks(name: str) -> str:
    """Escape tabs and line ends in the name of a file, such as \\n."""
    return "".join(ascii(char)[1:-1] if char in _BLANK else char for char in name)


def format_json(value: Any, indent: int | None = None) -> str:
    """Format a value as JSON whose texts are safe for a terminal: equal, but escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    # Outside of strings there are no such characters, but the line ends of the indent.
    return _UNSAFE.sub(lambda match: match[0] if match[0] == "\n" else json.dumps(match[0])[1:-1], text)


def join_lines(text: str) -> str:
    """Join the lines of a quotation into one, without control characters."""
    return sanitize(" ".join(text.split()))


def truncate(text: str, max_chars: int = MAX_PASSAGE_CHARS, tail_chars: int = 0) -> str:
    """Truncate a long text with …, keeping its last ``tail_chars`` characters."""
    if len(text) <= max_chars:
        return text
    return f"{text[: max_chars - tail_chars]}…{text[len(text) - tail_chars :]}"


def shorten_start(text: str, max_chars: int) -> str:
    """Shorten a text, such as a path, at its beginning: its end tells more."""
    return text if len(text) <= max_chars else f"…{text[len(text) - max_chars + 1 :]}"


def format_percent(error: float | None) -> str:
    return "-" if error is None else f"{error:.1f} %"


def format_metric(name: str, value: float) -> str:
    """Format a metric: percent with one decimal, losses and small perplexities with three."""
    return f"{value:.3f}" if name == "loss" or (name == "perplexity" and value < 10) else f"{value:.1f}"


def format_duration(seconds: float) -> str:
    """Format a duration: 4.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, remainder = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remainder} s"
    return f"{minutes // 60} h {minutes % 60} min"


def format_bytes(count: float) -> str:
    """Format a number of bytes with a unit: 12 B, 3.4 MB."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
