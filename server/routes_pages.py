"""The pages that are applications; the documentation's are in routes_docs.py."""

from fastapi import APIRouter, Request, Response

from server.contexts import demo_page
from server.manifest import Manifest
from server.pages import PageRenderer, page_response
from server.settings import Settings


def page_routes(manifest: Manifest, settings: Settings) -> APIRouter:
    """The route of the demo page."""
    router = APIRouter()
    demo = PageRenderer(settings)("demo.html", demo_page(manifest, settings))

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return page_response(demo, request)

    return router
