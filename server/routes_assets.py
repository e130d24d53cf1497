"""Files with a hash in their name: ranges, entity tags, compressed variants, kept for ever."""

import asyncio
import re
from collections.abc import Mapping

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from server.etags import matches
from server.files import PIECES_AT_A_TIME, WholeFile
from server.manifest import SUFFIXES, Asset, Manifest
from server.ranges import requested_ranges
from server.settings import Settings

SERVICE_WORKER = "service_worker.js"


def asset_routes(manifest: Manifest, settings: Settings) -> APIRouter:
    """The route below /assets/, and those whose addresses stay: the service worker's, for it decides what it may serve,
    what pages import for WebNN, and the wheel's, which people type."""
    router = APIRouter()
    turns = asyncio.Semaphore(PIECES_AT_A_TIME)
    caching = f"public, max-age={settings.hashed_max_age_s}, immutable"

    @router.api_route("/assets/{name:path}", methods=["GET", "HEAD"])
    async def asset(name: str, request: Request) -> Response:
        found = manifest.assets.get(f"/assets/{name}")
        if found is None:
            raise HTTPException(404)
        return _answer(found, request, caching, turns)

    @router.api_route(f"/{SERVICE_WORKER}", methods=["GET", "HEAD"])
    async def service_worker(request: Request) -> Response:
        found = manifest.assets.get(manifest.urls.get(f"static/{SERVICE_WORKER}", ""))
        if found is None:
            raise HTTPException(404)
        return _answer(found, request, "no-cache", turns)

    wheels = {name.removeprefix("wheel"): url for name, url in manifest.urls.items() if name.startswith("wheel/")}

    async def wheel(request: Request) -> Response:
        return _answer(manifest.assets[wheels[request.scope["path"]]], request, "no-cache", turns)

    for address in wheels:
        router.add_api_route(address, wheel, methods=["GET", "HEAD"])

    @router.get("/webnn.js")
    @router.get("/webnn.mjs")  # its name until 0.2
    async def webnn() -> Response:
        """The address of WebNN for other people's pages stays, too."""
        script = f'export * from "{manifest.urls["static/webnn.js"]}";\n'
        return Response(script, media_type="text/javascript", headers={"Cache-Control": "no-cache"})

    @router.get("/webnn.json")
    async def files() -> Response:
        return JSONResponse({"assets": manifest.public["assets"]}, headers={"Cache-Control": "no-cache"})

    return router


def _answer(asset: Asset, request: Request, caching: str, turns: asyncio.Semaphore) -> Response:
    # Ranges count bytes of the file itself, so a request with a range never gets a compressed variant.
    ranged = _keep_valid_range(request, asset)
    encoding = "" if ranged else chosen_encoding(asset.encodings, request.headers)
    etag = f'"{asset.sha256[:32]}{"-" + encoding if encoding else ""}"'
    headers = {"ETag": etag, "Cache-Control": caching, "Content-Type": asset.media_type}
    if asset.encodings:
        headers["Vary"] = "Accept-Encoding"
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    if encoding:
        headers["Content-Encoding"] = encoding
    file = asset.encodings.get(encoding, asset.file)
    return FileResponse(file, headers=headers) if ranged else WholeFile(file, headers, turns)


def _keep_valid_range(request: Request, asset: Asset) -> bool:
    """Whether parts of the file are asked for; a Range header that has to be ignored leaves the request.

    Raises: HTTPException 416 with the file's size if no byte of it is in the ranges
    """
    asked, condition = request.headers.get("range"), request.headers.get("if-range")
    if asked is None:
        return False
    size = asset.file.stat().st_size
    current = condition is None or condition == f'"{asset.sha256[:32]}"'
    spans = requested_ranges(asked, size) if current and request.method == "GET" else None
    if spans == []:
        raise HTTPException(416, headers={"Content-Range": f"bytes */{size}"})
    others = [(name, value) for name, value in request.scope["headers"] if name != b"range"]
    if spans is not None:
        others.append((b"range", ("bytes=" + ",".join(f"{first}-{last}" for first, last in spans)).encode()))
    request.scope["headers"] = others
    return spans is not None


def chosen_encoding(offered: Mapping[str, object], headers: Mapping[str, str]) -> str:
    """The encoding that is offered and that the client likes best, of equals the first of SUFFIXES; else "".

    Source: RFC 9110, section 12.5.3
    """
    weights: dict[str, float] = {}
    for part in headers.get("accept-encoding", "").lower().split(","):
        name, _, parameter = part.partition(";")
        weights[name.strip()] = _weight(parameter)
    plain = weights.get("identity", 0.0)  # below every encoding that is named, unless the client says otherwise
    liked = [(weights.get(name, weights.get("*", 0.0)), name) for name in SUFFIXES if name in offered]
    weight, best = max(liked, key=lambda pair: pair[0], default=(0.0, ""))
    return best if weight > 0 and weight >= plain else ""


def _weight(parameter: str) -> float:
    """The number behind "q=", from 0 to 1; 1 where there is none or it cannot be read."""
    match = re.fullmatch(r"q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)", parameter.replace(" ", ""))
    return float(match[1]) if match else 1.0
