"""A Model Context Protocol server with tools: JSON-RPC 2.0, one message per line.

A thread receives messages, so that a client can cancel a request while another one runs; the
caller's thread answers the requests one after another, in order. At the end of the input the
pending requests are still answered. See https://modelcontextprotocol.io/specification.
"""

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, BinaryIO, Protocol

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # the newest first
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
MAX_TRACEBACK_CHARS = 2000  # of an internal error, sent to the client

Message = dict[str, Any]
OnProgress = Callable[[float, float, str], None]  # done, total, message; may raise ``CanceledError``


class CanceledError(Exception):
    """Raised in a tool whose request the client canceled."""


class ProtocolError(Exception):
    """An invalid request, with a JSON-RPC error code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Tool(Protocol):
    """A tool that the client may call."""

    @property
    def descriptor(self) -> Message:
        """The name, description and argument schema that `tools/list` returns."""

    def __call__(self, arguments: Mapping[str, Any], on_progress: OnProgress) -> Message:
        """Run the tool; return a JSON object, or raise ``ValueError`` on wrong arguments."""


class ToolServer:
    """Answers the requests of one client."""

    def __init__(self, tools: Mapping[str, Tool], server_info: Message, instructions: str, output: BinaryIO) -> None:
        self.tools, self.server_info, self.instructions, self.output = tools, server_info, instructions, output
        self.lock = Lock()
        self.canceled: set[str | int] = set()
        self.pending: set[str | int] = set()
        self.methods: dict[str, Callable[[Message, str | int], Message]] = {
            "initialize": self.initialize,
            "ping": lambda *_: {},
            "tools/list": lambda *_: {"tools": [tool.descriptor for tool in tools.values()]},
            "tools/call": self.call_tool,
        }

    def serve(self, lines: Iterable[bytes]) -> None:
        """Answer requests until the input ends."""
        queue: SimpleQueue[Message | None] = SimpleQueue()
        Thread(target=self.receive_messages, args=(lines, queue), daemon=True).start()
        while (message := queue.get()) is not None:
            self.answer_request(message)

    def receive_messages(self, lines: Iterable[bytes], queue: "SimpleQueue[Message | None]") -> None:
        """Apply cancellations at once and put requests into the queue."""
        try:
            for message in self.parse_messages(lines):
                params = message.get("params")
                if message.get("method") == "notifications/cancelled" and isinstance(params, dict):
                    with self.lock:
                        self.canceled |= self.pending & {check_request_id(params.get("requestId"))}
                elif "method" in message and "id" in message:  # notifications have no answer
                    with self.lock:
                        self.pending.add(message["id"])
                    queue.put(message)
        finally:
            queue.put(None)

    def parse_messages(self, lines: Iterable[bytes]) -> Iterator[Message]:
        """Parse and yield valid messages; answer invalid ones with an error."""
        for line in lines:
            if not line.strip():
                continue
            try:
                payload = json.loads(line)
            except (ValueError, RecursionError) as error:
                self.send_error(None, PARSE_ERROR, f"this line is no JSON: {error}")
                continue
            for message in payload if isinstance(payload, list) and payload else [payload]:
                if fault := find_fault(message):
                    request_id = message.get("id") if isinstance(message, dict) else None
                    self.send_error(check_request_id(request_id), INVALID_REQUEST, fault)
                else:
                    yield message

    def answer_request(self, message: Message) -> None:
        """Answer a request, unless it is canceled."""
        request_id, method = message["id"], message["method"]
        try:
            if method not in self.methods:
                raise ProtocolError(METHOD_NOT_FOUND, f"no method {method!r}; there are {', '.join(self.methods)}")
            self.raise_if_canceled(request_id)
            result = self.methods[method](message.get("params") or {}, request_id)
            self.raise_if_canceled(request_id)
            self.send_message({"id": request_id, "result": result})
        except CanceledError:
            pass
        except ProtocolError as error:
            self.send_error(request_id, error.code, str(error))
        except Exception as error:  # a bug ends the request, not the server
            trace = "".join(traceback.format_exception(error))[-MAX_TRACEBACK_CHARS:]
            self.send_error(request_id, INTERNAL_ERROR, f"a fault of mnemic: {error!r}", {"traceback": trace})
        with self.lock:
            self.pending.discard(request_id)
            self.canceled.discard(request_id)

    def raise_if_canceled(self, request_id: str | int) -> None:
        """Raise ``CanceledError`` if the client canceled the request."""
        with self.lock:
            if request_id in self.canceled:
                raise CanceledError

    def initialize(self, params: Message, request_id: str | int) -> Message:
        """Answer with the client's protocol version if it is known, else the newest."""
        version = params.get("protocolVersion")
        protocol: Message = {
            "protocolVersion": version if version in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
        }
        return protocol | {"serverInfo": self.server_info, "instructions": self.instructions}

    def call_tool(self, params: Message, request_id: str | int) -> Message:
        """Call a tool and return its result, or its error as a result.

        A result, unlike a protocol error, is visible to the model, which can then correct its call.
        """
        tool = self.tools.get(str(params.get("name")))
        if tool is None:
            raise ProtocolError(INVALID_PARAMS, f"no tool {params.get('name')!r}; there are {', '.join(self.tools)}")
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None

        def on_progress(done: float, total: float, step_message: str) -> None:
            """Raise if the request is canceled; send a progress notification if wanted."""
            self.raise_if_canceled(request_id)
            if token is not None:
                report = {"progressToken": token, "progress": done, "total": total, "message": step_message}
                self.send_message({"method": "notifications/progress", "params": report})

        try:
            result = tool(params.get("arguments") or {}, on_progress)
        except (ValueError, OSError) as error:
            return {"content": [{"type": "text", "text": f"error: {error}"}], "isError": True}
        content = {"type": "text", "text": json.dumps(result, ensure_ascii=False)}
        return {"content": [content], "structuredContent": result, "isError": False}

    def send_error(self, request_id: str | int | None, code: int, message: str, data: Message | None = None) -> None:
        """Send a JSON-RPC error."""
        error: Message = {"code": code, "message": message}
        self.send_message({"id": request_id, "error": error | ({} if data is None else {"data": data})})

    def send_message(self, message: Message) -> None:
        """Write a message as one line of JSON."""
        line = json.dumps({"jsonrpc": "2.0"} | message, ensure_ascii=False)
        with self.lock:
            self.output.write(line.encode("utf-8", "backslashreplace") + b"\n")
            self.output.flush()


def check_request_id(request_id: Any) -> str | int | None:
    """Return the id of a request if it is valid, else None."""
    return request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None


def find_fault(message: Any) -> str:
    """Describe what is wrong with a message; empty if it is valid."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return 'a message is an object with "jsonrpc": "2.0"'
    if "method" not in message:
        return "" if "result" in message or "error" in message else "a request has a method"
    if not isinstance(message["method"], str):
        return "a method is named by a string"
    if "id" in message and check_request_id(message["id"]) is None:
        return "the id of a request is a string or a whole number"
    if not isinstance(message.get("params", {}), dict):
        return "the params of a request are an object"
    return ""
