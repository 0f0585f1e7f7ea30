"""Processes of ``mnemic mcp``, which may talk to no machine but this one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Timer
from typing import Any

# Ends the process if it resolves a name or sends anything to another machine.
GUARDED = """
import os, sys

def guard(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname") and arguments[0] not in (None, "127.0.0.1", "localhost"):
        os._exit(99)
    if event in ("socket.connect", "socket.sendto", "socket.bind"):
        address = arguments[1]
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            os._exit(98)

sys.addaudithook(guard)
from mnemic.__main__ import main
sys.exit(main())
"""
QUICK = ("--embedder", "hashed-ngrams", "--reader", "none")
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "0"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def command(memory: Path, *words: object) -> list[str]:
    """The command line of a server."""
    return [sys.executable, "-c", GUARDED, "mcp", "--memory", str(memory), *QUICK, *map(str, words)]


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class Server:
    """A server over stdio, to which any line can be sent."""

    def __init__(self, memory: Path, *words: object) -> None:
        self.process = subprocess.Popen(
            command(memory, *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        self.watchdog = Timer(60, self.process.kill)  # a line that is not answered fails, and does not hang
        self.watchdog.start()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error: object) -> None:
        self.watchdog.cancel()
        self.process.kill()
        self.process.communicate()

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, message: dict[str, Any] | bytes) -> dict[str, Any]:
        self.send(message)
        return self.receive()

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """Close the input; return the exit code, the last messages, and standard error."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()
