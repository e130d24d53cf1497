"""JSON for scripts and for monitoring."""

from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse

from server.manifest import Manifest
from server.packages import Packages
from server.settings import Settings


def api_routes(manifest: Manifest, settings: Settings) -> APIRouter:
    """Health, the manifest, and packages of models that can be asked for."""
    router = APIRouter()
    packages = Packages(manifest, settings)
    fresh = {"Cache-Control": "no-store"}

    @router.api_route("/healthz", methods=["GET", "HEAD"])
    async def health() -> JSONResponse:
        body: dict[str, Any] = {"status": "ok", "engine": manifest.engine, "assets": len(manifest.assets)}
        return JSONResponse(body, headers=fresh)

    @router.api_route("/api/manifest", methods=["GET", "HEAD"])
    async def site() -> JSONResponse:
        return JSONResponse(manifest.public, headers=fresh)

    @router.get("/api/packages")
    async def states() -> JSONResponse:
        found = {name: {"state": one.state, "message": one.message} for name, one in packages.known.items()}
        return JSONResponse(found, headers=fresh)

    @router.get("/api/packages/{name}")
    async def state(name: str) -> JSONResponse:
        if name not in packages.known:
            raise HTTPException(404)
        return JSONResponse(packages.known[name].public(), headers=fresh)

    @router.post("/api/packages/{name}")
    async def fetch(name: str, request: Request) -> JSONResponse:
        if name not in packages.known:
            raise HTTPException(404)
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise HTTPException(403)  # no other site makes this one fetch anything
        return JSONResponse(packages.ask(name).public(), headers=fresh)

    return router
