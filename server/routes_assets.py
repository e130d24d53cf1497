"""Files with a hash in their name: ranges, entity tags, compressed variants, kept for ever."""

from collections.abc import Mapping

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse

from server.etags import matches
from server.manifest import Asset, Manifest
from server.settings import Settings


def asset_routes(manifest: Manifest, settings: Settings) -> APIRouter:
    """The one route below /assets/."""
    router = APIRouter()
    caching = f"public, max-age={settings.hashed_max_age_s}, immutable"

    @router.api_route("/assets/{name:path}", methods=["GET", "HEAD"])
    async def asset(name: str, request: Request) -> Response:
        found = manifest.assets.get(f"/assets/{name}")
        if found is None:
            raise HTTPException(404)
        return _answer(found, request, caching)

    return router


def _answer(asset: Asset, request: Request, caching: str) -> Response:
    # Ranges count bytes of the file itself, so a request with a range never gets a compressed variant.
    encoding = "" if "range" in request.headers else chosen_encoding(asset.encodings, request.headers)
    etag = f'"{asset.sha256[:32]}{"-" + encoding if encoding else ""}"'
    headers = {"ETag": etag, "Cache-Control": caching, "Content-Type": asset.media_type}
    if asset.encodings:
        headers["Vary"] = "Accept-Encoding"
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    if encoding:
        headers["Content-Encoding"] = encoding
    return FileResponse(asset.encodings.get(encoding, asset.file), headers=headers)


def chosen_encoding(offered: Mapping[str, object], headers: Mapping[str, str]) -> str:
    """The best encoding that is offered and accepted, or "" for none."""
    accepted = {}
    for part in headers.get("accept-encoding", "").lower().split(","):
        name, _, parameter = part.partition(";")
        accepted[name.strip()] = parameter.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return next((name for name in ("br", "gzip") if name in offered and accepted.get(name, False)), "")
