"""The documentation: one HTML page for each Markdown file, and what its search looks through."""

import json

from fastapi import APIRouter, HTTPException, Request, Response

from server.contexts import docs_pages
from server.docs import read_docs, search_index
from server.manifest import Manifest
from server.pages import PageRenderer, page_response
from server.settings import Settings
from server.studio import Studio


def documentation(manifest: Manifest, settings: Settings, studio: Studio) -> tuple[dict[str, bytes], bytes]:
    """Each page of the documentation by its name, and the JSON file that its search reads.

    Raises: DocsError if a page is broken
    """
    render = PageRenderer(settings)
    sections = read_docs(settings.docs)
    pages = {context.page.name: render("docs.html", context) for context in docs_pages(manifest, studio, sections)}
    return pages, json.dumps(search_index(sections), ensure_ascii=False).encode()


def docs_routes(manifest: Manifest, settings: Settings, studio: Studio) -> APIRouter:
    """The routes /docs, /docs/search.json and /docs/<page>.

    Raises: DocsError if a page of the documentation is broken
    """
    router = APIRouter()
    bodies, searched = documentation(manifest, settings, studio)

    @router.api_route("/docs", methods=["GET", "HEAD"])
    async def first(request: Request) -> Response:
        return page_response(bodies["index"], request)

    @router.api_route("/docs/search.json", methods=["GET", "HEAD"])
    async def search(request: Request) -> Response:
        return page_response(searched, request, "application/json")

    @router.api_route("/docs/{name}", methods=["GET", "HEAD"])
    async def page(name: str, request: Request) -> Response:
        if name not in bodies or name == "index":  # the first page has one address
            raise HTTPException(404)
        return page_response(bodies[name], request)

    return router
