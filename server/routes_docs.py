"""The documentation: one HTML page for each Markdown file."""

from fastapi import APIRouter, HTTPException, Request, Response

from server.contexts import docs_pages
from server.docs import read_docs
from server.manifest import Manifest
from server.pages import PageRenderer, page_response
from server.settings import Settings
from server.studio import Studio


def documentation_pages(manifest: Manifest, settings: Settings, studio: Studio) -> dict[str, bytes]:
    """Each page of the documentation by its name.

    Raises: DocsError if one is broken
    """
    render = PageRenderer(settings)
    contexts = docs_pages(manifest, studio, read_docs(settings.docs))
    return {context.page.name: render("docs.html", context) for context in contexts}


def docs_routes(manifest: Manifest, settings: Settings, studio: Studio) -> APIRouter:
    """The routes /docs and /docs/<page>.

    Raises: DocsError if a page of the documentation is broken
    """
    router = APIRouter()
    bodies = documentation_pages(manifest, settings, studio)

    @router.api_route("/docs", methods=["GET", "HEAD"])
    async def first(request: Request) -> Response:
        return page_response(bodies["index"], request)

    @router.api_route("/docs/{name}", methods=["GET", "HEAD"])
    async def page(name: str, request: Request) -> Response:
        if name not in bodies or name == "index":  # the first page has one address
            raise HTTPException(404)
        return page_response(bodies[name], request)

    return router
