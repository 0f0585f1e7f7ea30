"""Memories that are served to the SDK's own client, in this process."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import jsonschema
from mcp import Client
from mcp_types import CallToolResult, TextContent

from mnemic import Memory
from mnemic.mcp.audit import AuditLog
from mnemic.mcp.server import MemoryService
from mnemic.store.contract import PassageEmbedding
from mnemic.store.retrieve.embedders import HashedNgrams


class GatedEmbedder(HashedNgrams):
    """An embedder that waits, once its gate is closed, before it embeds passages."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.waiting = Event(), Event()
        self.gate.set()
        self.calls = 0

    def embed_passages(self, texts: Sequence[str]) -> list[PassageEmbedding]:
        self.calls += 1
        if not self.gate.is_set():
            self.waiting.set()
            assert self.gate.wait(30)
        return super().embed_passages(texts)


class Assistant:
    """A client with shorter words for its calls."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.schemas: dict[str, Any] = {}

    async def call(self, name: str, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(name, arguments)

    async def use(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return its structured result, which its schema allows."""
        if not self.schemas:
            self.schemas = {tool.name: tool.output_schema for tool in (await self.client.list_tools()).tools}
        result = await self.call(name, **arguments)
        assert not result.is_error, result.content
        jsonschema.validate(result.structured_content, self.schemas[name])
        return result.structured_content

    async def refused(self, name: str, **arguments: Any) -> str:
        """Call a tool that refuses; return what it says."""
        result = await self.call(name, **arguments)
        assert result.is_error, result.content
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@asynccontextmanager
async def serve(
    folder: Path, *folders: Path, read_only: bool = False, embedder: HashedNgrams | None = None, **kwargs: Any
) -> AsyncIterator[Assistant]:
    """Serve a memory of a folder, with its log, to a client in this process."""
    with Memory(folder / "memory.db", embedder=embedder or HashedNgrams(), reader=None) as memory:
        log = AuditLog(folder / "calls.log")
        service = MemoryService(memory, [path.resolve() for path in folders], read_only=read_only, log=log)
        with anyio.fail_after(60):
            async with Client(service.build_server(), mode="legacy", **kwargs) as client:
                yield Assistant(client)
