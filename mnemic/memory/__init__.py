"""G and O of the frame: memories that are written and read, one file a memory network."""

from collections.abc import Callable
from typing import Any

from mnemic.memory.contract import Memory as Memory
from mnemic.memory.contract import Reading as Reading
from mnemic.memory.contract import Written as Written
from mnemic.memory.memn2n import MemN2N

MEMORIES: dict[str, Callable[..., Any]] = {
    "memn2n": MemN2N,
}
