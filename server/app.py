"""Puts the server together."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from server.manifest import read_manifest
from server.middleware import RequestMiddleware
from server.problems import add_problem_handlers
from server.routes_api import api_routes
from server.routes_assets import asset_routes
from server.routes_docs import docs_routes
from server.routes_pages import not_found_page, page_routes
from server.routes_rivals import rivals_routes
from server.settings import Settings
from server.studio import read_studio

if TYPE_CHECKING:
    from server.lab.directory import Worker


def create_app(settings: Settings | None = None, me: "Worker | None" = None, lifespan: Any = None) -> FastAPI:
    """The server for one built site. One of several workers of a lab says who it is, and what runs as
    long as it does.

    Raises: ManifestError if the site was not built, StudioError if a page's row is wrong, DocsError if a page of the
            documentation is broken
    """
    settings = settings or Settings()
    manifest, studio = read_manifest(settings.site), read_studio(settings.tables, settings.lab)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False, lifespan=lifespan)
    app.include_router(docs_routes(manifest, settings, studio))
    app.include_router(asset_routes(manifest, settings))
    app.include_router(api_routes(manifest, settings))
    app.include_router(page_routes(manifest, settings, studio))
    if settings.rivals:
        app.include_router(rivals_routes(Path(settings.rivals)))
    if settings.lab:
        from server.lab.routes import lab_routes  # needs SQLAlchemy, which other servers do without

        app.include_router(lab_routes(settings, me))
    add_problem_handlers(app, not_found_page(manifest, settings, studio))
    app.add_middleware(RequestMiddleware, settings=settings)
    return app
