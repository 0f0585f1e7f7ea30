"""A server of the HTTP API in this process, with a client that has its token."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from mnemic.web.app import build_app
from mnemic.web.server import ServerOptions, WebServer

TOKEN = "token-of-the-tests-0123456789"
PORT = 8421
ADDRESS = f"http://127.0.0.1:{PORT}"
OVER = ("done", "stopped", "failed")
DOCUMENTS = "/v1/memories/notes/documents"


def make_options(folder: Path, **values: Any) -> ServerOptions:
    """Make the options of a server whose memory is ``notes``, without networks."""
    defaults: dict[str, Any] = {
        "token": TOKEN,
        "port": PORT,
        "state_folder": folder / "state",
        "memories": (str(folder / "notes.db"),),
        "embedder": "hashed-ngrams",
        "reader": "none",
    }
    return ServerOptions(**defaults | values)


class Api:
    """A client of a server, with checks that every answer has to pass."""

    def __init__(self, client: TestClient, server: WebServer) -> None:
        self.client, self.server = client, server
        self.seen: set[tuple[str, str, int]] = set()  # method, path, status

    def call(self, method: str, path: str, status: int = 200, **values: Any) -> Any:
        """Send a request; check its status, and that an error is a problem."""
        response = self.client.request(method, path, **values)
        assert response.status_code == status, (method, path, response.status_code, response.text)
        self.seen.add((method, path.partition("?")[0], status))
        if status >= 400:
            assert response.headers["content-type"] == "application/problem+json"
            problem = response.json()
            assert problem["status"] == status
            assert problem["detail"][0].isupper() or not problem["detail"][0].isalpha()
            assert problem["detail"].endswith((".", "!", "?"))
            return problem
        return response.json() if response.headers.get("content-type") == "application/json" else response

    def finish(self, job: dict[str, Any]) -> dict[str, Any]:
        """Wait until a job has ended; return it."""
        end = time.monotonic() + 30
        while (job := self.call("GET", f"/v1/jobs/{job['id']}"))["state"] not in OVER:
            assert time.monotonic() < end, job
            time.sleep(0.01)
        return job

    def upload(self, files: dict[str, bytes], status: int = 202, **fields: str) -> Any:
        """Upload files, and wait until they are remembered."""
        parts = [("files", (name, content)) for name, content in files.items()]
        answer = self.call("POST", DOCUMENTS, status, files=parts, data=fields)
        return self.finish(answer["job"]) if status == 202 else answer


@contextmanager
def open_api(folder: Path, **values: Any) -> Iterator[Api]:
    """Start a server and a client that has its token."""
    app, server = build_app(make_options(folder, **values))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url=ADDRESS, headers=headers, raise_server_exceptions=False) as client:
        yield Api(client, server)


def parse_events(text: str) -> list[tuple[str, int | None, Any]]:
    """Parse server-sent events: name, id, value."""
    events = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            number = int(fields["id"]) if "id" in fields else None
            events.append((fields["event"], number, json.loads(fields["data"])))
    return events
