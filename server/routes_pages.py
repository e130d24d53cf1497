"""HTML pages: rendered once at start, always revalidated."""

import hashlib
from dataclasses import fields

from fastapi import APIRouter, Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from server.contexts import DemoPage, demo_page
from server.manifest import Manifest
from server.settings import Settings


def page_routes(manifest: Manifest, settings: Settings) -> APIRouter:
    """The routes of all pages."""
    router = APIRouter()
    loader = FileSystemLoader(settings.templates)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    demo = _render(environment, "demo.html", demo_page(manifest, settings))

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return _page(demo, request)

    return router


def _render(environment: Environment, name: str, context: DemoPage) -> bytes:
    values = {field.name: getattr(context, field.name) for field in fields(context)}
    return environment.get_template(name).render(values).encode()


def _page(body: bytes, request: Request) -> Response:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="text/html")


def matches(header: str | None, etag: str) -> bool:
    """Whether an If-None-Match header names this entity tag; weak comparison, as RFC 9110 wants here."""
    if header is None:
        return False
    names = [name.strip().removeprefix("W/") for name in header.split(",")]
    return etag in names or names == ["*"]
