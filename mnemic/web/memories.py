"""The memories that a server has, by names that are no paths."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

from mnemic.store import Memory, StoreError
from mnemic.store.locate import find_home_folder, list_named_memories
from mnemic.store.postgres.address import Address
from mnemic.web.files import ServedFiles, find_files_folder
from mnemic.web.jobs.pools import WriteTurns
from mnemic.web.problems import Problem

NAME = re.compile(r"[A-Za-z0-9][\w-]{0,59}")


class ServedMemory:
    """A memory with its files, and the turns of those who write to it."""

    def __init__(self, name: str, memory: Memory, folders: Mapping[str, Path]) -> None:
        self.name, self.memory = name, memory
        self.files = ServedFiles(find_files_folder(memory.path), folders)
        self.turns = WriteTurns()
        self.is_current: bool | None = None  # None: not known yet

    def is_model_current(self) -> bool:
        """Return whether questions can use the vectors of the memory."""
        if self.is_current is None:
            try:
                self.is_current = self.memory.embedder is not None or self.memory.store.get_model() is None
            except StoreError:
                self.is_current = False
        return self.is_current


class MemoryTable:
    """The memories of a server; with ``is_open``, also all named memories of the user."""

    def __init__(
        self, addresses: Sequence[str | None], folders: Mapping[str, Path], *, embedder: str | None, reader: str | None
    ) -> None:
        self.folders, self.is_open = folders, not addresses
        self.embedder, self.reader = embedder, reader
        self.lock, self.memories = Lock(), dict[str, ServedMemory]()
        for address in addresses or (None,):
            self.add(self.open(address))
        self.default = next(iter(self.memories))

    def open(self, address: str | Path | None) -> Memory:
        """Open a memory with the models of this server."""
        return Memory(address, embedder=self.embedder, reader=self.reader)

    def add(self, memory: Memory) -> ServedMemory:
        """Serve a memory by its name."""
        base = memory.path.schema if isinstance(memory.path, Address) else memory.path.stem
        base = re.sub(r"[^\w-]+", "-", base).strip("-") or "memory"
        name, number = base, 2
        while name in self.memories:
            name, number = f"{base}-{number}", number + 1
        self.memories[name] = ServedMemory(name, memory, self.folders)
        return self.memories[name]

    def list_all(self) -> list[ServedMemory]:
        """List the memories, the default one first."""
        with self.lock:
            if self.is_open:
                paths = {served.memory.path for served in self.memories.values()}
                for path in list_named_memories().values():
                    if path not in paths:
                        self.add(self.open(path))
            return list(self.memories.values())

    def get(self, name: str) -> ServedMemory:
        """Return a memory by its name, or raise a problem."""
        if (served := self.memories.get(name)) is not None:
            return served
        memories = {served.name: served for served in self.list_all()}
        if name not in memories:
            raise Problem(404, f"There is no memory {name[:80]!r}; there are: {', '.join(memories)}.")
        return memories[name]

    def create(self, name: str) -> ServedMemory:
        """Create a memory among the user's named memories."""
        if not NAME.fullmatch(name):
            raise Problem(422, f"A memory's name has up to 60 letters, digits, - and _, unlike {name[:80]!r}.")
        path = find_home_folder() / f"{name}.db"
        names = {served.name for served in self.list_all()}
        if name in names or path.exists():
            raise Problem(409, f"There is a memory {name!r} already; choose another name.")
        memory = self.open(path)
        memory.create_if_missing()
        with self.lock:
            return self.add(memory)

    def close(self) -> None:
        """Close all memories."""
        for served in self.memories.values():
            served.memory.close()
