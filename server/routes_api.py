"""JSON for scripts and for whoever watches the server."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from server.manifest import Manifest


def api_routes(manifest: Manifest) -> APIRouter:
    """Health and the manifest."""
    router = APIRouter()
    fresh = {"Cache-Control": "no-store"}

    @router.api_route("/healthz", methods=["GET", "HEAD"])
    async def health() -> JSONResponse:
        body: dict[str, Any] = {"status": "ok", "engine": manifest.engine, "assets": len(manifest.assets)}
        return JSONResponse(body, headers=fresh)

    @router.api_route("/api/manifest", methods=["GET", "HEAD"])
    async def site() -> JSONResponse:
        return JSONResponse(manifest.public, headers=fresh)

    return router
