"""``mnemic mcp --http``: only this machine, only with the token."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_process import HELLO, command, environment
from mcp_service import Assistant

from mnemic.cli.main import main
from mnemic.mcp import http
from mnemic.mcp.http import bind_port, read_token

pytestmark = pytest.mark.anyio
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A server, and what it printed."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "long.txt").write_text("The boat left at nine. " * 400_000, encoding="utf-8")
    words = command(tmp_path / "memory.db", "--http", "--port", 0, "--json", "--folder", tmp_path / "notes")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    text = ""
    while "}" not in text:
        text += process.stdout.readline()
    yield process, json.loads(text)
    process.kill()
    process.communicate()


async def test_a_server_with_a_token(served: tuple[subprocess.Popen[str], dict[str, str]], tmp_path: Path) -> None:
    process, printed = served
    url, right = printed["url"], {"Authorization": f"Bearer {printed['token']}"}
    async with httpx2.AsyncClient(headers=JSON, timeout=30) as client:
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer x"}, 401),
            ({"Authorization": f"Basic {printed['token']}"}, 401),
            ({"Authorization": f"Bearer {printed['token'][:-1]}é".encode()}, 401),
            (right | {"Host": "memory.example:80"}, 421),
            (right | {"Origin": "https://evil.example"}, 403),
            (right | {"Origin": "null"}, 403),
            (right | {"Content-Type": "text/plain"}, 400),
        ):
            assert (await client.post(url, json=HELLO, headers=headers)).status_code == status, headers
        assert (await client.post(url, content=b" " * (5 << 20), headers=right)).status_code == 413
        assert (await client.get(url.replace("/mcp", "/"), headers=right)).status_code == 404
    async with httpx2.AsyncClient(headers=right, timeout=30) as client:
        for mode in ("auto", "legacy"):
            await use_server(client, url, mode, tmp_path)
        async with Client(streamable_http_client(url, http_client=client), mode="legacy") as assistant:
            started = anyio.Event()

            async def on_progress(*report: Any) -> None:
                started.set()

            async def remember() -> None:
                with suppress(MCPError):  # the server ends before it has an answer
                    arguments = {"paths": [str(tmp_path / "notes")]}
                    await assistant.call_tool("remember", arguments, progress_callback=on_progress)

            async with anyio.create_task_group() as group:
                group.start_soon(remember)
                await started.wait()
                with pytest.warns(match="ping"):
                    await assistant.send_ping()
                process.send_signal(signal.SIGTERM)
                assert await anyio.to_thread.run_sync(process.wait, 30) == 0
                group.cancel_scope.cancel()
    assert process.stderr is not None
    assert process.stderr.read() == "Invalid Host header: memory.example:80\n" + "".join(
        f"Invalid Origin header: {origin}\n" for origin in ("https://evil.example", "null")
    )
    log = (tmp_path / "memory.db-mcp.log").read_text(encoding="utf-8")
    assert printed["token"] not in log
    assert json.loads(log.splitlines()[-1])["outcome"] == "canceled"


async def use_server(http_client: httpx2.AsyncClient, url: str, mode: str, folder: Path) -> None:
    """Remember and ask over HTTP, in a version of the protocol."""
    async with Client(streamable_http_client(url, http_client=http_client), mode=mode) as client:
        assistant = Assistant(client)
        await assistant.use("remember", text="The key is under the mat.")
        assert (await assistant.use("ask", question="Where is the key?"))["answer"] == "The key is under the mat."
        assert len((await client.list_resources()).resources) == 1


def test_the_token_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = read_token(path)
    assert len(token) > 40
    assert (read_token(path), path.stat().st_mode & 0o777) == (token, 0o600)
    assert read_token(None) != read_token(None)
    path.chmod(0o644)
    with pytest.raises(ValueError, match="others can read"):
        read_token(path)
    path.chmod(0o600)
    path.write_text("secret", encoding="utf-8")
    with pytest.raises(ValueError, match="at least 20"):
        read_token(path)


def test_a_token_of_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    read_token(path)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ValueError, match="this is a link"):
        read_token(tmp_path / "link")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(ValueError, match="belongs to another user"):
        read_token(path)


async def test_a_connection_that_sends_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slowly sent headers, too; a client that has sent a request may take its time."""
    monkeypatch.setattr(http, "REQUEST_S", 0.2)
    with bind_port(0) as listener:
        address = listener.getsockname()
        async with anyio.create_task_group() as group:
            group.start_soon(http.serve_http, Server("tests"), listener, "t" * 40)
            request = f"GET /mcp HTTP/1.1\r\nHost: localhost:{address[1]}\r\n".encode()
            for start in (b"", request):
                async with await anyio.connect_tcp(*address) as stream:
                    await stream.send(start)
                    with anyio.fail_after(10), pytest.raises(anyio.EndOfStream):
                        await stream.receive()
            async with await anyio.connect_tcp(*address) as stream:
                await stream.send(request + b"\r\n")
                with anyio.fail_after(10):
                    assert (await stream.receive()).startswith(b"HTTP/1.1 401")
                await anyio.sleep(0.4)
                await stream.send(request + b"\r\n")
                with anyio.fail_after(10):
                    assert (await stream.receive()).startswith(b"HTTP/1.1 401")
            group.cancel_scope.cancel()


def test_only_this_machine_is_served() -> None:
    with bind_port(0) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        with pytest.raises(ValueError, match="give another --port"):
            bind_port(port)


def test_mistakes_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = ["--memory", str(tmp_path / "memory.db")]
    for words, message in (
        (["--folder", str(tmp_path / "none")], "--folder must be an existing folder"),
        (["--read-only", "--folder", str(tmp_path)], "leave out --folder"),
        (["--token-file", "x"], "--token-file is for --http"),
        (["--embedder", "none", "--reader", "none", "--log", str(tmp_path)], "give another --log"),
    ):
        assert main(["mcp", *memory, *words]) == 2
        assert message in capsys.readouterr().err
    monkeypatch.setattr("mnemic.cli.documents.mcp.is_installed", lambda module: module != "mcp")
    assert main(["mcp", *memory]) == 2
    assert capsys.readouterr().err == "error: serving assistants needs the MCP SDK: pip install 'mnemic[mcp]'\n"
