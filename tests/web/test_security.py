"""Who may use the server: token, cookie, one-time link; host, origin and size of requests."""

import asyncio
import os
import re
import socket
import sys
from pathlib import Path

import anyio
import pytest
import uvicorn
from starlette.datastructures import Address
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from web_service import ADDRESS, DOCUMENTS, PORT, TOKEN, Api, make_options, open_api

from mnemic.mcp.audit import AuditLog
from mnemic.mcp.http import PromptProtocol
from mnemic.web.app import build_app
from mnemic.web.limits import WebLimits
from mnemic.web.problems import MAX_FAULTS, convert_error
from mnemic.web.security import MAX_OPEN_BYTES, Guard
from mnemic.web.session import LINK_S, SessionKeys, find_user

MEMORIES = "/v1/memories"
SAME_SITE = {"X-Mnemic": "1"}


@pytest.fixture
def stranger(api: Api) -> TestClient:
    """A client without the token."""
    return TestClient(api.client.app, base_url=ADDRESS)


def test_every_route_but_a_few_needs_the_token(api: Api, stranger: TestClient) -> None:
    schema = api.call("GET", "/v1/openapi.json")
    checked = 0
    for path, operations in schema["paths"].items():
        for method in operations:
            if path in ("/v1/health", "/v1/session"):
                continue
            address = re.sub(r"\{\w+\}", "1", path)
            response = stranger.request(method, address)
            assert response.status_code == 401, (method, path)
            assert response.headers["www-authenticate"] == "Bearer"
            checked += 1
    assert checked > 30
    for path in ("/docs", "/docs/docs.js", "/v1/openapi.json", "/mcp", "/v1/nothing"):
        assert stranger.get(path).status_code == 401, path
    for path in ("/", "/link", "/v1/health", "/v1/session", "/static/index.html"):
        assert stranger.get(path).status_code == 200, path


def test_a_token_or_a_code_becomes_a_cookie(api: Api, stranger: TestClient) -> None:
    assert stranger.get("/v1/session").json()["authenticated"] is False
    assert stranger.post("/v1/session", json={"token": "wrong"}).status_code == 401
    assert stranger.post("/v1/session", json={}).status_code == 401
    code = api.server.keys.make_code()
    response = stranger.post("/v1/session", json={"code": code})
    assert response.status_code == 204
    cookie = response.headers["set-cookie"]
    assert TOKEN not in cookie
    assert code not in cookie
    for attribute in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert attribute in cookie
    assert stranger.get("/v1/session").json()["authenticated"] is True
    assert stranger.get(MEMORIES).status_code == 200
    assert stranger.post("/v1/session", json={"code": code}).status_code == 401, "a code is good once"
    assert stranger.delete("/v1/session").status_code == 204
    assert stranger.get(MEMORIES).status_code == 401
    assert stranger.post("/v1/session", json={"token": TOKEN}).status_code == 204
    assert stranger.get(MEMORIES).status_code == 200


def test_a_change_with_the_cookie_needs_the_header(api: Api, stranger: TestClient) -> None:
    stranger.post("/v1/session", json={"token": TOKEN})
    note = {"text": "Forged."}
    assert stranger.post(f"{MEMORIES}/notes/notes", json=note).status_code == 403
    form = {"files": ("a.txt", b"Forged.")}
    assert stranger.post(DOCUMENTS, files=form).status_code == 403
    assert stranger.delete(f"{DOCUMENTS}/1").status_code == 403
    assert stranger.post(f"{MEMORIES}/notes/notes", json=note, headers=SAME_SITE).status_code == 201


def test_a_cookie_ends_and_cannot_be_forged(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = SessionKeys(TOKEN, PORT)
    value = keys.make_cookie()
    end, _, signature = value.partition(".")
    assert keys.accepts_cookie(value)
    assert SessionKeys(TOKEN, PORT).accepts_cookie(value), "it is good after a restart"
    for wrong in ("", ".", f"{int(end) + 1}.{signature}", f"{end}.", f"{end}.{'0' * 64}", f"é.{signature}"):
        assert not keys.accepts_cookie(wrong)
    assert not SessionKeys(f"{TOKEN}x", PORT).accepts_cookie(value)
    assert not SessionKeys(TOKEN, PORT + 1).accepts_cookie(value)
    monkeypatch.setattr("mnemic.web.session.time.time", lambda: int(end) + 1.0)
    assert not keys.accepts_cookie(value)


def test_a_code_ends_after_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, now = SessionKeys(TOKEN, PORT), 1000.0
    monkeypatch.setattr("mnemic.web.session.time.monotonic", lambda: now)
    early, late = keys.make_code(), keys.make_code()
    now += LINK_S - 1
    assert keys.accepts_code(early)
    now += 1
    assert not keys.accepts_code(late)


def test_the_code_that_a_browser_is_started_with_is_for_one_user() -> None:
    keys = SessionKeys(TOKEN, PORT)
    for user, is_good in ((1000, True), (0, True), (None, True), (1001, False)):
        code = keys.make_code(1000)
        assert keys.accepts_code(code, user) == is_good
        assert not keys.accepts_code(code, 1000), "it is used up"
    assert keys.accepts_code(keys.make_code(), 1001), "the printed one is for whoever reads it"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the users of connections")
def test_the_user_of_a_connection_is_found() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0],
    ):
        assert find_user(Address(*client.getsockname()), listener.getsockname()) == os.geteuid()
        assert find_user(Address("127.0.0.1", 1), listener.getsockname()) is None
        assert find_user(Address("testclient", 1), listener.getsockname()) is None
        assert find_user(None, None) is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": f"127.0.0.1.evil.example:{PORT}"}, 421),
        ({"Host": "127.0.0.1:80"}, 421),
        ({"Host": ""}, 421),
        ({"Host": f"LOCALHOST:{PORT}"}, 200),
        ({"Host": f"[::1]:{PORT}"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://localhost:{PORT + 1}"}, 403),
        ({"Origin": f"http://localhost:{PORT}"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),  # another port, to which browsers send the same cookies
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": "Bearer é"}, 401),
        ({"Authorization": f"bearer {TOKEN}"}, 200),
    ],
)
def test_requests_from_elsewhere_are_refused(api: Api, headers: dict[str, str], status: int) -> None:
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    api.call("GET", MEMORIES, status, headers=encoded)


def test_the_page_itself_is_only_for_this_host(api: Api) -> None:
    for path in ("/", "/link", "/v1/session", "/v1/health"):
        api.call("GET", path, 421, headers={"Host": "evil.example"})


def test_a_name_is_added_for_a_proxy(tmp_path: Path) -> None:
    with open_api(tmp_path, names=("Memory.Example",)) as api:
        api.call("GET", MEMORIES, headers={"Host": "memory.example"})
        api.call("GET", MEMORIES, headers={"Host": "memory.example", "Origin": "https://memory.example"})
        api.call("GET", MEMORIES, 421, headers={"Host": "other.example"})


def test_every_answer_has_the_headers(api: Api) -> None:
    for path in ("/", "/v1/health", "/v1/nothing", "/docs", MEMORIES):
        headers = api.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_large_bodies_are_refused(tmp_path: Path) -> None:
    with open_api(tmp_path, limits=WebLimits(max_body_bytes=1000)) as api:
        note, path = {"text": "x" * 1000}, f"{MEMORIES}/notes/notes"
        api.call("POST", path, 413, json=note)

        def stream() -> object:
            yield b'{"text": "'
            for _ in range(20):
                yield b"x" * 100
            yield b'"}'

        api.call("POST", path, 413, content=stream(), headers={"Content-Type": "application/json"})
        api.call("POST", path, 413, content=b"{}", headers={"Content-Length": "1" * 30})
        api.call("POST", path, 413, content=b"{}", headers={"Content-Length": "-1"})
        api.call("POST", path, 201, json={"text": "It is short."})


def test_a_body_is_small_without_the_token_and_large_only_for_uploads(tmp_path: Path) -> None:
    with open_api(tmp_path, limits=WebLimits(max_body_bytes=1000, max_upload_bytes=20_000)) as api:
        kind = {"Content-Type": "multipart/form-data; boundary=B"}
        assert (
            "at most 1,000"
            in api.call("POST", f"{MEMORIES}/notes/ask", 413, content=b"x" * 2000, headers=kind)["detail"]
        )
        assert "at most 1,000" in api.call("PUT", f"{DOCUMENTS}/1", 413, content=b"x" * 2000, headers=kind)["detail"]
        assert "at most 20,000" in api.call("POST", DOCUMENTS, 413, content=b"x" * 30_000, headers=kind)["detail"]
    with open_api(tmp_path) as api:
        api.call("POST", "/v1/session", 413, content=b"x" * (MAX_OPEN_BYTES + 1), headers=kind)


def test_few_of_many_faults_are_listed(api: Api) -> None:
    body = {"question": "Who?"} | {f"{number}{'x' * 1000}": 0 for number in range(1000)}
    problem = api.call("POST", f"{MEMORIES}/notes/ask", 422, json=body)
    assert len(problem["errors"]) == MAX_FAULTS
    assert len(str(problem)) < 10_000


@pytest.mark.anyio
async def test_a_body_that_drips_is_broken_off() -> None:
    num_sent = 0

    async def receive() -> Message:
        nonlocal num_sent
        num_sent += 1
        await anyio.sleep(0.05)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            await receive()

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    limits = WebLimits(silence_timeout_s=0.2, min_bytes_per_s=1000)
    guard = Guard(read, SessionKeys(TOKEN, PORT), frozenset(["host"]), limits)
    scope = {"type": "http", "method": "POST", "path": "/v1/session", "headers": [(b"host", b"host")]}
    await guard(scope, receive, send)
    assert sent[0]["status"] == 408
    assert num_sent < 6, "no part was late, but all of them were slow"


@pytest.mark.anyio
async def test_a_connection_is_closed_that_never_ends_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    monkeypatch.setattr("mnemic.mcp.http.REQUEST_S", 0.1)
    config = uvicorn.Config(answer, http=PromptProtocol, ws="none", log_config=None)
    config.load()
    state = uvicorn.server.ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: PromptProtocol(config, state, {}), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    long_body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"
    async with server:
        for first, second in ((b"", b"G"), (head, b"G"), (long_body, b"x")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            if first:
                assert b"204" in await reader.readuntil(b"\r\n\r\n")
            writer.write(second)
            with anyio.fail_after(2):
                assert await reader.read() == b"", "the server has closed it"
            writer.close()


def test_a_client_that_leaves_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    assert convert_error(ClientDisconnect()).status_code == 400
    assert not caplog.records


def test_no_path_leads_out_of_the_page(api: Api) -> None:
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd",
                 "/docs/..%2fapp.py", "/static/", "/v1/recipes/..%2f..%2fsetup"):  # fmt: skip
        api.call("GET", path, 404)


def test_calls_are_in_the_log_without_texts(tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    app, _ = build_app(make_options(tmp_path, log=AuditLog(path)))
    with TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        client.post(f"{MEMORIES}/notes/notes", json={"text": "Secret words."})
        client.post(f"{MEMORIES}/notes/ask", json={"question": "What is it?"})
        client.get(MEMORIES, headers={"Authorization": "no"})
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") == 3
    assert '"POST /v1/memories/{m}/notes"' in text
    assert "What is it?" in text
    assert '"outcome": "401"' in text
    assert "Secret" not in text
    assert TOKEN not in text
    assert path.stat().st_mode & 0o077 == 0
