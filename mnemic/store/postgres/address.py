"""The address of a memory on a PostgreSQL server: a URL and a name."""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from mnemic.store.contract import StoreError

URL_PREFIXES = ("postgresql://", "postgres://")
DEFAULT_NAME = "default"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
# Greedy up to the last @: no part of a mistyped password is displayed.
_TRUST = re.compile(r"(?<=[?&])trust=([^&]*)&?")
_PASSWORD = re.compile(r"(://[^:/?#@]*):.*@|(?<=[?&])password=[^&]*&?")


@dataclass(frozen=True)
class Address:
    """An address ``postgresql://user@host:5432/database#name``; printed without its password."""

    url: str = field(repr=False)  # in the form that libpq takes
    memory: str = DEFAULT_NAME
    trusted_roles: tuple[str, ...] = ()  # who may own the schema, besides the user

    def __str__(self) -> str:
        url = _PASSWORD.sub(lambda match: f"{match[1]}@" if match[1] else "", self.url)
        return url.rstrip("?&") + ("" if self.memory == DEFAULT_NAME else f"#{self.memory}")

    @property
    def schema(self) -> str:
        """The schema of the memory; its own, so that it can be granted or dropped."""
        return f"mnemic_{self.memory}"


def is_address(text: str) -> bool:
    """Return whether a text is the URL of a PostgreSQL server."""
    return text.startswith(URL_PREFIXES)


def parse_address(text: str) -> Address:
    """Split ``postgresql://…?trust=role#name`` into URL, name and trusted roles."""
    url, _, name = text.partition("#")
    roles = tuple(unquote(role) for value in _TRUST.findall(url) for role in value.split(",") if role)
    url = _TRUST.sub("", url).rstrip("?&") if roles else url
    if name and not _NAME.fullmatch(name):
        raise StoreError(f"a memory's name on a server has small letters, digits, - and _, at most 40: {name!r}")
    return Address(url, name or DEFAULT_NAME, roles)
