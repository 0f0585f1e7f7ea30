"""The streamable HTTP transport, for clients on this machine that have a token."""

import asyncio
import logging
import os
import secrets
import socket
import stat
from collections.abc import Sequence
from hmac import compare_digest
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware.authentication import AuthenticationMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from mnemic.files import OWNER_ONLY, UnsafeFileError, open_private, write_text

HOST = "127.0.0.1"  # never another: a memory is not for the network
PATH = "/mcp"
MAX_SESSIONS = 100
MAX_MESSAGE_BYTES = 4 << 20  # as over stdio
MIN_TOKEN_CHARS = 20
SHUTDOWN_S = 1  # for open connections, at the end
REQUEST_S = 10.0  # until the headers of a request have come


class TokenCheck:
    """A check of the one bearer token, in the form that the SDK takes."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the owner's access for the right token."""
        is_right = compare_digest(token.encode(), self.token.encode())
        return AccessToken(token=token, client_id="owner", scopes=[]) if is_right else None


class PromptProtocol(H11Protocol):
    """A connection that is closed unless the headers of each request come soon."""

    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the headers of the first request."""
        super().connection_made(transport)
        self.timer = self.loop.call_later(REQUEST_S, transport.close)

    def data_received(self, data: bytes) -> None:
        """Handle bytes; limit the wait for headers, or for an unread body."""
        super().data_received(data)
        is_waiting = self.cycle is None or self.cycle.response_complete
        if not is_waiting and self.timer is not None:
            self.timer.cancel()
            self.timer = None
        elif is_waiting and self.timer is None:
            self.timer = self.loop.call_later(REQUEST_S, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """End to wait."""
        super().connection_lost(exc)
        if self.timer is not None:
            self.timer.cancel()


def bind_port(port: int) -> socket.socket:
    """Bind a port of this machine; 0 is any free one."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise ValueError(f"port {port} of {HOST} cannot be used: {error.strerror}; give another --port") from None


def build_app(server: Server[Any], token: str, hosts: Sequence[str]) -> Starlette:
    """Build the web application: token first, then host and origin, then the protocol."""
    check = TokenCheck(token)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_MESSAGE_BYTES,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(
            allowed_hosts=list(hosts), allowed_origins=[f"http://{host}" for host in hosts]
        ),
        token_verifier=check,
    )
    app.add_middleware(AuthenticationMiddleware, backend=BearerAuthBackend(check))
    return app


async def serve_http(server: Server[Any], listener: socket.socket, token: str) -> None:
    """Serve clients until a signal ends it, which is raised again then."""
    port = listener.getsockname()[1]
    app = build_app(server, token, [f"{HOST}:{port}", f"localhost:{port}"])
    # At the end it warns of answers to clients that uvicorn has disconnected already.
    logging.getLogger("mcp.shared.jsonrpc_dispatcher").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app,
        http=PromptProtocol,
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    await uvicorn.Server(config).serve([listener])


def read_token(path: Path | None) -> str:
    """Read the token of a file, or make one; a missing file is written."""
    if path is None:
        return secrets.token_urlsafe(32)
    if not path.exists():
        write_text(path, f"{secrets.token_urlsafe(32)}\n", mode=OWNER_ONLY)
    try:
        descriptor = open_private(path, os.O_RDONLY)
    except UnsafeFileError as error:  # who has written it knows the token
        raise ValueError(f"{path}: {error.strerror}; give another --token-file") from None
    with open(descriptor, encoding="utf-8") as file:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
            raise ValueError(f"others can read the token in {path}: chmod 600 {path}, or give another --token-file")
        token = file.read().strip()
    if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(f"the token in {path} is no word of at least {MIN_TOKEN_CHARS} letters; remove the file")
    return token
