"""The pages that are applications; the documentation's are in routes_docs.py."""

from collections.abc import Callable
from functools import partial

from fastapi import APIRouter, Request, Response

from server.contexts import ProblemView, frame_of, island, page_view, task_view
from server.manifest import Manifest
from server.pages import PageRenderer, not_found_response, page_response
from server.routes_rivals import INDEX
from server.settings import Settings
from server.studio import Studio


def application_pages(manifest: Manifest, settings: Settings, studio: Studio) -> dict[str, bytes]:
    """Each demo's page, and each that is none, by its address."""
    render = PageRenderer(settings)
    data = island(manifest, settings)
    fetches, rivals = bool(settings.fetch_models), INDEX if settings.rivals else ""
    views = [task_view(manifest, studio, demo, data, fetches) for demo in studio.demos]
    bodies = {view.demo.address: render("task.html", view) for view in views}
    for page in studio.pages:
        bodies[page.address] = render(f"{page.slug}.html", page_view(manifest, studio, page, views, rivals, data))
    return bodies


def not_found_page(manifest: Manifest, settings: Settings, studio: Studio) -> Callable[[], Response]:
    """What answers people who open an address that has no page."""
    view = ProblemView(frame_of(manifest, studio, ""), "Page not found", studio.documented)
    return partial(not_found_response, PageRenderer(settings)("problem.html", view))


def page_routes(manifest: Manifest, settings: Settings, studio: Studio) -> APIRouter:
    """The route of each demo, and of each page that is none."""
    router = APIRouter()
    bodies = application_pages(manifest, settings, studio)

    async def application(request: Request) -> Response:
        return page_response(bodies[request.scope["path"]], request)

    for address in bodies:
        router.add_api_route(address, application, methods=["GET", "HEAD"])
    return router
