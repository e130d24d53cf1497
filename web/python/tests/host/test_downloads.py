"""Downloads from hosts as they are: encodings, redirects, no length, connections that end early, refusals."""

from __future__ import annotations

import gzip
import http.server
import threading
import zlib
from collections.abc import Iterator

import pytest

from webinfer.errors import LimitError, ModelFormatError
from webinfer.host import downloads
from webinfer.host.downloads import download

DATA = bytes(range(256)) * 3000


def raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


BODIES = {
    "/plain": (DATA, ""), "/gzip": (gzip.compress(DATA), "gzip"), "/x-gzip": (gzip.compress(DATA), "x-gzip"),
    "/deflate": (zlib.compress(DATA), "deflate"), "/raw": (raw(DATA), "deflate"), "/identity": (DATA, "identity"),
    "/members": (gzip.compress(DATA[:1000]) + gzip.compress(DATA[1000:]), "gzip"),
    "/twice": (gzip.compress(zlib.compress(DATA)), "deflate, gzip"),
    "/br": (DATA, "br"), "/torn": (gzip.compress(DATA)[:-9], "gzip"), "/broken": (b"\x1f\x8b" + bytes(90), "gzip"),
}  # fmt: skip


class Host(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        body, encoding = BODIES.get(self.path.removesuffix("/open").removesuffix("/early"), (b"", ""))
        self.send_response({"/moved": 302, "/none": 404}.get(self.path, 200))
        if self.path == "/moved":
            self.send_header("Location", "/gzip")
        if encoding:
            self.send_header("Content-Encoding", encoding)
        if self.path.endswith(("/open", "/early")):
            self.close_connection = True
        if not self.path.endswith("/open"):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path.endswith("/early") else body)


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    "path",
    "/plain /gzip /x-gzip /deflate /raw /identity /members /twice /moved /plain/open /gzip/open".split(),
)
def test_what_is_published_arrives_however_it_is_sent(host: str, path: str) -> None:
    told: list[tuple[float, float]] = []
    assert download(f"{host}{path}", lambda event: told.append((event.done, event.total))) == DATA
    assert told
    assert path.endswith("open") or told[-1][0] == told[-1][1]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/none", "the server answered 404 Not Found"), ("/br", "came as br.*or with gzip"),
        ("/torn", "ended inside its compressed data"), ("/broken", "cannot download"),
        ("/plain/early", "ended after"), ("/gzip/early", "ended after"),
    ],
)  # fmt: skip
def test_what_does_not_arrive_whole_is_an_error_that_says_why(host: str, path: str, said: str) -> None:
    with pytest.raises(ModelFormatError, match=said) as error:
        download(host + path)
    assert "urlopen" not in str(error.value)


def test_a_host_that_is_not_there_is_named_without_a_class_of_python() -> None:
    for url in ("http://127.0.0.1:1/x", "http://name.invalid/x"):
        with pytest.raises(ModelFormatError, match="check the address and the network") as error:
            download(url)
        assert not {"urlopen", "Errno", "<"} & set(str(error.value).replace("[", " ").split())
        assert "<urlopen" not in str(error.value)


def test_a_bomb_is_refused(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MAX_BYTES", 10_000)
    with pytest.raises(LimitError, match="use a smaller file"):
        download(f"{host}/gzip")
