"""Runtimes of others below /rivals/, where the server was started with a folder of them; only workers run them."""

from pathlib import Path

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import FileResponse

INDEX = "/rivals/rivals.json"  # which there are, and the models that they can be given
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}
# Threads of TensorFlow.js and of Emscripten are workers made of blobs.
POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval' blob:; worker-src 'self' blob:; "
    "connect-src 'self' blob: data:"
)


def rivals_routes(folder: Path) -> APIRouter:
    """The route of the files that are in the folder now."""
    router = APIRouter()
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}

    @router.api_route("/rivals/{name:path}", methods=["GET", "HEAD"])
    async def rival(name: str) -> Response:
        if (path := files.get(name)) is None:
            raise HTTPException(404)
        headers = {"Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
        return FileResponse(path, media_type=TYPES.get(path.suffix, "application/octet-stream"), headers=headers)

    return router
