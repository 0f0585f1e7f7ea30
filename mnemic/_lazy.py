"""Load the public names of a package when they are first used.

This is what Python imports before a command can catch Ctrl-C, so it imports next to nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # as typing's

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's ``__getattr__`` and ``__dir__`` from the modules its names live in."""

    def get(name: str) -> Any:
        for home, names in homes.items():
            if name in names:
                value = getattr(import_module(home), name)
                setattr(sys.modules[package], name, value)  # the next use does not come here
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def list_names() -> list[str]:
        return sorted({name for names in homes.values() for name in names} | {"__version__"})

    return get, list_names
