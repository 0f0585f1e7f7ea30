"""Recipes as text again: the inverse of reading TOML, for the few types a recipe holds."""

import json
import re
from collections.abc import Mapping
from typing import Any

BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_of(recipe: Mapping[str, Any]) -> str:
    """A recipe as TOML: a heading a section, inner tables on one line."""
    blocks = []
    for name, section in recipe.items():
        if isinstance(section, Mapping):
            blocks.append([f"[{key_of(name)}]", *lines(section)])
        else:  # the phases: a list of pieces of recipe
            blocks += [[f"[[{key_of(name)}]]", *lines(part)] for part in section]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def lines(section: Mapping[str, Any]) -> list[str]:
    return [f"{key_of(key)} = {value_of(value)}" for key, value in section.items()]


def value_of(value: Any) -> str:
    """One value as it stands behind the equals sign."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(lines(value))} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_of, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value) if isinstance(value, bool) else repr(value)


def key_of(key: str) -> str:
    return key if BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
