"""The application: routes behind a guard, with errors in one shape."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from mnemic import __version__
from mnemic.web.problems import Problem, ProblemDetails, add_handlers, document_problems
from mnemic.web.routes import ask, documents, folders, jobs, memories, networks, pages, site, texts, uploads
from mnemic.web.security import MCP_PATH, OPEN_PATHS, Guard
from mnemic.web.server import ServerOptions, WebServer

DESCRIPTION = (
    "Memories of documents that answer questions with their evidence, and memory networks. Errors are problem "
    "details (RFC 9457). A client sends the token as `Authorization: Bearer TOKEN`."
)
GUARD_STATUSES = (401, 403)  # of requests without the token, or from other sites
BODY_STATUSES = (400, 408, 413)  # of bodies that are broken, slow or large
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
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.server = server
    add_handlers(app)
    app.add_exception_handler(405, respond_to_method)
    for family in FAMILIES:
        app.include_router(family.router)
    describe_api(app)
    return app


def describe_api(app: FastAPI) -> None:
    """Complete the schema: the shape of errors, and those that every request may have."""
    build_schema = app.openapi

    def build_openapi() -> dict[str, Any]:
        """Build the schema."""
        schema = build_schema()
        schemas = schema["components"]["schemas"]
        if "ProblemDetails" in schemas:
            return schema
        details = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= details.pop("$defs") | {"ProblemDetails": details}
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                statuses = BODY_STATUSES if "requestBody" in operation else ()
                if path not in OPEN_PATHS:
                    operation["security"] = [{"token": []}]
                    statuses = (*GUARD_STATUSES, *statuses)
                problems = document_problems(*statuses, 421, 431)
                responses = operation["responses"] | {str(status): text for status, text in problems.items()}
                operation["responses"] = dict(sorted(responses.items()))
        return schema

    app.openapi = build_openapi  # type: ignore[method-assign]


def list_methods(path: str) -> list[str]:
    """List the methods of a path."""
    routes = [route for family in FAMILIES for route in family.router.routes if isinstance(route, APIRoute)]
    return sorted({method for route in routes if route.path_regex.match(path) for method in route.methods or ()})


def respond_to_method(request: Request, error: Exception) -> JSONResponse:
    """Report a method that a path does not have, with those that it has."""
    methods = ", ".join(list_methods(request.url.path))
    detail = f"{request.method} is no method of {request.url.path}; it has {methods}."
    return Problem(405, detail, headers={"Allow": methods}).make_response(request.url.path)


def build_app(options: ServerOptions) -> tuple[ASGIApp, WebServer]:
    """Build the whole application of a server, behind its guard."""
    server = WebServer(options)
    assistants = server.build_assistant_app()
    api = build_api(server, assistants)

    async def forward_call(scope: Scope, receive: Receive, send: Send) -> None:
        target = assistants if scope["type"] == "http" and scope["path"] == MCP_PATH else api
        await target(scope, receive, send)

    return Guard(forward_call, server.keys, options.hosts, options.limits, options.log), server
