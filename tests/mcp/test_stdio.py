"""``mnemic mcp`` over standard input and output: real processes, real lines."""

import json
import random
import signal
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_process import HELLO, PING, READY, Server, call, command, environment
from mcp_service import Assistant

from mnemic.mcp.stdio import MAX_MESSAGE_BYTES


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_client_of_the_sdk(tmp_path: Path, mode: str) -> None:
    """No other machine is asked for anything; the helper's guard ends a server that does."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "trip.md").write_text("# Trip\n\nThe train leaves at nine.\n", encoding="utf-8")
    program, *arguments = command(tmp_path / "memory.db", "--folder", notes)
    server = StdioServerParameters(command=program, args=arguments, env=environment())
    async with Client(stdio_client(server), mode=mode) as client:
        assistant = Assistant(client)
        assert (await assistant.use("remember", paths=[str(notes)]))["counts"] == {"new": 1}
        answer = await assistant.use("ask", question="When does the train leave?")
        assert answer["answer"] == "The train leaves at nine."
        assert (Path(answer["evidence"][0]["name"]).name, answer["evidence"][0]["line"]) == ("trip.md", 3)
        assert "The train" in (await client.read_resource("mnemic://document/1")).contents[0].text
        assert (await assistant.use("forget", documents=[1]))["forgotten"][0]["document"] == 1
    log = (tmp_path / "memory.db-mcp.log").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["tool"] for line in log] == ["remember", "ask", "resources/read", "forget"]


def make_malformed_lines(num_lines: int) -> list[bytes]:
    """Messages with a few bytes changed, cut or doubled."""
    generator = random.Random(0)
    sources = [
        json.dumps(message).encode() for message in (HELLO, PING, call(3, "list"), call(4, "ask", question="é?"))
    ]
    lines = []
    for _ in range(num_lines):
        line = bytearray(generator.choice(sources))
        for _ in range(generator.randint(1, 4)):
            place = generator.randrange(len(line))
            line[place : place + generator.randint(0, 3)] = generator.randbytes(generator.randint(0, 3))
        lines.append(bytes(line).replace(b"\n", b" ").replace(b"\r", b" "))
    return lines


def test_malformed_lines_are_answered_and_survived(tmp_path: Path) -> None:
    with Server(tmp_path / "memory.db") as server:
        assert server.ask(HELLO)["result"]["serverInfo"]["name"] == "mnemic"
        server.send(READY)
        for line, code in (
            (b'{"jsonrpc": "2.0", "id": 1, "method"', -32700),
            (b"\xff\xfe", -32700),
            (b"[" * 100_000, -32700),
            (b"9" * 5000, -32700),
            (b"[]", -32600),
            (b"12", -32600),
            (b'{"id": 1, "method": "ping"}', -32600),
            (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
            (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', -32600),
            (b'{"jsonrpc": "2.0", "id": 1, "method": "fly"}', -32601),
            (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}', -32602),
            (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fly"}}', -32602),
            (b'"' + b"x" * MAX_MESSAGE_BYTES + b'"', -32600),
            (b" " * (3 * MAX_MESSAGE_BYTES) + b"{}", -32600),
        ):
            assert server.ask(line)["error"]["code"] == code, line[:80]
        number = server.ask(PING | {"id": 2**70})
        assert number["id"] == 2**70
        server.send(b"\n  \n", b'{"jsonrpc": "2.0", "method": "notifications/unheard"}')
        server.send(b'{"jsonrpc": "2.0", "id": 5, "result": {}}')  # an answer nobody waits for
        server.send(b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}}')
        server.send(*make_malformed_lines(300), PING | {"id": "last"})
        code, messages, err = server.end()
        assert code == 0
        assert len(messages) > 250
        assert {"jsonrpc": "2.0", "id": "last", "result": {}} in messages
        assert not [message for message in messages if "fault of mnemic" in json.dumps(message)]
        assert "Traceback" not in err


def test_what_was_asked_before_the_end_is_answered(tmp_path: Path) -> None:
    with Server(tmp_path / "memory.db") as server:
        server.send(HELLO, READY, call(1, "remember", text="The key is under the mat."), call(2, "remember", text="B."))
        code, messages, err = server.end()
    assert (code, err) == (0, "")
    assert {message["id"]: "error" in message for message in messages} == {"hello": False, 1: False, 2: False}


def test_tools_wait_for_the_handshake(tmp_path: Path) -> None:
    with Server(tmp_path / "memory.db") as server:
        assert server.ask(PING) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert "error" in server.ask(call(2, "list"))
        assert server.end()[::2] == (0, "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_while_it_works(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """It ends within the file that is being read, and what was remembered stays."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "long.txt").write_text("The boat left at nine. " * 400_000, encoding="utf-8")
    with Server(tmp_path / "memory.db", "--folder", notes) as server:
        server.ask(HELLO)
        server.ask(call(1, "remember", text="The key is under the mat."))
        remember = call(2, "remember", paths=[str(notes)])
        remember["params"]["_meta"] = {"progressToken": 7}
        assert server.ask(remember)["method"] == "notifications/progress"
        server.process.send_signal(number)
        assert server.process.wait(30) == code
        _, _, err = server.end()
    assert err.splitlines()[1:] == []
    assert err.startswith("stopped; to go on: mnemic mcp") if code else not err
    with Server(tmp_path / "memory.db") as server:
        server.ask(HELLO)
        result = server.ask(call(1, "ask", question="Where is the key?"))["result"]
        assert result["structuredContent"]["answer"] == "The key is under the mat."


def test_it_ends_when_nobody_reads(tmp_path: Path) -> None:
    with Server(tmp_path / "memory.db") as server:
        server.ask(PING)
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send(PING)
        assert server.process.wait(30) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""
        server.process.stdout = None
