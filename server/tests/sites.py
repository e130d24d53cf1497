"""A small built site, made by hand, so that these tests need no set-up step."""

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path

from server.settings import Settings

SCRIPT = b"export const answer = 42;\n" * 100
FILES = {
    "static/page.js": ("assets/static-1/page.js", "text/javascript; charset=utf-8", SCRIPT),
    "kernels/k.wasm": ("assets/kernels-1/k.wasm", "application/wasm", b"\0asm\1\0\0\0"),
    "models/m.tflite": ("assets/models/m-1.tflite", "application/octet-stream", bytes(range(256)) * 4),
}
TEMPLATE = """<!doctype html><title>{{ title }} {{ version }}</title>
<script type="module" src="{{ assets['static/page.js'] }}"></script>
<script type="application/json" id="manifest">{{ manifest }}</script>
"""


def made_site(folder: Path) -> Settings:
    """Settings for a site of three files, written into the folder."""
    site = folder / "site"
    rows = {}
    for logical, (path, media_type, data) in FILES.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        encodings = {}
        if logical == "static/page.js":
            (site / (path + ".gz")).write_bytes(gzip.compress(data))
            (site / (path + ".br")).write_bytes(b"not really brotli, served as it is")
            encodings = {"gzip": 1, "br": 1}
        rows[logical] = {
            "url": f"/{path}", "bytes": len(data), "sha256": digest, "type": media_type, "encodings": encodings,
        }  # fmt: skip
    manifest = {"version": 1, "engine": "1.2.3", "folders": {"static": "/assets/static-1/"}, "assets": rows}
    (site / "manifest.json").write_text(json.dumps(manifest))
    templates = folder / "templates"
    templates.mkdir()
    (templates / "demo.html").write_text(TEMPLATE)
    return replace(Settings(), site=site, templates=templates)
