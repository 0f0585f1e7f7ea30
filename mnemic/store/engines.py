"""The storage engines, and which of them a memory needs."""

from collections.abc import Callable
from pathlib import Path

from mnemic.store.postgres.address import Address
from mnemic.store.postgres.store import PostgresStore
from mnemic.store.relational import Store, ignore_notice
from mnemic.store.sqlite.store import SQLiteStore

ENGINES: dict[str, Callable[..., Store]] = {"sqlite": SQLiteStore, "postgresql": PostgresStore}


def open_store(location: Path | Address, *, create: bool, on_notice: Callable[[str], object] = ignore_notice) -> Store:
    """Open the storage engine of a path or an address."""
    store = ENGINES["postgresql" if isinstance(location, Address) else "sqlite"](location, create=create)
    store.on_notice = on_notice
    return store
