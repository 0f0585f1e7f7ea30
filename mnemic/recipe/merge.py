"""Merge two recipes."""

from collections.abc import Mapping
from typing import Any

Recipe = dict[str, Any]


def merge_recipes(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Recipe:
    """Merge ``changes`` into ``base``; a table of another ``kind`` replaces the old one."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            same = value.get("kind", old.get("kind")) == old.get("kind")
            merged[key] = merge_recipes(old, value) if same else dict(value)
        else:
            merged[key] = value
    return merged
