"""What every HTML page has in common: rendered once at start, revalidated at every visit."""

from dataclasses import fields
from typing import TYPE_CHECKING

from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from server.etags import etag_of, matches
from server.settings import Settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class PageRenderer:
    """Renders templates; a name that a page's context lacks is an error, and every value is escaped."""

    def __init__(self, settings: Settings) -> None:
        loader = FileSystemLoader(settings.templates)
        self.environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)

    def __call__(self, template: str, context: "DataclassInstance") -> bytes:
        """The template, filled with the fields of the context."""
        values = {field.name: getattr(context, field.name) for field in fields(context)}
        return self.environment.get_template(template).render(values).encode()


def page_response(body: bytes, request: Request) -> Response:
    """The page, or 304 without a body if the client has this very version."""
    etag = etag_of(body)
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="text/html")
