"""A third-party web site without any webinfer code: Pyodide as npm publishes it, the wheel, a model."""

import contextlib
import http.server
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from playwright.sync_api import BrowserContext, Route

from build_scripts.loopback import on_loopback
from build_scripts.paths import BROWSER_WHEELS, NODE_MODULES, PAGE_ENGINE, WEB, WHEELS
from build_scripts.places.probe import MODEL
from build_scripts.site.wheel import wheel_name

LOCK = "pyodide-lock.json"
ISOLATION = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
TYPES = {
    ".css": "text/css", ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".json": "application/json",
    ".mjs": "text/javascript", ".wasm": "application/wasm",
}  # fmt: skip
# A page's or a worker's own start of Pyodide; micropip and what the wheel depends on come from here, not from a CDN.
GUEST = """
import { loadPyodide } from "/pyodide/pyodide.mjs";
export async function answer(wheel, code) {
  const pyodide = await loadPyodide({ lockFileURL: new URL("/lock/pyodide-lock.json", self.location.href).href });
  await pyodide.loadPackage("micropip");
  await pyodide.runPythonAsync(`import micropip\\nawait micropip.install(${JSON.stringify(wheel)})`);
  return pyodide.runPythonAsync(code);
}
"""
PAGE = """<!doctype html><title>guest</title><script type="module">
import { answer } from "/guest.js";
window.inPage = answer;
window.inWorker = (...given) => new Promise((resolve, reject) => {
  const worker = new Worker("/worker.js", { type: "module" });
  worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data.answer));
  worker.onerror = (event) => reject(new Error(event.message));
  worker.postMessage(given);
});
window.open_ = true;
</script>"""
WORKER = """
import { answer } from "/guest.js";
self.onmessage = ({ data }) => answer(...data).then(
  (answer) => self.postMessage({ answer }), (error) => self.postMessage({ error: String(error) }));
"""


def guest_lock() -> str:
    """Pyodide's own lock file with micropip, Jinja2 and MarkupSafe, and nothing of webinfer."""
    lock = json.loads((PAGE_ENGINE / LOCK).read_text())
    del lock["packages"]["webinfer"]
    return json.dumps(lock)


def guest_files() -> dict[str, Path | str]:
    """Every address of the site: a file, a folder where it ends in "/", or text."""
    wheels = {f"/lock/{path.name}": path for path in BROWSER_WHEELS.glob("*.whl")}
    pages = {"/": PAGE, "/guest.js": GUEST, "/worker.js": WORKER, f"/lock/{LOCK}": guest_lock()}
    wheel, model = WHEELS / wheel_name(), {f"/{MODEL.name}": MODEL}
    return {**pages, **wheels, **model, f"/{wheel.name}": wheel, "/pyodide/": NODE_MODULES / "pyodide"}


def documented(kind: str) -> str:
    """The page or notebook that the documentation shows under this mark."""
    text = (WEB / "docs" / "anywhere.md").read_text()
    return text.partition(f"```{kind}\n")[2].partition("```")[0]


def stand_in(context: BrowserContext, files: Mapping[str, Path | str]) -> None:
    """Answers for the servers that pages of the documentation name: example.org, and the one that has Pyodide."""
    wheels = {f"/{path.name}": path for path in BROWSER_WHEELS.glob("*.whl")}
    beside = {f"/pyodide{name}": path for name, path in wheels.items()}
    ours = {**files, **beside, f"/pyodide/{LOCK}": guest_lock()}
    context.route("https://example.org/**", lambda route: fulfil(route, ours, route.request.url.partition(".org")[2]))
    stand_in_for_pyodide(context, {f"/{LOCK}": guest_lock(), **wheels, "/": NODE_MODULES / "pyodide"})


def stand_in_for_pyodide(context: BrowserContext, files: Mapping[str, Path | str]) -> None:
    """Answers for the server that has Pyodide and its packages, with these."""
    context.route(
        "**/pyodide/v*/full/*", lambda route: fulfil(route, files, "/" + route.request.url.rpartition("/")[2])
    )


def fulfil(route: Route, rows: Mapping[str, Path | str], path: str) -> None:
    """Answers a request with what these rows have at this path, or with 404."""
    data = _found(rows, path)
    kind = TYPES.get(Path(path).suffix or ".html", "application/octet-stream")
    headers = {"Content-Type": kind, "Access-Control-Allow-Origin": "*"}
    route.fulfill(status=404 if data is None else 200, body=data or b"", headers=headers)


@contextlib.contextmanager
def guest_site(isolated: bool = False, files: Mapping[str, Path | str] | None = None) -> Iterator[str]:
    """The address of a running server of these files, `guest_files` where none are given."""
    rows = files if files is not None else guest_files()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Answers with a file, or with 404."""
            path = unquote(self.path.partition("?")[0])
            data = _found(rows, path)
            self.send_response(404 if data is None else 200)
            suffix = Path(path).suffix or ".html"
            headers = {"Content-Type": TYPES.get(suffix, "application/octet-stream"), **(ISOLATION if isolated else {})}
            for name, value in {**headers, "Content-Length": str(len(data or b""))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    with on_loopback(Handler) as address:
        yield address


def _found(rows: Mapping[str, Path | str], path: str) -> bytes | None:
    """The bytes at an address."""
    row = rows.get(path)
    if row is None:
        folders = (
            name for name in rows if name.endswith("/") and isinstance(rows[name], Path) and path.startswith(name)
        )
        folder = next(folders, None)
        if folder is None:
            return None
        root = Path(rows[folder]).resolve()
        row = (root / path.removeprefix(folder)).resolve()
        row = row / "index.html" if row.is_dir() else row
        if not row.is_relative_to(root):
            return None
    if isinstance(row, str):
        return row.encode()
    return row.read_bytes() if row.is_file() else None
