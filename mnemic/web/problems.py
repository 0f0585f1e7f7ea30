"""Errors as problem details (RFC 9457): what came, what was expected, what to do."""

import errno
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from mnemic.store.contract import MissingMemoryError

MEDIA_TYPE = "application/problem+json"
MAX_FIELD_CHARS = 200
MAX_FAULTS = 20  # of a request that are listed; it may have a million
NO_FAULTS = "a fault of mnemic, not of the request: {fault}; the server's standard error has more"
RETRY_AFTER_S = 2

logger = logging.getLogger(__name__)


class FieldProblem(BaseModel):
    """What is wrong with one field of a request."""

    field: str = Field(description="Its place, such as body.question.")
    message: str


class ProblemDetails(BaseModel):
    """An error, as RFC 9457 describes it."""

    type: str = "about:blank"
    title: str = Field(description="The status in words.")
    status: int
    detail: str = Field(description="A sentence: what came, what was expected, what to do.")
    instance: str | None = Field(default=None, description="The path of the request.")
    errors: list[FieldProblem] | None = None


class Problem(HTTPException):
    """A request that cannot be answered, with the sentence for the person who sent it."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[FieldProblem] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.errors = list(errors) if errors else None

    def describe(self, path: str) -> dict[str, Any]:
        """Return the problem as JSON values."""
        details = ProblemDetails(
            title=HTTPStatus(self.status_code).phrase,
            status=self.status_code,
            detail=self.detail.encode("utf-8", "replace").decode(),
            instance=path,
            errors=self.errors,
        )
        return details.model_dump(mode="json", exclude_none=True)

    def make_response(self, path: str) -> JSONResponse:
        """Make the HTTP response that reports the problem of a request to ``path``."""
        return JSONResponse(self.describe(path), self.status_code, self.headers, MEDIA_TYPE)


def make_busy_problem(detail: str, status: int = 429) -> Problem:
    """Make the problem of a busy server; it says when to come again."""
    return Problem(status, detail, headers={"Retry-After": str(RETRY_AFTER_S)})


def convert_error(error: Exception) -> Problem:
    """Convert an error of the library into a problem."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ClientDisconnect):
        return Problem(400, "The connection ended before the request was complete.")
    if isinstance(error, HTTPException) and error.status_code == 400:
        return Problem(400, "The body of the request is no JSON text in UTF-8. Send a JSON object.")
    if isinstance(error, HTTPException):
        return Problem(error.status_code, f"{error.detail}.", headers=error.headers)
    if isinstance(error, RequestValidationError):
        return describe_validation(error)
    if isinstance(error, MissingMemoryError):
        return Problem(404, "This memory is empty: add a document or a note first.")
    if isinstance(error, ValueError):
        return Problem(422, make_sentence(str(error)))
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Problem(507, "The disk of the server is full: nothing was stored. Make room on it, and send it again.")
    if isinstance(error, OSError):
        return Problem(422, make_sentence(f"a file cannot be read or written: {error.strerror or error}"))
    logger.error("a request failed", exc_info=error)
    return Problem(500, make_sentence(NO_FAULTS.format(fault=repr(error))))


def make_sentence(text: str) -> str:
    """Capitalize a message unless it begins with a path; end it with a stop."""
    text = text.strip() or "it failed without a message"
    first = text[0].upper() if text.split()[0].strip(",:;.").isalpha() else text[0]
    return f"{first}{text[1:]}{'' if text[-1] in '.!?。' else '.'}"


def describe_validation(error: RequestValidationError) -> Problem:
    """Describe the fields of a request that are wrong or missing."""
    faults = [
        FieldProblem(field=".".join(map(str, fault["loc"]))[:MAX_FIELD_CHARS], message=str(fault["msg"]))
        for fault in error.errors()[:MAX_FAULTS]
    ]
    mistakes = "; ".join(f"{fault.field}: {fault.message}" for fault in faults[:5])
    advice = "/docs describes each request"
    return Problem(422, make_sentence(f"the request is not as expected: {mistakes}; {advice}"), errors=faults)


def respond_to_error(request: Request, error: Exception) -> JSONResponse:
    """Return the response to an error that a route raised."""
    return convert_error(error).make_response(request.url.path)


def add_handlers(app: FastAPI) -> None:
    """Report all errors of an application as problems."""
    for kind in (HTTPException, RequestValidationError, ValueError, OSError, Exception):
        app.add_exception_handler(kind, respond_to_error)


def document_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the problems of a route for the schema."""
    schema = {"$ref": "#/components/schemas/ProblemDetails"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }
