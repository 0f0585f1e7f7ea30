"""Where a memory on a PostgreSQL server is: the server's address, and the memory's name there."""

import re
from dataclasses import dataclass, field

from mnemic.store.contract import StoreError

STARTS = ("postgresql://", "postgres://")
USUAL = "default"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
# Greedy up to the last @: whatever a mistyped password has in it is not shown.
_PASSWORD = re.compile(r"(://[^:/?#@]*):.*@|(?<=[?&])password=[^&]*&?")


@dataclass(frozen=True)
class Address:
    """``postgresql://user@host:5432/database#name``; shown without its password."""

    url: str = field(repr=False)  # as PostgreSQL's own programs take it
    memory: str = USUAL

    def __str__(self) -> str:
        shown = _PASSWORD.sub(lambda found: f"{found[1]}@" if found[1] else "", self.url)
        return shown.rstrip("?&") + ("" if self.memory == USUAL else f"#{self.memory}")

    @property
    def schema(self) -> str:
        """Each memory has a schema of its own, so that it can be granted, moved and dropped."""
        return f"mnemic_{self.memory}"


def is_address(text: str) -> bool:
    return text.startswith(STARTS)


def address_of(text: str) -> Address:
    url, _, name = text.partition("#")
    if name and not _NAME.fullmatch(name):
        raise StoreError(
            f"a memory's name on a server has small letters, digits, - and _, at most 40: {name!r}"
        )
    return Address(url, name or USUAL)
