"""The application: routes behind a guard, with errors in one shape."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from mnemic import __version__
from mnemic.web.problems import ProblemDetails, add_handlers
from mnemic.web.routes import ask, documents, folders, jobs, memories, networks, pages, site, texts, uploads
from mnemic.web.security import MCP_PATH, Guard
from mnemic.web.server import ServerOptions, WebServer

DESCRIPTION = (
    "Memories of documents that answer questions with their evidence, and memory networks. Errors are problem "
    "details (RFC 9457). A client sends the token as `Authorization: Bearer TOKEN`."
)
FAMILIES = (site, memories, documents, pages, uploads, folders, jobs, ask, texts, networks)


def build_api(server: WebServer, assistants: Starlette) -> FastAPI:
    """Build the routes of a server."""

    @asynccontextmanager
    async def run_server(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(server.close)
            await stack.enter_async_context(assistants.router.lifespan_context(assistants))
            yield

    app = FastAPI(
        title="mnemic",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=run_server,
        redirect_slashes=False,
    )
    app.state.server = server
    add_handlers(app)
    for family in FAMILIES:
        app.include_router(family.router)
    build_schema = app.openapi

    def build_openapi() -> dict[str, Any]:
        """Build the schema, with the shape of errors in it."""
        schema = build_schema()
        schemas = schema["components"]["schemas"]
        if "ProblemDetails" not in schemas:
            details = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= details.pop("$defs") | {"ProblemDetails": details}
        return schema

    app.openapi = build_openapi  # type: ignore[method-assign]
    return app


def build_app(options: ServerOptions) -> tuple[ASGIApp, WebServer]:
    """Build the whole application of a server, behind its guard."""
    server = WebServer(options)
    assistants = server.build_assistant_app()
    api = build_api(server, assistants)

    async def choose_door(scope: Scope, receive: Receive, send: Send) -> None:
        door = assistants if scope["type"] == "http" and scope["path"] == MCP_PATH else api
        await door(scope, receive, send)

    return Guard(choose_door, server.keys, options.hosts, options.limits, options.log), server
