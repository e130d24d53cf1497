"""Errors as JSON problem bodies: a code, a sentence and the request's id; never a stack or a path.

A browser that opens an address without a page gets a page that says so and leads back.
"""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

TITLES = {
    400: ("bad-request", "The request could not be understood."),
    401: ("token", "The lab's token is missing or wrong. Open the address that the server printed: it has the token."),
    403: ("forbidden", "This address does not answer requests from there."),
    404: ("not-found", "There is nothing at this address."),
    405: ("method-not-allowed", "This address does not take that method."),
    416: ("range-not-satisfiable", "The range lies outside of the file."),
    422: ("invalid", "A value in the request is not valid."),
    429: ("too-many", "Too much is under way for this client; come again in a few seconds."),
    503: ("busy", "The server has too much to do at the moment; come again in a few seconds."),
}
MEDIA_TYPE = "application/problem+json"


def problem(status: int, request_id: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """The response for a status."""
    code, title = TITLES.get(status, ("internal", "Something went wrong on the server."))
    body = {"code": code, "title": title, "status": status, "request_id": request_id}
    return JSONResponse(body, status, headers={"Cache-Control": "no-store", **(headers or {})}, media_type=MEDIA_TYPE)


def wants_page(request: Request) -> bool:
    """Whether a person opened the address in a browser: scripts and images do not ask for HTML."""
    return request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")


def add_problem_handlers(app: FastAPI, not_found: Callable[[], Response]) -> None:
    """Makes every error of the app a problem body; `not_found` answers people at an address without a page."""

    async def on_http(request: Request, error: Any) -> Response:
        if error.status_code == 404 and wants_page(request):
            return not_found()
        return problem(error.status_code, request.scope.get("request_id", ""), error.headers)

    async def on_invalid(request: Request, error: Any) -> JSONResponse:
        return problem(422, request.scope.get("request_id", ""))

    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_invalid)
