"""The documentation: one HTML page for each Markdown file, and what its search looks through."""

import json

from fastapi import APIRouter, HTTPException, Request, Response

from server.contexts import docs_pages
from server.docs import NOTEBOOK, outline, read_docs, search_index
from server.manifest import Manifest
from server.notebook import PAGE, notebook_of
from server.pages import PageRenderer, page_response
from server.settings import Settings
from server.studio import Studio

SEARCH, OUTLINE = "docs/search.json", "llms.txt"  # the files beside the pages


def documentation(manifest: Manifest, settings: Settings, studio: Studio) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Each page of the documentation by its name, and the files beside them by their paths below the site's root.

    Raises: DocsError if a page is broken
    """
    render = PageRenderer(settings)
    sections = read_docs(settings.docs, settings.engine)
    pages = {context.page.name: render("docs.html", context) for context in docs_pages(manifest, studio, sections)}
    searched = json.dumps(search_index(sections), ensure_ascii=False)
    beside = {SEARCH: searched.encode(), OUTLINE: outline(sections).encode()}
    if (notebook := settings.docs / f"{PAGE}.md").is_file():
        beside[f"docs/{NOTEBOOK}"] = notebook_of(notebook.read_text(encoding="utf-8"))
    return pages, beside


def docs_routes(manifest: Manifest, settings: Settings, studio: Studio) -> APIRouter:
    """The routes /docs, /docs/search.json, /docs/notebook.ipynb, /docs/<page> and /llms.txt.

    Raises: DocsError if a page of the documentation is broken
    """
    router = APIRouter()
    bodies, beside = documentation(manifest, settings, studio)

    @router.api_route("/docs", methods=["GET", "HEAD"])
    async def first(request: Request) -> Response:
        return page_response(bodies["index"], request)

    @router.api_route("/docs/search.json", methods=["GET", "HEAD"])
    async def search(request: Request) -> Response:
        return page_response(beside[SEARCH], request, "application/json")

    @router.api_route(f"/docs/{NOTEBOOK}", methods=["GET", "HEAD"])
    async def notebook(request: Request) -> Response:
        if f"docs/{NOTEBOOK}" not in beside:
            raise HTTPException(404)
        return page_response(beside[f"docs/{NOTEBOOK}"], request, "application/x-ipynb+json")

    @router.api_route(f"/{OUTLINE}", methods=["GET", "HEAD"])
    async def outlined(request: Request) -> Response:
        return page_response(beside[OUTLINE], request, "text/markdown; charset=utf-8")

    @router.api_route("/docs/{name}", methods=["GET", "HEAD"])
    async def page(name: str, request: Request) -> Response:
        if name not in bodies or name == "index":  # the first page has one address
            raise HTTPException(404)
        return page_response(bodies[name], request)

    return router
