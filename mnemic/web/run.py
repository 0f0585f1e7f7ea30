"""Run the server until a signal ends it."""

import resource
import socket

import uvicorn
from starlette.types import ASGIApp

from mnemic.mcp.http import PromptProtocol
from mnemic.web.security import MAX_HEADER_BYTES

SHUTDOWN_S = 2  # for open connections, at the end
KEEP_ALIVE_S = 30  # of a connection between two requests
BACKLOG = 1024  # connections that wait to be accepted
DESCRIPTORS_PER_SERVER = 8192
MAX_PORT = 65535


def raise_descriptor_limit() -> None:
    """Allow as many connections as the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = DESCRIPTORS_PER_SERVER if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_PER_SERVER)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def bind_address(host: str, port: int) -> socket.socket:
    """Bind an address and a port; 0 is any free one."""
    if not 0 <= port <= MAX_PORT:
        raise ValueError(f"--port must be a number from 0, any free one, to {MAX_PORT}, not {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = f"port {port} of {host} cannot be used: {error.strerror}"
        raise ValueError(f"{reason}; give another --port or --host") from None


async def serve_app(app: ASGIApp, listener: socket.socket) -> None:
    """Serve clients until a signal ends it, which is raised again then."""
    config = uvicorn.Config(
        app,
        http=PromptProtocol,
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    await uvicorn.Server(config).serve([listener])
