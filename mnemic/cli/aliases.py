"""Translate old spellings of commands, with a note on the new one."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from mnemic.cli.render.console import print_status

# The value of the old option and the other words → the words after the new command.
Rewrite: TypeAlias = Callable[[str, list[str]], list[str]]
FILE = "FILE"  # stands for a file that exists, where others name an option
VALUE_OPTIONS = ("--plot", "--layers", "--compare")  # of commands with such a file: the next word is theirs


def name_targets(path: str, words: list[str]) -> list[str]:
    """Turn the targets of ``forget --state`` into ``--text``, or ``--from`` and ``--to``."""
    options = [path]
    for word in words:
        span = re.fullmatch(r"(\d+)-(\d+)", word)
        options += ["--from", span[1], "--to", span[2]] if span else [word] if word[:1] == "-" else ["--text", word]
    return options


def show_all_slots(path: str, words: list[str]) -> list[str]:
    return [path, *("--limit=0" if word == "--all" else word for word in words)]


# Old command and what it is known by, "" for nothing → new command, and how its words change.
SPELLINGS: dict[tuple[str, str], tuple[str, Rewrite]] = {
    ("read", "--state"): ("text read", lambda path, words: [path, *words, "--json"]),
    ("read", ""): ("predict", lambda _, words: words),
    ("ask", "--state"): ("text ask", lambda path, words: [path, *words]),
    ("ask", "--model"): ("story ask", lambda model, words: ["--model", model, *words]),
    ("forget", "--state"): ("text forget", name_targets),
    ("inspect", FILE): ("text show", show_all_slots),
    ("evaluate", "--model"): ("evaluate DIR", lambda model, words: [model, *words]),
    ("update", "--note"): ("update ID TEXT", lambda text, words: [*words, text]),
    ("search", "--most"): ("search --limit", lambda limit, words: ["--limit", limit, *words]),
    ("memories", ""): ("list", lambda _, words: words),
    ("prepare", ""): ("data sequences", lambda _, words: words),
}


def translate_argv(argv: Sequence[str]) -> list[str]:
    """Translate ``help COMMAND`` and old spellings; a note names the new one."""
    if argv[:1] == ["--debug"]:
        return ["--debug", *translate_argv(argv[1:])]
    if argv[:1] == ["help"]:
        return [*argv[1:], "--help"]
    for (command, key), (replacement, rewrite) in SPELLINGS.items():
        words = list(argv[1:])
        if argv[:1] != [command] or (value := pop_value(words, key)) is None:
            continue
        print_status(f"note: `mnemic {f'{command} {key}'.strip()}` is now `mnemic {replacement}`")
        return [*(word for word in replacement.split() if word.isalpha() and word.islower()), *rewrite(value, words)]
    return list(argv)


def pop_value(words: list[str], key: str) -> str | None:
    """Remove an option with its value, or a file, from words; None if absent."""
    for index, word in enumerate(words):
        if word == "--":
            break
        is_value = index > 0 and words[index - 1] in VALUE_OPTIONS
        if key == FILE and not is_value and Path(word).is_file():
            return words.pop(index)
        if word.startswith(f"{key}=") and key:
            return words.pop(index).removeprefix(f"{key}=")
        if word == key and index + 1 < len(words):
            words.pop(index)
            return words.pop(index)
    return None if key else ""
