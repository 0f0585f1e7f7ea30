"""The routes of memories."""

from fastapi import APIRouter

from mnemic.web.describe import describe_memory
from mnemic.web.problems import document_problems
from mnemic.web.schemas.documents import MemoryInfo, MemoryList, NewMemory
from mnemic.web.server import Served, Server, WebServer

router = APIRouter(prefix="/v1/memories", tags=["memories"])


def list_infos(server: WebServer) -> MemoryList:
    """Describe all memories."""
    default = server.memories.default
    rows = [describe_memory(served, is_default=served.name == default) for served in server.memories.list_all()]
    return MemoryList(memories=rows)


@router.get("", responses=document_problems(429, 504))
async def list_memories(server: Server) -> MemoryList:
    """List the memories of this server."""
    return await server.readers.run(lambda: list_infos(server))


@router.post("", status_code=201, responses=document_problems(409, 422, 429, 504))
async def create_memory(body: NewMemory, server: Server) -> MemoryInfo:
    """Create a memory."""

    def create() -> MemoryInfo:
        return describe_memory(server.memories.create(body.name), is_default=False)

    return await server.writers.run(create)


@router.get("/{m}", responses=document_problems(404, 422, 429, 504))
async def get_memory_info(served: Served, server: Server) -> MemoryInfo:
    """Describe a memory."""
    is_default = served.name == server.memories.default
    return await server.readers.run(lambda: describe_memory(served, is_default=is_default))
