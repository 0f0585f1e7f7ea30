"""Write recipes as TOML: the inverse of reading, for the types a recipe holds."""

import json
import re
from collections.abc import Mapping
from typing import Any

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def format_toml(recipe: Mapping[str, Any]) -> str:
    """Format a recipe as TOML: one heading per section, inner tables on one line."""
    blocks = []
    for name, section in recipe.items():
        if isinstance(section, Mapping):
            blocks.append([f"[{format_key(name)}]", *format_entries(section)])
        else:  # phases: a list of partial recipes
            blocks += [[f"[[{format_key(name)}]]", *format_entries(phase)] for phase in section]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def format_entries(section: Mapping[str, Any]) -> list[str]:
    """Format each key and value of a table as ``key = value``."""
    return [f"{format_key(key)} = {format_value(value)}" for key, value in section.items()]


def format_value(value: Any) -> str:
    """Format a value as TOML."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(format_entries(value))} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value) if isinstance(value, bool) else repr(value)


def format_key(key: str) -> str:
    """Format a key as TOML, quoted where it must be."""
    return key if BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
