"""``mnemic serve`` as a process: its link, its end, a kill and a restart, slow clients."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from mcp_process import GUARDED, environment

from mnemic.cli.documents.serve import name_host
from mnemic.cli.main import main
from mnemic.web.problems import make_sentence

TEXT = b"Boat %d is in harbor %d. " * 40


class Process:
    """A server process, which may talk to no other machine."""

    def __init__(self, home: Path, port: int = 0) -> None:
        command = [sys.executable, "-c", GUARDED, "serve", str(home / "notes.db"), "--json", "--port", str(port)]
        command += ["--embedder", "none", "--reader", "none"]
        variables = environment() | {"MNEMIC_HOME": str(home)}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
        )
        assert self.process.stdout is not None
        text = ""
        while "\n}" not in text:
            line = self.process.stdout.readline()
            assert line, self.process.communicate()
            text += line
        self.printed = json.loads(text)
        self.port = int(self.printed["url"].rpartition(":")[2])
        token = (home / "serve.token").read_text(encoding="utf-8").strip()
        self.client = httpx2.Client(
            base_url=self.printed["url"], headers={"Authorization": f"Bearer {token}"}, timeout=30
        )

    def end(self, number: signal.Signals) -> tuple[int, float]:
        """Send a signal; return the exit code and the seconds until then."""
        started = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(20)
        self.client.close()
        return code, time.monotonic() - started

    def upload(self, files: dict[str, bytes]) -> str:
        """Upload files; return the job."""
        parts = [("files", (name, content)) for name, content in files.items()]
        answer = self.client.post("/v1/memories/notes/documents", files=parts)
        assert answer.status_code == 202
        return str(answer.json()["job"]["id"])

    def wait_for(self, job: str) -> dict:
        """Wait until a job has ended."""
        while (row := self.client.get(f"/v1/jobs/{job}").json())["state"] in ("queued", "running"):
            time.sleep(0.02)
        return row


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    running = Process(tmp_path)
    yield running
    running.process.kill()
    running.process.communicate()


def test_a_kill_loses_nothing_and_the_cookie_stays_good(server: Process, tmp_path: Path) -> None:
    code = server.printed["link"].partition("#")[2]
    with httpx2.Client(base_url=server.printed["url"]) as page:
        assert page.get("/v1/memories").status_code == 401
        assert page.post("/v1/session", json={"code": code}).status_code == 204
        cookies = dict(page.cookies)
    assert server.wait_for(server.upload({"a.txt": b"The ferry leaves at nine."}))["state"] == "done"
    job = server.upload({f"{number}.txt": TEXT % ((number,) * 80) for number in range(300)})
    while server.client.get(f"/v1/jobs/{job}").json()["done"] == 0:
        time.sleep(0.005)
    assert server.end(signal.SIGKILL)[0] == -signal.SIGKILL
    again = Process(tmp_path, server.port)
    try:
        with httpx2.Client(base_url=again.printed["url"], cookies=cookies) as page:
            assert page.get("/v1/memories").status_code == 200
        row = again.client.get(f"/v1/jobs/{job}").json()
        assert row["state"] == "stopped"
        assert "restart" in row["message"]
        retried = again.wait_for(again.client.post(f"/v1/jobs/{job}/retry").json()["job"]["id"])
        assert retried["state"] == "done"
        assert sum(retried["counts"].values()) == 300
        assert again.client.get("/v1/memories/notes/documents").json()["total"] == 301
        incoming = tmp_path / "notes.db-files" / ".incoming"
        assert list(incoming.iterdir()) == []
        assert again.end(signal.SIGTERM)[0] == 0
    finally:
        again.process.kill()
        again.process.communicate()


@pytest.mark.slow
def test_it_ends_soon_whatever_clients_do(server: Process, tmp_path: Path) -> None:
    job = server.upload({f"{number}.txt": TEXT % ((number,) * 80) for number in range(300)})
    address = ("127.0.0.1", server.port)
    with (
        socket.create_connection(address) as slow,
        socket.create_connection(address) as cut,
        socket.create_connection(address) as stream,
    ):
        slow.sendall(b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1")  # and never the rest
        token = server.client.headers["Authorization"]
        head = f"Host: 127.0.0.1:{server.port}\r\nAuthorization: {token}\r\n"
        cut.sendall(
            f"POST /v1/memories/notes/documents HTTP/1.1\r\n{head}Content-Length: 1000000\r\n"
            "Content-Type: multipart/form-data; boundary=B\r\n\r\n"
            '--B\r\nContent-Disposition: form-data; name="files"; filename="cut.txt"\r\n\r\nhalf'.encode()
        )
        stream.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\n{head}\r\n".encode())
        incoming = tmp_path / "notes.db-files" / ".incoming"
        while not list(incoming.rglob("cut.txt")):
            time.sleep(0.005)
        linger = struct.pack("ii", 1, 0)
        cut.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        cut.close()  # the connection is reset in the middle of the upload
        while list(incoming.rglob("cut.txt")):
            time.sleep(0.005)
        assert server.client.get("/v1/health").status_code == 200
        huge = {"X-Large": "y" * 100_000}
        assert server.client.get("/v1/health", headers=huge).status_code == 431
        code, seconds = server.end(signal.SIGINT)
    assert (code, seconds < 10) == (0, True)


def test_mistakes_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMIC_HOME", str(tmp_path))
    (tmp_path / "token").write_text("x" * 40, encoding="utf-8")
    os.chmod(tmp_path / "token", 0o644)
    assert main(["serve", "--port", "0", "--token-file", str(tmp_path / "token")]) == 2
    assert "others can read the token" in capsys.readouterr().err
    assert main(["serve", "--port", "0", "--folder", str(tmp_path / "nowhere")]) == 2
    assert "must be an existing folder" in capsys.readouterr().err
    assert main(["serve", "--port", "0", "--model", str(tmp_path)]) == 2  # it would break the list of networks
    assert "no checkpoint in" in capsys.readouterr().err
    assert main(["serve", "--port", "65536"]) == 2
    assert "--port must be a number from 0, any free one, to 65535, not 65536" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "name"),
    [("0.0.0.0", "127.0.0.1"), ("::", "127.0.0.1"), ("10.0.0.5", "10.0.0.5"), ("fe80::1", "[fe80::1]")],
)
def test_the_link_has_the_address_that_the_server_listens_on(host: str, name: str) -> None:
    assert name_host(host) == name


def test_a_message_that_begins_with_a_path_stays_as_it_is() -> None:
    assert make_sentence("ro/notes.db is read-only") == "ro/notes.db is read-only."
    assert make_sentence("there is no document 7; list them!") == "There is no document 7; list them!"
