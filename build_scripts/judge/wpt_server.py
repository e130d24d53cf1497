"""Serves the W3C's tests of WebNN with our module in each page, as the suite's own server would serve them.

The suite writes one script for several kinds of pages: `X.any.js` becomes `X.any.html` here, with the scripts that its
META lines name. The host page holds Python, once for all tests; each test is a page in a frame of it.
"""

import contextlib
import functools
import http.server
import json
import re
from collections.abc import Iterator
from pathlib import Path

from build_scripts.loopback import on_loopback
from build_scripts.paths import SITE

META = re.compile(r"^//\s*META:\s*(\w+)=(.*?)\s*$", re.MULTILINE)
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cache-Control": "no-cache",
}
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".html": "text/html", ".json": "application/json",
         ".wasm": "application/wasm", ".idl": "text/plain", ".bin": "application/octet-stream"}  # fmt: skip
OURS = "/webinfer/"  # the site's files are below this
HOST = """<!doctype html><meta charset="utf-8"><title>WebNN tests</title><script type="module">
const { startEngine } = await import("OURSwebnn.mjs");
const engine = startEngine(new URL("OURSwebnn.json", location.href).href);
self.startEngine = () => engine;
let finish = null;
self.finished = (found) => finish?.(found);
self.runTest = async (url, limitMs) => {
  const frame = document.createElement("iframe");
  const done = new Promise((resolve) => (finish = resolve));
  const none = { status: -1, message: "no answer in time", tests: [] };
  const late = new Promise((resolve) => setTimeout(resolve, limitMs, none));
  frame.src = url;
  document.body.append(frame);
  const found = await Promise.race([done, late]);
  frame.remove();
  return found;
};
await engine;
self.isReady = true;
</script>""".replace("OURS", OURS)
REPORT = b"""add_completion_callback((tests, { status, message }) => {
  parent.finished({ status, message, tests: tests.map(({ name, status, message }) => [name, status, message]) });
});
setup({ output: false });
"""
PAGE = """<!doctype html><meta charset="utf-8"><meta name="timeout" content="long"><script>
self.GLOBAL = { isWindow: () => true, isWorker: () => false, isShadowRealm: () => false };
</script><script type="module">
const { install } = await import("OURSwebnn.mjs");
install(parent.startEngine);
for (const src of SCRIPTS) await new Promise((resolve, reject) => {
  const script = Object.assign(document.createElement("script"), { src, onload: resolve, onerror: reject });
  document.head.append(script);
});
dispatchEvent(new Event("load"));
</script>""".replace("OURS", OURS)


def tests_of(root: Path, variant: str, pattern: str) -> list[str]:
    """The addresses of the suite's pages for this variant whose path fits the pattern."""
    found = []
    for path in sorted((root / "webnn").rglob("*.js")):
        where = path.relative_to(root).as_posix()
        if not where.endswith((".any.js", ".window.js")) or not re.search(pattern, where):
            continue
        variants = [value for key, value in META.findall(path.read_text()) if key == "variant"]
        chosen = [value for value in variants if variant in value]
        if chosen or not variants:
            found += [f"/{where.removesuffix('.js')}.html{value}" for value in chosen or [""]]
    return found


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *args: object, root: Path) -> None:
        self._root = root
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/":
            return self._send(HOST.encode(), ".html")
        if path == "/resources/testharnessreport.js":
            return self._send(REPORT, ".js")
        if path == "/resources/WebIDLParser.js":
            path = "/resources/webidl2/lib/webidl2.js"
        base = SITE if path.startswith(OURS) else self._root
        file = (base / path.removeprefix(OURS).lstrip("/")).resolve()
        if file.is_relative_to(base.resolve()) and file.is_file():
            return self._send(file.read_bytes(), file.suffix)
        script = file.with_suffix(".js")
        if file.suffix == ".html" and script.is_file():
            named = [value for key, value in META.findall(script.read_text()) if key == "script"]
            scripts = ["/resources/testharness.js", "/resources/testharnessreport.js", *named, script.name]
            return self._send(PAGE.replace("SCRIPTS", json.dumps(scripts)).encode(), ".html")
        self.send_error(404)
        return None

    def _send(self, data: bytes, suffix: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", TYPES.get(suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(len(data)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Silence: a line a request is of no use."""


@contextlib.contextmanager
def serving_suite(root: Path) -> Iterator[str]:
    """The address of the host page while the block runs."""
    with on_loopback(functools.partial(_Handler, root=root)) as address:
        yield address
