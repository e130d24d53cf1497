"""A server of the lab alone, without the site: what an installed wheel serves.

Its folder has a manifest as the site's does, with what the lab's page and its engine load.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import RedirectResponse

from server.lab.directory import Worker
from server.lab.routes import lab_routes
from server.lab.store import StoreError
from server.lab.workers import WorkerError, serve_workers
from server.manifest import ManifestError, read_manifest
from server.middleware import RequestMiddleware
from server.problems import add_problem_handlers
from server.routes_assets import asset_routes
from server.routes_pages import not_found_page, page_routes
from server.running import AddressError, address_of, bound_socket, uvicorn_server, within_files
from server.settings import Settings, SettingsError, settings_from
from server.studio import lab_alone

TOKEN_BYTES = 16


class LabServerError(Exception):
    """The lab cannot be served; the message says why."""


def create_lab(settings: Settings, me: Worker | None = None, lifespan: Any = None) -> FastAPI:
    """The lab's page, the files that it loads, and the lab's own routes.

    One of several workers says who it is, and what runs as long as it does.

    Raises: ManifestError, StudioError; StoreError if the database cannot be opened
    """
    manifest, studio = read_manifest(settings.site), lab_alone(settings.tables)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False, lifespan=lifespan)
    app.include_router(asset_routes(manifest, settings))
    app.include_router(page_routes(manifest, settings, studio))
    app.include_router(lab_routes(settings, me))
    page = studio.pages[0].address

    @app.api_route("/", methods=["GET", "HEAD"])
    async def home() -> RedirectResponse:
        return RedirectResponse(page)

    add_problem_handlers(app, not_found_page(manifest, settings, studio))
    app.add_middleware(RequestMiddleware, settings=settings)
    return app


async def serve(
    folder: Path,
    told: Callable[[str], None],
    *,
    host: str,
    port: int,
    database: str,
    workers: int = 1,
    certificate: Path | None = None,
    key: Path | None = None,
) -> None:
    """Serves until it is stopped; `told` hears lines: where devices go, and what programs have to know.

    `port` is the first one that is tried, 0 takes a free one; `database` is SQLAlchemy's address of where results go,
    unless the environment names another. With a certificate it speaks HTTPS. Several `workers` are processes that share
    the database; then nothing else runs in this event loop.

    Raises: LabServerError
    """
    try:
        settings = settings_from(lab=True, site=folder, fetch_models="")
        token = settings.lab_token or secrets.token_urlsafe(TOKEN_BYTES)
        kept = settings.lab_database if settings.lab_database != Settings().lab_database else database
        hosts = settings.hosts | {host.lower()}
        settings = within_files(replace(settings, hosts=hosts, lab_token=token, lab_database=kept))
        app, listener = create_lab(settings), bound_socket(port, host)
        server = uvicorn_server(app, settings, certificate, key)
    except (AddressError, ManifestError, SettingsError, StoreError) as error:
        raise LabServerError(str(error)) from error
    try:
        server.config.load()  # reads the certificate
    except OSError as error:
        files = ", ".join(str(file) for file in (certificate, key) if file)
        raise LabServerError(f"{files}: no certificate with its key can be read there: {error.strerror}") from error
    lab = f"{address_of(listener, bool(certificate))}/lab#token={token}"
    told(f"the lab: open {lab} on each device")
    told(f"programs: export WEBINFER_LAB='{lab}'")
    told(f"results go to {kept}   (stop with Ctrl-C)")
    if workers == 1:
        await server.serve(sockets=[listener])
        return
    try:
        serve_workers(create_lab, settings, listener, workers, certificate=certificate, key=key)
    except (ManifestError, StoreError, WorkerError) as error:
        raise LabServerError(str(error)) from error
