"""What every HTML page has in common: rendered once at start, revalidated at every visit."""

import gzip
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING

from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from server.etags import etag_of, matches
from server.integrity import policy_with
from server.middleware import CONTENT_SECURITY_POLICY
from server.routes_assets import chosen_encoding
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


@lru_cache(maxsize=256)
def _packed(body: bytes) -> bytes:
    """The page as gzip: a fourth of the bytes."""
    return gzip.compress(body, compresslevel=9, mtime=0)


@lru_cache(maxsize=256)
def _policy(body: bytes) -> str:
    return policy_with(CONTENT_SECURITY_POLICY, body.decode())


def not_found_response(body: bytes) -> Response:
    """The page that says that there is none at this address."""
    headers = {"Cache-Control": "no-store", "Vary": "Accept", "Content-Security-Policy": _policy(body)}
    return Response(body, 404, headers=headers, media_type="text/html")


def page_response(body: bytes, request: Request, media_type: str = "text/html") -> Response:
    """The page, compressed for who takes that, or 304 without a body if the client has this very version.

    `media_type` is another one of a file that pages read and that was made at start, too.
    """
    encoding = chosen_encoding({"gzip": None}, request.headers)
    sent = _packed(body) if encoding else body
    etag = etag_of(sent)
    headers = {"ETag": etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if media_type == "text/html":
        headers["Content-Security-Policy"] = _policy(body)
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    if encoding:
        headers["Content-Encoding"] = encoding
    return Response(sent, headers=headers, media_type=media_type)
