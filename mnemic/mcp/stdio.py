"""The stdio transport: one JSON message per line, on standard input and output.

Unlike the SDK's own, it ends at once while it waits for input, bounds the size of a message,
answers lines that are no messages, and answers what was asked before the input ended.
"""

import json
import signal
from contextlib import suppress
from functools import partial
from io import FileIO
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

import anyio
from anyio import from_thread
from anyio.abc import TaskStatus
from anyio.lowlevel import EventLoopToken, current_token
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.jsonrpc import JSONRPCMessage, jsonrpc_message_adapter

MAX_MESSAGE_BYTES = 4 << 20  # as over HTTP
GRACE_S = 5.0  # for calls in progress after the end of the input
FLUSH_S = 2.0  # for a client that reads slowly, at the end


class MessageError(ValueError):
    """A line that is no message, with its JSON-RPC error."""

    def __init__(self, code: int, message: str, request_id: str | int | None = None) -> None:
        super().__init__(message)
        self.answer = JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))


async def serve_stdio(server: Server[Any], source: BinaryIO, sink: FileIO) -> None:
    """Serve one client until the input ends, or until nobody reads the output.

    Two daemon threads wait for the files, so that neither can keep the process from ending.
    SIGINT cancels the scope, not the task: a task can lose its one cancellation between two waits.

    Raises:
        KeyboardInterrupt: if SIGINT ended it.
    """
    transport = StdioTransport()
    async with anyio.create_task_group() as group:
        await group.start(transport.cancel_at_sigint, group.cancel_scope)
        await transport.serve(server, source, sink)
        group.cancel_scope.cancel()  # SIGINT is not waited for any more
    if transport.is_interrupted:
        raise KeyboardInterrupt


class StdioTransport:
    """The messages between one client and the server."""

    def __init__(self) -> None:
        self.out_lines: SimpleQueue[bytes | None] = SimpleQueue()
        self.pending: set[str | int] = set()  # ids of requests without an answer
        self.has_ended, self.is_idle = False, anyio.Event()
        self.is_interrupted = False

    async def serve(self, server: Server[Any], source: BinaryIO, sink: FileIO) -> None:
        """Pass messages between the files and the server until one of them ends."""
        requests, server_input = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        server_output, answers = anyio.create_memory_object_stream[SessionMessage](0)
        line_feed, lines = anyio.create_memory_object_stream[bytes](0)
        scope, token = anyio.CancelScope(), current_token()
        stop = partial(from_thread.run_sync, scope.cancel, token=token)
        writer = Thread(target=write_lines, args=(self.out_lines, sink, stop), daemon=True)
        writer.start()
        Thread(target=feed_lines, args=(source, line_feed, token), daemon=True).start()
        try:
            with scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(self.receive, lines, requests)
                    group.start_soon(self.send, answers)
                    await server.run(server_input, server_output, server.create_initialization_options())
        finally:
            self.out_lines.put(None)
            writer.join(FLUSH_S)

    async def cancel_at_sigint(
        self, scope: anyio.CancelScope, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Cancel the scope when SIGINT comes."""
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                self.is_interrupted = True
                scope.cancel()

    async def receive(
        self, lines: MemoryObjectReceiveStream[bytes], requests: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        """Pass messages to the server; after the last one, wait for the answers."""
        async with lines, requests:
            async for line in lines:
                try:
                    message = parse_line(line)
                except MessageError as error:
                    self.write(error.answer)
                    continue
                if isinstance(message, JSONRPCRequest):
                    self.pending.add(message.id)
                elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                    request_id = (message.params or {}).get("requestId")
                    self.pending -= {request_id} if isinstance(request_id, str | int) else set()
                await requests.send(SessionMessage(message))
            self.has_ended = True
            if self.pending:
                with anyio.move_on_after(GRACE_S):
                    await self.is_idle.wait()

    async def send(self, answers: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write the messages of the server."""
        async with answers:
            async for answer in answers:
                self.write(answer.message)
                if isinstance(answer.message, JSONRPCResponse | JSONRPCError) and answer.message.id is not None:
                    self.pending.discard(answer.message.id)
                if self.has_ended and not self.pending:
                    self.is_idle.set()

    def write(self, message: JSONRPCMessage) -> None:
        """Queue a message for the thread that writes."""
        self.out_lines.put(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


def parse_line(line: bytes) -> JSONRPCMessage:
    """Parse a line; raise ``MessageError`` if it is no message."""
    if len(line) > MAX_MESSAGE_BYTES:
        raise MessageError(INVALID_REQUEST, f"a message has at most {MAX_MESSAGE_BYTES} bytes")
    with suppress(ValueError):
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        # The SDK takes a request with a wrong id for a notification, and would not answer it.
        if not isinstance(message, JSONRPCNotification) or b'"id"' not in line or "id" not in json.loads(line):
            return message
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise MessageError(PARSE_ERROR, "this line is no JSON") from None
    request_id = value.get("id") if isinstance(value, dict) else None
    is_valid_id = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    reason = 'a message is an object with "jsonrpc": "2.0", a method, and for a request an id'
    raise MessageError(INVALID_REQUEST, reason, request_id if is_valid_id else None)


def feed_lines(source: BinaryIO, line_feed: MemoryObjectSendStream[bytes], token: EventLoopToken) -> None:
    """Read lines in a thread and pass them on.

    Empty ones are left out; of one that is too long only the beginning is passed on.
    """
    try:
        while line := source.readline(MAX_MESSAGE_BYTES + 1):
            rest = line
            while len(line) > MAX_MESSAGE_BYTES and rest and not rest.endswith(b"\n"):
                rest = source.readline(MAX_MESSAGE_BYTES)
            if line.strip() or len(line) > MAX_MESSAGE_BYTES:
                from_thread.run(line_feed.send, line, token=token)
        from_thread.run(line_feed.aclose, token=token)
    except (anyio.RunFinishedError, anyio.BrokenResourceError):
        pass  # the server has ended


def write_lines(out_lines: "SimpleQueue[bytes | None]", sink: FileIO, stop: partial[None]) -> None:
    """Write lines in a thread; stop the server if nobody reads them."""
    try:
        while (line := out_lines.get()) is not None:
            rest = memoryview(line)
            while rest:
                rest = rest[sink.write(rest) :]
    except OSError:
        with suppress(anyio.RunFinishedError):
            stop()
