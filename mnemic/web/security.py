"""The guard in front of all routes: origin, token, limits, headers, log."""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Protocol

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mnemic.web.limits import WebLimits
from mnemic.web.problems import Problem, convert_error
from mnemic.web.session import SessionKeys

OPEN_PATHS = {"/", "/link", "/favicon.ico", "/v1/health", "/v1/session"}
OPEN_FOLDER = "/static/"
READING_METHODS = {"GET", "HEAD", "OPTIONS"}
CSRF_HEADER = "x-mnemic"  # no form of another site can send it
MCP_PATH = "/mcp"
UPLOAD_PATH = "/documents"
MAX_HEADER_BYTES = 32 << 10
MAX_OPEN_BYTES = 16 << 10  # of a request that needs no token
FOREIGN_SITES = ("cross-site", "same-site")  # the second: another port of this machine
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
NO_TOKEN = (
    "This needs the token of the server: open the link that `mnemic serve` printed, or send the header "
    "`Authorization: Bearer TOKEN`."
)

logger = logging.getLogger(__name__)


class CallLog(Protocol):
    """A log of calls."""

    def write(self, tool: str, arguments: Mapping[str, Any], outcome: str, seconds: float) -> None:
        """Append a line about a call."""


class Guard:
    """Everything that a request must pass before a route sees it."""

    def __init__(
        self, app: ASGIApp, keys: SessionKeys, hosts: frozenset[str], limits: WebLimits, log: CallLog | None = None
    ) -> None:
        self.app, self.keys, self.hosts, self.limits, self.log = app, keys, hosts, limits, log
        self.origins = {f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on, and log it."""
        if scope["type"] != "http":
            if scope["type"] != "websocket":  # the server's start and end
                await self.app(scope, receive, send)
            return
        started, status = time.monotonic(), 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self.check_request(scope, Headers(scope=scope))
            await self.app(scope, self.limit_body(scope, receive), send_safely)
        except ClientDisconnect:
            status = 0
        except Exception as error:
            problem = convert_error(error)
            if status:  # the response has begun: its end will be missing
                logger.error("a response to %s was broken off: %s", scope["path"], problem.detail)
                return
            await problem.make_response(scope["path"])(scope, receive, send_safely)
        finally:
            self.write_log(scope, status, time.monotonic() - started)

    def check_request(self, scope: Scope, headers: Headers) -> None:
        """Raise a problem unless a request comes from where it should, with the token."""
        host, origin, path = headers.get("host", "").lower(), headers.get("origin"), scope["path"]
        num_bytes = sum(len(name) + len(value) for name, value in headers.raw)
        if num_bytes > MAX_HEADER_BYTES:
            raise Problem(431, f"The headers have {num_bytes:,} bytes; at most {MAX_HEADER_BYTES:,} are taken.")
        if host not in self.hosts:
            raise Problem(
                421, f"This server is not {host[:100]!r} but {min(self.hosts)}; `mnemic serve --name NAME` adds a name."
            )
        if origin is not None and origin.lower() not in self.origins:
            raise Problem(403, f"Pages of {origin[:100]!r} may not use this server.")
        if path in OPEN_PATHS or path.startswith(OPEN_FOLDER):
            return
        if headers.get("sec-fetch-site") in FOREIGN_SITES:
            raise Problem(403, "Pages of other sites and ports may not use this server.")
        if self.keys.has_bearer(headers):
            return
        cookies = cookie_parser(headers.get("cookie", ""))
        if path == MCP_PATH or not self.keys.has_cookie(cookies):
            raise Problem(401, NO_TOKEN, headers={"WWW-Authenticate": "Bearer"})
        if scope["method"] not in READING_METHODS and headers.get(CSRF_HEADER) != "1":
            raise Problem(403, "A change with the cookie needs the header `X-Mnemic: 1`, which no other site can send.")

    def find_max_bytes(self, scope: Scope) -> int:
        """Return how many bytes a body may have: few without the token, many in uploads."""
        if scope["path"] in OPEN_PATHS:
            return MAX_OPEN_BYTES
        is_upload = scope["method"] == "POST" and scope["path"].endswith(UPLOAD_PATH)
        return self.limits.max_upload_bytes if is_upload else self.limits.max_body_bytes

    def limit_body(self, scope: Scope, receive: Receive) -> Receive:
        """Wrap ``receive`` so that a body is neither too large nor too slow."""
        max_bytes, rate = self.find_max_bytes(scope), self.limits.min_bytes_per_s
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or int(declared[:20]) > max_bytes:
            raise Problem(413, f"The request has {declared[:20]} bytes; at most {max_bytes:,} are taken. Send less.")
        num_bytes, waited_s, is_complete = 0, 0.0, False

        async def receive_within_limits() -> Message:
            nonlocal num_bytes, waited_s, is_complete
            if is_complete:  # what is awaited now is the end of the connection
                return await receive()
            started, silence_s = time.monotonic(), self.limits.silence_timeout_s
            try:
                message = await asyncio.wait_for(receive(), min(silence_s, silence_s + num_bytes / rate - waited_s))
            except TimeoutError:
                raise Problem(
                    408,
                    f"The request stopped for {silence_s:.0f} s, or came with less than {rate:,} bytes a second. "
                    "Send it again.",
                ) from None
            waited_s += time.monotonic() - started
            num_bytes += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if num_bytes > max_bytes:
                raise Problem(
                    413, f"The request is longer than {max_bytes:,} bytes, the most that is taken. Send less."
                )
            return message

        return receive_within_limits

    def write_log(self, scope: Scope, status: int, seconds: float) -> None:
        """Log a call of the API; report a log that cannot be written any more."""
        if self.log is None or not scope["path"].startswith(("/v1/", MCP_PATH)):
            return
        arguments = scope.get("state", {}).get("audit", {}) | dict(scope.get("path_params") or {})
        route = getattr(scope.get("route"), "path", scope["path"])
        try:
            self.log.write(f"{scope['method']} {route}", arguments, str(status or "broken off"), seconds)
        except (ValueError, OSError) as error:
            logger.error("a call of %s is not in the log: %s", route, error)
