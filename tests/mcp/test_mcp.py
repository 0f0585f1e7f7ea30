"""``mnemic mcp``: real requests to a real process, as an assistant sends them."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mnemic.mcp.protocol import VERSIONS, OnProgress, ToolServer


class Client:
    """An assistant's side of the conversation."""

    def __init__(self, *words: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mnemic", "mcp", *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        self.count = 0

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message = json.loads(self.process.stdout.readline())
        assert message.pop("jsonrpc") == "2.0"
        return message

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        self.count += 1
        message = {"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}
        self.write(json.dumps(message).encode())
        answer = self.receive()
        assert answer.pop("id") == self.count
        return answer

    def start(self, version: str = VERSIONS[0]) -> dict[str, Any]:
        about = {"name": "tests", "version": "0"}
        result = self.request("initialize", protocolVersion=version, capabilities={}, clientInfo=about)
        self.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        return result["result"]

    def use(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A tool's result; the text says the same as the structure."""
        result = self.request("tools/call", name=name, arguments=arguments)["result"]
        assert not result["isError"], result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    def refused(self, name: str, **arguments: Any) -> str:
        result = self.request("tools/call", name=name, arguments=arguments)["result"]
        assert result["isError"]
        return result["content"][0]["text"]

    def end(self) -> tuple[int, str]:
        """Close the input; the exit code, and what was said beside the protocol."""
        out, err = self.process.communicate(timeout=30)
        assert out == b""
        return self.process.returncode, err.decode()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "trip.md").write_text("# Trip\n\nThe train leaves at nine.\n", encoding="utf-8")
    kwargs = ("--memory", tmp_path / "memory.db", "--embedder", "hashed-ngrams", "--folder", folder)
    client = Client(*kwargs)
    yield client
    assert client.end() == (0, "")


def test_remember_ask_update_forget(client: Client, tmp_path: Path) -> None:
    server = client.start()
    assert server["serverInfo"]["name"] == "mnemic"
    assert "tools" in server["capabilities"]
    tools = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
    assert set(tools) == {"search", "ask", "list", "remember", "update", "forget"}
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools.values())
    assert tools["ask"]["annotations"]["readOnlyHint"]
    assert tools["forget"]["annotations"]["destructiveHint"]
    assert "begin one" in client.refused("ask", question="Where is the key?")
    first = client.use("remember", text="The key is under the mat. 钥匙。", title="Key")["document"]
    assert client.use("remember", text="The key is under the mat. 钥匙。")["document"] == first
    answer = client.use("ask", question="Where is the key?", hops=2)
    assert "mat" in answer["answer"]
    assert answer["ranked"][0]["evidence"]["sentence"] == "The key is under the mat."
    assert answer["evidence"][0]["document"] == first
    (hit,) = client.use("search", query="key", most=1)["found"]
    assert (hit["document"], hit["name"]) == (first, "Key")
    second = client.use("update", document=first, text="The key is in the drawer.")["document"]
    assert "drawer" in client.use("ask", question="Where is the key?")["answer"]
    assert [document["id"] for document in client.use("list")["documents"]] == [second]
    report = client.use("forget", documents=[second], verify=True)
    assert [document["document"] for document in report["forgotten"]] == [first, second]
    assert report["verified"]
    assert report["scrubbed"]
    assert client.use("ask", question="Where is the key?")["answer"] is None
    assert b"drawer" not in (tmp_path / "memory.db").read_bytes()


def test_files_only_of_folders_that_were_named(client: Client, tmp_path: Path) -> None:
    client.start()
    (tmp_path / "secret.txt").write_text("The passphrase is mellon.", encoding="utf-8")
    (tmp_path / "notes" / "link.txt").symlink_to(tmp_path / "secret.txt")
    for path in ("secret.txt", "notes/../secret.txt", "notes/link.txt"):
        assert "is not in a folder" in client.refused("remember", paths=[str(tmp_path / path)])
    assert "two things at once" in client.refused("remember")
    report = client.use("remember", paths=[str(tmp_path / "notes")])
    assert [(Path(file["path"]).name, file["outcome"]) for file in report["files"]] == [("trip.md", "new")]
    assert client.use("remember", paths=[str(tmp_path / "notes" / "trip.md")])["unchanged"] == 1
    for number in range(4):
        client.use("remember", text=f"Note {number} says {number}.")
    page = client.use("list", most=3)
    assert (len(page["documents"]), page["total"], page["next_after"]) == (3, 5, 3)
    assert [document["id"] for document in client.use("list", after=3)["documents"]] == [4, 5]


def test_mistakes_of_the_client_are_answered(client: Client) -> None:
    assert client.start("1999-01-01")["protocolVersion"] == VERSIONS[0]
    assert client.start("2024-11-05")["protocolVersion"] == "2024-11-05"
    for line, code in (
        (b'{"jsonrpc": "2.0", "id": 1, "method"', -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"12", -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', -32600),
    ):
        client.write(line)
        assert client.receive()["error"]["code"] == code, line[:80]
    client.write(b"\n  \n")
    assert client.request("ping") == {"result": {}}
    assert client.request("resources/list")["error"]["code"] == -32601
    assert client.request("tools/call", name="fly")["error"]["code"] == -32602
    assert "'question' is missing" in client.refused("ask")
    assert "no argument 'query'" in client.refused("ask", question="Who?", query="x")
    assert "a whole number, not true" in client.refused("ask", question="Who?", hops=True)
    assert "between 1 and 50" in client.refused("search", query="x", most=0)
    assert "'documents' is empty" in client.refused("forget", documents=[])
    assert "each of documents" in client.refused("forget", documents=["1"])
    client.use("remember", text="One.")
    assert "there is no document 7" in client.refused("forget", documents=[7])
    client.write(b'{"jsonrpc": "2.0", "method": "notifications/unheard"}')
    client.write(b'{"jsonrpc": "2.0", "id": 5, "result": {}}')  # an answer nobody waits for
    client.write(b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}')
    assert client.request("ping") == {"result": {}}


def test_what_was_asked_before_the_end_is_answered(tmp_path: Path) -> None:
    client = Client("--memory", tmp_path / "memory.db", "--embedder", "hashed-ngrams")
    sent = line("tools/call", 1, name="remember", arguments={"text": "A."})
    out, err = client.process.communicate(sent + line("tools/call", 2, name="list"), timeout=30)
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[1]["result"]["structuredContent"]["total"] == 1
    assert (client.process.returncode, err) == (0, b"")


def test_only_reading(tmp_path: Path) -> None:
    client = Client("--memory", tmp_path / "memory.db", "--read-only")
    tools = [tool["name"] for tool in client.request("tools/list")["result"]["tools"]]
    assert tools == ["search", "ask", "list"]
    assert client.request("tools/call", name="forget")["error"]["code"] == -32602
    assert client.end() == (0, "")


class Slow:
    """A tool that works in three steps; during the second, other lines may come in."""

    descriptor: Mapping[str, Any] = {"name": "slow"}

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile = meanwhile
        self.steps = 0

    def __call__(self, arguments: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        for number in range(3):
            if number == 1:
                self.meanwhile()
            on_progress(number, 3, "work")
            self.steps += 1
        if arguments.get("fault"):
            raise KeyError("a fault of ours")
        return {"done": True}


def line(method: str, number: int | None = None, **params: Any) -> bytes:
    id_field = {} if number is None else {"id": number}
    message = {"jsonrpc": "2.0", "method": method, "params": params} | id_field
    return json.dumps(message).encode() + b"\n"


def served(first: bytes, later: bytes = b"") -> tuple[list[dict[str, Any]], Slow]:
    """Serve ``first``; while its first tool works, ``later`` comes in, and is taken in."""
    reading, writing = os.pipe()
    output = io.BytesIO()
    os.write(writing, first)

    def meanwhile() -> None:
        if tool.steps == 1:
            os.write(writing, later)
            os.close(writing)
            until = time.monotonic() + 10
            while later and not server.canceled and time.monotonic() < until:
                time.sleep(0.005)

    tool = Slow(meanwhile)
    server = ToolServer({"slow": tool}, {}, "", output)
    with os.fdopen(reading, "rb") as lines:
        server.serve(lines)
    return [json.loads(answer_line) for answer_line in output.getvalue().splitlines()], tool


def test_a_request_can_be_cancelled_while_it_is_at_work() -> None:
    later = line("notifications/cancelled", requestId=1, reason="no more") + line("ping", 2)
    answers, tool = served(line("tools/call", 1, name="slow"), later)
    assert [answer["id"] for answer in answers] == [2]  # one that was cancelled has no answer
    assert tool.steps == 1


def test_a_request_can_be_cancelled_while_it_waits() -> None:
    first = line("tools/call", 1, name="slow") + line("tools/call", 2, name="slow")
    later = line("notifications/cancelled", requestId=2) + line("ping", 3)
    answers, tool = served(first, later)
    assert [answer["id"] for answer in answers] == [1, 3]
    assert tool.steps == 3


def test_progress_is_told_to_those_who_ask() -> None:
    answers, _ = served(line("tools/call", 1, name="slow", _meta={"progressToken": "p"}))
    *notifications, last = answers
    assert [notification["params"]["progress"] for notification in notifications] == [0, 1, 2]
    assert {notification["params"]["progressToken"] for notification in notifications} == {"p"}
    assert last["result"]["structuredContent"] == {"done": True}


def test_a_fault_of_ours_ends_the_request_and_not_the_server() -> None:
    first = line("tools/call", 1, name="slow", arguments={"fault": True}) + line("ping", 2)
    answers, _ = served(first)
    assert answers[0]["error"]["code"] == -32603
    assert "a fault of ours" in answers[0]["error"]["data"]["traceback"]
    assert answers[1] == {"jsonrpc": "2.0", "id": 2, "result": {}}
