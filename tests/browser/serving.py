"""Run `mnemic serve` as a process of its own, as a person does."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

START_S = 60


@dataclass
class ServedPage:
    """A server that runs: its address, its token, and the link that it printed."""

    url: str
    token: str
    link: str
    process: "subprocess.Popen[str]"
    options: tuple[str, ...]
    home: Path

    def post(self, path: str, body: object, method: str = "POST") -> object:
        """Send JSON to the API with the token."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = Request(self.url + path, json.dumps(body).encode(), headers, method=method)
        with urlopen(request, timeout=60) as response:
            return json.loads(response.read() or "null")

    def stop(self) -> None:
        """Stop the server at once, as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        end_process(self.process)

    def restart(self) -> None:
        """Start the server again at the same address."""
        port = self.url.rsplit(":", 1)[1]
        self.process = start_process(self.home, ("--port", port, *self.options))
        read_greeting(self.process)
        wait_until_up(self.url)


def start_process(home: Path, options: tuple[str, ...]) -> "subprocess.Popen[str]":
    """Start the command."""
    environment = os.environ | {"MNEMIC_HOME": str(home), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    command = [sys.executable, "-m", "mnemic", "serve", "--no-open", "--json", *options]
    with (home / "serve.err").open("ab") as errors:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)


def read_greeting(process: "subprocess.Popen[str]") -> dict[str, str]:
    """Read the JSON object that the command prints first."""
    text = ""
    assert process.stdout is not None
    for line in process.stdout:
        text += line
        try:
            greeting: dict[str, str] = json.loads(text)
            return greeting
        except json.JSONDecodeError:
            continue
    raise AssertionError(f"mnemic serve ended with {process.wait()}: {text}")


def wait_until_up(url: str) -> None:
    """Wait until the server answers."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            with urlopen(f"{url}/v1/health", timeout=5):
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


def end_process(process: "subprocess.Popen[str]") -> None:
    """Wait for a process that was asked to end; kill it if it does not."""
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()


@contextmanager
def serve_page(home: Path, *options: str) -> Iterator[ServedPage]:
    """Serve the page with a home of its own; stop it in the end."""
    process = start_process(home, ("--port", "0", *options))
    greeting = read_greeting(process)
    wait_until_up(greeting["url"])
    token = (home / "serve.token").read_text(encoding="utf-8").strip()
    page = ServedPage(greeting["url"], token, greeting["link"], process, options, home)
    try:
        yield page
    finally:
        page.process.terminate()
        end_process(page.process)
