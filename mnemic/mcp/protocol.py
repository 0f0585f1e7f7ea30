"""The Model Context Protocol for a server that has tools: JSON-RPC 2.0, one message a line.

A thread reads, so that a request can be cancelled while another one is at work; the work itself is
done by the caller's thread, one request after the other, in order. At the end of the input what was
asked is still answered. See https://modelcontextprotocol.io/specification.
"""

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, BinaryIO, NamedTuple, Protocol

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # the newest first
UNREADABLE, INVALID, UNKNOWN, PARAMETERS, INTERNAL = -32700, -32600, -32601, -32602, -32603
TRACEBACK = 2000  # characters of a fault of ours that are told

Message = dict[str, Any]


class CancelledError(Exception):
    """The client no longer wants to know."""


class ProtocolError(Exception):
    """A request that cannot be answered; the code is one of JSON-RPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Call(NamedTuple):
    """What a tool may say while it works."""

    progress: Callable[
        [float, float, str], None
    ]  # done, of how many, what; may raise ``CancelledError``


class Tool(Protocol):
    """Something that the client may do here."""

    @property
    def described(self) -> Message:
        """Name, description, schema of the arguments: as `tools/list` shows it."""

    def __call__(self, arguments: Mapping[str, Any], call: Call) -> Message:
        """The result, as plain values; ``ValueError`` for what the client can set right."""


class Server:
    """Answers the messages of one client."""

    def __init__(
        self, tools: Mapping[str, Tool], about: Message, instructions: str, output: BinaryIO
    ) -> None:
        self.tools = tools
        self.about = about
        self.instructions = instructions
        self.output = output
        self.lock = Lock()
        self.cancelled: set[str | int] = set()
        self.waiting: set[str | int] = set()
        self.methods: dict[str, Callable[[Message, str | int], Message]] = {
            "initialize": self.initialize,
            "ping": lambda *_: {},
            "tools/list": lambda *_: {"tools": [tool.described for tool in tools.values()]},
            "tools/call": self.call,
        }

    def serve(self, lines: Iterable[bytes]) -> None:
        """Answer until there are no more lines."""
        queue: SimpleQueue[Message | None] = SimpleQueue()
        reader = Thread(target=self.receive, args=(lines, queue), daemon=True)
        reader.start()
        while (message := queue.get()) is not None:
            self.answer(message)

    def receive(self, lines: Iterable[bytes], queue: "SimpleQueue[Message | None]") -> None:
        """Sort what comes in: cancellations hold at once, all else waits for its turn."""
        try:
            for message in self.messages(lines):
                params = message.get("params")
                if message.get("method") == "notifications/cancelled" and isinstance(params, dict):
                    with self.lock:
                        self.cancelled |= self.waiting & {known(params.get("requestId"))}
                elif "method" in message and "id" in message:  # others want no answer
                    with self.lock:
                        self.waiting.add(message["id"])
                    queue.put(message)
        finally:
            queue.put(None)

    def messages(self, lines: Iterable[bytes]) -> Iterator[Message]:
        """The messages that are well formed; to the others an error is the answer."""
        for line in lines:
            if not line.strip():
                continue
            try:
                told = json.loads(line)
            except (ValueError, RecursionError) as error:
                self.fail(None, UNREADABLE, f"this line is no JSON: {error}")
                continue
            for message in told if isinstance(told, list) and told else [told]:
                if fault := fault_of(message):
                    own = message.get("id") if isinstance(message, dict) else None
                    self.fail(known(own), INVALID, fault)
                else:
                    yield message

    def answer(self, message: Message) -> None:
        """Answer a request, unless it was cancelled."""
        number, method = message["id"], message["method"]
        try:
            if method not in self.methods:
                raise ProtocolError(
                    UNKNOWN, f"no method {method!r}; there are {', '.join(self.methods)}"
                )
            self.check(number)
            result = self.methods[method](message.get("params") or {}, number)
            self.check(number)
            self.send({"id": number, "result": result})
        except CancelledError:
            pass
        except ProtocolError as error:
            self.fail(number, error.code, str(error))
        except Exception as error:  # a fault of ours ends the request, not the server
            told = "".join(traceback.format_exception(error))[-TRACEBACK:]
            self.fail(number, INTERNAL, f"a fault of mnemic: {error!r}", {"traceback": told})
        with self.lock:
            self.waiting.discard(number)
            self.cancelled.discard(number)

    def check(self, number: str | int) -> None:
        with self.lock:
            if number in self.cancelled:
                raise CancelledError

    def initialize(self, params: Message, number: str | int) -> Message:
        """The client's version of the protocol if it is known, else the newest that is."""
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": self.about,
            "instructions": self.instructions,
        }

    def call(self, params: Message, number: str | int) -> Message:
        """Use a tool; what the client can set right is a result, so that a model gets to see it."""
        tool = self.tools.get(str(params.get("name")))
        if tool is None:
            raise ProtocolError(
                PARAMETERS, f"no tool {params.get('name')!r}; there are {', '.join(self.tools)}"
            )
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None

        def progress(done: float, total: float, what: str) -> None:
            self.check(number)
            if token is not None:
                told = {"progressToken": token, "progress": done, "total": total, "message": what}
                self.send({"method": "notifications/progress", "params": told})

        try:
            found = tool(params.get("arguments") or {}, Call(progress))
        except (ValueError, OSError) as error:
            return {"content": [text(f"error: {error}")], "isError": True}
        shown = json.dumps(found, ensure_ascii=False)
        return {"content": [text(shown)], "structuredContent": found, "isError": False}

    def fail(
        self, number: str | int | None, code: int, message: str, data: Message | None = None
    ) -> None:
        error: Message = {"code": code, "message": message}
        self.send({"id": number, "error": error | ({} if data is None else {"data": data})})

    def send(self, message: Message) -> None:
        line = json.dumps({"jsonrpc": "2.0"} | message, ensure_ascii=False)
        with self.lock:
            self.output.write(line.encode("utf-8", "backslashreplace") + b"\n")
            self.output.flush()


def text(content: str) -> Message:
    return {"type": "text", "text": content}


def known(number: Any) -> str | int | None:
    """The id of a request, if it is one."""
    return number if isinstance(number, str | int) and not isinstance(number, bool) else None


def fault_of(message: Any) -> str:
    """What is wrong with the shape of a message; nothing, if it is a request or a notification."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return 'a message is an object with "jsonrpc": "2.0"'
    if "method" not in message:
        return "" if "result" in message or "error" in message else "a request has a method"
    if not isinstance(message["method"], str):
        return "a method is named by a string"
    if "id" in message and known(message["id"]) is None:
        return "the id of a request is a string or a whole number"
    if not isinstance(message.get("params", {}), dict):
        return "the params of a request are an object"
    return ""
