"""Format numbers and texts for a person."""

import unicodedata

MAX_PASSAGE_CHARS = 240  # printed per passage


def sanitize(text: str) -> str:
    """Replace control characters of a foreign text, which could control the terminal."""
    return "".join(" " if unicodedata.category(character) == "Cc" else character for character in text)


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


def format_bytes(count: float) -> str:
    """Format a number of bytes with a unit: 12 B, 3.4 MB."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
