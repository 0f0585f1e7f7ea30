"""Lay one piece of a recipe over another."""

from collections.abc import Mapping
from typing import Any

Recipe = dict[str, Any]


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Recipe:
    """``base`` with what ``over`` changes; a part of another kind replaces the whole part."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            same = value.get("kind", old.get("kind")) == old.get("kind")
            merged[key] = merge(old, value) if same else dict(value)
        else:
            merged[key] = value
    return merged
