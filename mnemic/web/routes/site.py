"""The page, the schema with its documentation, health and sessions."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, JSONResponse

import mnemic
from mnemic.web.problems import Problem, document_problems
from mnemic.web.schemas.server import Health, Login, SessionInfo
from mnemic.web.server import Server
from mnemic.web.session import COOKIE_S, find_user

STATIC = Path(__file__).parents[1] / "static"
API_DOCS = Path(__file__).parents[1] / "api_docs"
router = APIRouter()


@router.get("/", include_in_schema=False)
@router.get("/link", include_in_schema=False)
def get_page() -> FileResponse:
    """Return the HTML page of the web interface."""
    return FileResponse(STATIC / "index.html")


@router.get("/favicon.ico", include_in_schema=False)
def get_icon() -> Response:
    """Return the icon of the page."""
    path = STATIC / "favicon.ico"
    return FileResponse(path) if path.is_file() else Response(status_code=204)


@router.get("/static/{path:path}", include_in_schema=False)
def get_static_file(path: str) -> FileResponse:
    """Return a file of the page."""
    return find_file(STATIC, path)


@router.get("/docs", include_in_schema=False)
@router.get("/docs/{path:path}", include_in_schema=False)
def get_documentation(path: str = "index.html") -> FileResponse:
    """Return the interactive documentation of the API."""
    return find_file(API_DOCS, path or "index.html")


def find_file(folder: Path, path: str) -> FileResponse:
    """Return a file of the package, or raise a problem."""
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    if path not in files:
        raise Problem(404, "There is no such file.")
    return FileResponse(files[path], headers={"Cache-Control": "no-cache"})


@router.get("/v1/openapi.json", include_in_schema=False)
def get_schema(request: Request) -> JSONResponse:
    """Return the schema of the API."""
    schema: dict[str, Any] = request.app.openapi()
    return JSONResponse(schema)


@router.get("/v1/health", tags=["server"])
def get_health() -> Health:
    """Report that the server answers."""
    return Health()


@router.get("/v1/session", tags=["server"])
def get_session(request: Request, server: Server) -> SessionInfo:
    """Report whether this client may use the server."""
    is_known = server.keys.has_bearer(request.headers) or server.keys.has_cookie(request.cookies)
    return SessionInfo(authenticated=is_known, version=mnemic.__version__)


@router.post("/v1/session", status_code=204, tags=["server"], responses=document_problems(401, 422))
def start_session(login: Login, request: Request, server: Server) -> Response:
    """Exchange the token, or the code of a one-time link, for a cookie."""
    keys, user = server.keys, find_user(request.client, request.scope.get("server"))
    if not (keys.accepts_token(login.token) if login.token else keys.accepts_code(login.code or "", user)):
        raise Problem(
            401,
            "This is not the token of the server."
            if login.token
            else "This link was used before, or is older than 10 minutes: restart `mnemic serve` for a new one, "
            "or give the token.",
        )
    response = Response(status_code=204)
    response.set_cookie(
        keys.cookie,
        keys.make_cookie(),
        max_age=COOKIE_S,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.headers.get("origin", "").startswith("https:"),  # behind a proxy with TLS
    )
    return response


@router.delete("/v1/session", status_code=204, tags=["server"])
def end_session(server: Server) -> Response:
    """Remove the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(server.keys.cookie, path="/", httponly=True, samesite="strict")
    return response
