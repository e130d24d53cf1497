"""A small built site with its documentation, made by hand, so that these tests need no set-up step."""

import gzip
import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

from server.settings import Settings

SCRIPT = b"export const answer = 42;\n" * 100
FILES = {
    "static/page.js": ("assets/static-1/page.js", "text/javascript; charset=utf-8", SCRIPT),
    "kernels/k.wasm": ("assets/kernels-1/k.wasm", "application/wasm", b"\0asm\1\0\0\0"),
    "models/m.tflite": ("assets/models/m-1.tflite", "application/octet-stream", bytes(range(256)) * 4),
    "static/demo.css": ("assets/static-1/demo.css", "text/css; charset=utf-8", b"p {}"),
    "static/docs.css": ("assets/static-1/docs.css", "text/css; charset=utf-8", b"a {}"),
    "static/docs.js": ("assets/static-1/docs.js", "text/javascript; charset=utf-8", b"2;"),
    "static/home.js": ("assets/static-1/home.js", "text/javascript; charset=utf-8", b"0;"),
    "static/site.webmanifest": ("assets/static-1/site.webmanifest", "application/manifest+json", b"{}"),
    "static/results/boxes.js": ("assets/static-1/results/boxes.js", "text/javascript; charset=utf-8", b"1;"),
    "static/recorded.json": ("assets/static-1/recorded.json", "application/json", b"{}"),
    "static/icon.svg": ("assets/static-1/icon.svg", "image/svg+xml", b"<svg/>"),
}
DOCS = {
    "contents.toml": """[[section]]
title = "Read"
pages = ["index", "parts"]
""",
    "index.md": """# Start here

The first & best page. See [the parts](parts.md#a-part).

## Where to begin

![A box](box.svg)
""",
    "parts.md": """# Parts

## A part

    indented & plain

```python run
x = "<b>"
```

| a | b |
|---|---|
| 1 | <script>alert(1)</script> |

Back [up](index.md), or [below](#a-part).
""",
    "box.svg": """<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 9 9">
<title>A box</title><rect class="box"/></svg>
""",
}
TEMPLATE = """<!doctype html><title>{{ demo.title }} {{ frame.version }}</title>
<script type="module" src="{{ frame.assets['static/page.js'] }}"></script>
<script type="application/json" id="manifest">{{ manifest }}</script>
"""


TABLES = {
    "demos.toml": """[[demo]]
slug = "things"
task = "finder"
model = "m"
title = "Things & more"
summary = "Finds things"
group = "Pictures"
inputs = ["picture"]
sample = "static/icon.svg"
sample_says = "a thing"

[[demo]]
slug = "late"
task = "finder"
model = "n"
title = "Late things"
summary = "Finds things with a model of a package"
group = "Pictures"
inputs = ["picture"]
sample = "static/icon.svg"
sample_says = "a thing"
""",
    "pages.toml": """[[page]]
slug = "home"
address = "/"
menu = "Demos"
title = "All demos"
summary = "Each runs here"
""",
}


def made_site(folder: Path) -> Settings:
    """Settings for a site of ten files and two pages of documentation, written into the folder."""
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
            (site / (path + ".zst")).write_bytes(b"not really zstd either")
            encodings = {"gzip": 1, "br": 1, "zstd": 1}
        rows[logical] = {
            "url": f"/{path}", "bytes": len(data), "sha256": digest, "type": media_type, "encodings": encodings,
        }  # fmt: skip
    page = {
        "backends": [{"name": "auto", "title": "Auto", "hint": "The fastest"}],
        "models": {"m": ["models/m.tflite"], "n": ["models/n.tflite"]},
    }
    page |= {"tasks": {"finder": {"kind": "boxes"}}}
    page |= {"late": {"models/n.tflite": "pack"}, "packages": {"pack": 7}}
    folders = {"static": "/assets/static-1/"}
    manifest = {"version": 1, "engine": "1.2.3", "page": page, "folders": folders, "assets": rows}
    (site / "manifest.json").write_text(json.dumps(manifest))
    (folder / "model_bytes.json").write_text("{}")
    templates = folder / "templates"
    templates.mkdir()
    (templates / "task.html").write_text(TEMPLATE)
    for name in ("base.html", "docs.html", "home.html", "problem.html"):
        shutil.copy(Settings().templates / name, templates)
    docs = folder / "docs"
    docs.mkdir()
    for name, text in DOCS.items():
        (docs / name).write_text(text)
    for name, text in TABLES.items():
        (folder / name).write_text(text)
    return replace(Settings(), tables=folder, site=site, templates=templates, docs=docs)
