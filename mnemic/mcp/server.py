"""The server of a memory: answers requests at the same time, each in a thread.

Reading calls run side by side; those that write take turns, so that they cannot use up the threads.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import CapacityLimiter, from_thread, to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
)
from pydantic import BaseModel, ValidationError

from mnemic import __version__
from mnemic.mcp.arguments import Arguments, describe_mistakes
from mnemic.mcp.audit import AuditLog
from mnemic.mcp.resources import TEMPLATES, list_resources, read_resource
from mnemic.mcp.results import clean_text, to_payload, to_text
from mnemic.mcp.tools import INSTRUCTIONS, MemoryTool, OnProgress, build_tools

if TYPE_CHECKING:
    from mnemic.store import Memory

NUM_READERS = 4  # reading calls at the same time
PROGRESS_INTERVAL_S = 0.25  # at most one notification per interval
Context = ServerRequestContext[Any, Any]
Outcome = TypeVar("Outcome")

logger = logging.getLogger(__name__)


class CallError(Exception):
    """A call that failed, with the message for the client."""


class MemoryService:
    """The requests of a memory, for every transport."""

    def __init__(
        self, memory: "Memory", folders: Sequence[Path] = (), *, read_only: bool = False, log: AuditLog | None = None
    ) -> None:
        self.memory, self.log = memory, log
        self.tools = build_tools(folders, read_only=read_only)
        self.readers, self.writers = CapacityLimiter(NUM_READERS), CapacityLimiter(1)

    def build_server(self) -> Server[Any]:
        """Build the SDK's server of these requests."""
        return Server(
            "mnemic",
            title="mnemic, a memory of documents",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
        )

    async def list_tools(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        """List the tools."""
        return ListToolsResult(tools=[tool.descriptor for tool in self.tools.values()])

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool and return its result, or its error as a result.

        A result, unlike a protocol error, is visible to the model, which can then correct its call.
        """
        tool, values = self.tools.get(params.name), params.arguments or {}
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"no tool {params.name[:80]!r}; there are {', '.join(self.tools)}")
        on_progress = make_on_progress(context)
        limiter = self.readers if tool.hints.read_only_hint else self.writers

        def run_tool() -> BaseModel:
            return tool.action(self.memory, parse_arguments(tool, values), on_progress)

        try:
            result = await self.run_call(tool.name, values, run_tool, limiter)
        except CallError as error:
            message = TextContent(text=clean_text(f"error: {error}"))
            return CallToolResult(content=[message], is_error=True)
        return CallToolResult(content=[TextContent(text=to_text(result))], structured_content=to_payload(result))

    async def list_resources(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """List a page of the documents."""
        cursor = params.cursor if params else None
        return await self.serve_resource(
            "resources/list", {"cursor": cursor} if cursor else {}, lambda: list_resources(self.memory, cursor)
        )

    async def list_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """List the form of the documents' addresses."""
        return ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Read the text of a document."""
        uri = str(params.uri)
        return await self.serve_resource("resources/read", {"uri": uri}, lambda: read_resource(self.memory, uri))

    async def serve_resource(self, method: str, values: Mapping[str, Any], work: Callable[[], Outcome]) -> Outcome:
        """Do the work of a request about resources; its mistakes are protocol errors."""
        try:
            return await self.run_call(method, values, work, self.readers)
        except CallError as error:
            raise MCPError(INVALID_PARAMS, clean_text(str(error))) from None

    async def run_call(
        self, name: str, values: Mapping[str, Any], work: Callable[[], Outcome], limiter: CapacityLimiter
    ) -> Outcome:
        """Run a call in a thread and log it; raise ``CallError`` if it fails."""
        start, outcome = time.monotonic(), "canceled"
        try:
            result = await to_thread.run_sync(work, limiter=limiter)
            outcome = "done"
            return result
        except (ValueError, OSError) as error:
            outcome = str(error)
            raise CallError(outcome) from None
        except Exception as error:  # a bug ends the call, not the server
            logger.exception("a call of %s failed", name)
            outcome = f"a fault of mnemic: {error!r}"
            raise CallError(outcome) from None
        finally:
            self.write_log(name, values, outcome, time.monotonic() - start)

    def write_log(self, name: str, values: Mapping[str, Any], outcome: str, seconds: float) -> None:
        """Log a call; report a log that cannot be written any more."""
        if self.log is None:
            return
        try:
            self.log.write(name, values, outcome, seconds)
        except (ValueError, OSError) as error:
            logger.error("a call of %s is not in the log: %s", name, error)


def parse_arguments(tool: MemoryTool, values: Mapping[str, Any]) -> Arguments:
    """Check the arguments of a call; raise ``ValueError`` with all mistakes."""
    try:
        return tool.arguments.model_validate(values)
    except ValidationError as error:
        raise ValueError(describe_mistakes(error, tool.arguments)) from None


def make_on_progress(context: Context) -> OnProgress:
    """Make a function for a working thread that reports progress or ends a canceled call."""
    last_time, last_done = -PROGRESS_INTERVAL_S, -1.0

    def on_progress(done: float, total: float, message: str) -> None:
        nonlocal last_time, last_done
        from_thread.check_cancelled()
        now = time.monotonic()
        if done > last_done and now - last_time >= PROGRESS_INTERVAL_S:
            last_time, last_done = now, done
            from_thread.run(context.session.report_progress, done, total, clean_text(message))

    return on_progress
