"""A hub of models on this machine: repositories that redirect to where the bytes lie, as Hugging Face's does."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Hub:
    """What it serves, how it fails, and which requests came."""

    files: dict[str, bytes] = field(default_factory=dict)  # "owner/name/file"
    breaks: list[int] = field(default_factory=list)  # of the next answers: bytes after which the connection ends
    damaged: int = 0  # answers to come with another first byte
    headers: dict[str, str] = field(default_factory=dict)  # of every file, beside its own
    etags: bool = True
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    address: str = ""

    def paths(self) -> list[str]:
        """The paths that were asked for."""
        return [path for _, path, _ in self.seen]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        hub = self.hub
        hub.seen.append((self.command, self.path, dict(self.headers.items())))
        parts = self.path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            names = [name.split("/", 2)[2] for name in hub.files if name.startswith("/".join(parts[2:4]) + "/")]
            return self._send(json.dumps({"siblings": [{"rfilename": name} for name in names]}).encode(), {})
        if "resolve" in parts:
            name = "/".join(parts[:2] + parts[4:])
            if name not in hub.files:
                return self._send(b"Entry not found", {}, 404)
            sha256 = hashlib.sha256(hub.files[name]).hexdigest()
            return self._send(b"", {"Location": f"/bytes/{name}", "X-Linked-Etag": f'"{sha256}"'}, 302)
        data = hub.files.get("/".join(parts[1:]))
        if data is None:
            return self._send(b"", {}, 404)
        return self._file(data)

    def _file(self, data: bytes) -> None:
        etag = f'"{hashlib.md5(data).hexdigest()}"'
        if self.headers.get("If-None-Match") == etag:
            return self._send(b"", {"ETag": etag}, 304)
        headers, status, begin = dict(self.hub.headers), 200, 0
        if self.hub.etags:
            headers["ETag"] = etag
        asked = self.headers.get("Range", "")
        if asked and self.headers.get("If-Range") == etag:
            begin, status = int(asked.removeprefix("bytes=").rstrip("-")), 206
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        if self.hub.damaged:
            self.hub.damaged -= 1
            data = bytes([data[0] ^ 1]) + data[1:]
        self._send(data[begin:], headers, status, self.hub.breaks.pop(0) if self.hub.breaks else None)

    def _send(self, body: bytes, headers: dict[str, str], status: int = 200, ends: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:ends])
        self.close_connection = ends is not None


@contextmanager
def served_hub() -> Iterator[Hub]:
    """The hub, which listens."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hub.address = f"http://127.0.0.1:{server.server_port}"
        yield hub
        server.shutdown()
