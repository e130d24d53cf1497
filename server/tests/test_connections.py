"""Clients that are slow, many, or do not speak HTTP: none of them keeps the others from being served."""

import asyncio
import contextlib
import hashlib
import json
import logging
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.request import urlopen

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from build_scripts.site.serving import running_server
from server.app import create_app
from server.connections import LimitedProtocol, protocol_with_limits
from server.settings import Settings
from server.tests.sites import made_site

HEADER_TIMEOUT_S = 1
WRITE_TIMEOUT_S = 1
MAX_REQUESTS = 8
TURN_TIMEOUT_S = 0.3  # for a request to get one of these
LIMIT_S = 8
LARGE = 32 << 20  # bytes that no pair of sockets holds


@pytest.fixture(scope="module")
def large_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server that gives a client that does not read one second, and eight requests a turn each."""
    settings = made_site(tmp_path_factory.mktemp("large"))
    path, row = settings.site / "assets/large.bin", {"url": "/assets/large.bin", "bytes": LARGE, "encodings": {}}
    path.write_bytes(bytes(LARGE))
    manifest = json.loads((settings.site / "manifest.json").read_text())
    manifest["assets"]["large.bin"] = {**row, "sha256": "0" * 64, "type": "application/octet-stream"}
    (settings.site / "manifest.json").write_text(json.dumps(manifest))
    limited = replace(
        settings,
        write_timeout_s=WRITE_TIMEOUT_S,
        max_requests=MAX_REQUESTS,
        turn_timeout_s=TURN_TIMEOUT_S,
        hosts=frozenset({"localhost"}),
    )
    with running_server(limited) as address:
        yield int(address.rsplit(":", 1)[1])


def asked(port: int, path: str) -> socket.socket:
    """A connection on which a file was asked for, and nothing was read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    connection.connect(("127.0.0.1", port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def answer_of(port: int, request: bytes) -> bytes:
    """All that the server says to these bytes before it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
        return b"".join(parts)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder: Path = tmp_path_factory.mktemp("connections")
    limits = {"header_timeout_s": HEADER_TIMEOUT_S, "write_timeout_s": WRITE_TIMEOUT_S, "max_requests": MAX_REQUESTS}
    with running_server(replace(made_site(folder), **limits)) as address:  # type: ignore[arg-type]
        yield int(address.rsplit(":", 1)[1])


def seconds_until_closed(connection: socket.socket, drip: bytes) -> float:
    """How long the server takes a byte every tenth of a second."""
    start = time.monotonic()
    connection.settimeout(0.1)
    while time.monotonic() - start < LIMIT_S:
        try:
            if drip:
                connection.sendall(drip)
            if connection.recv(1) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - start


@pytest.mark.parametrize("drip", [b"", b"a"], ids=["silent", "dripping"])
@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "], ids=["nothing", "half a head"])
def test_a_head_that_does_not_end_ends_the_connection(port: int, sent: bytes, drip: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(sent)
        assert HEADER_TIMEOUT_S * 0.5 < seconds_until_closed(connection, drip) < LIMIT_S


def test_a_second_request_has_a_header_timeout_too(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert seconds_until_closed(connection, b"a") < LIMIT_S


def test_a_body_that_does_not_end_ends_the_connection(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 405")
        assert seconds_until_closed(connection, b"a") < LIMIT_S


def test_requests_one_after_the_other_are_served_beyond_the_timeout(port: int) -> None:
    connection = HTTPConnection("localhost", port, timeout=5)
    for _ in range(4):
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        time.sleep(HEADER_TIMEOUT_S * 0.4)
    connection.close()


def answered_as(connection: HTTPConnection, status: int) -> tuple[HTTPResponse, bytes]:
    """The first answer to /healthz that has this status, and its body."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == status:
            return answer, body
    raise AssertionError(f"no answer of status {status} within {LIMIT_S} s")


def test_who_does_not_read_is_let_go_and_the_others_are_served(large_port: int) -> None:
    unread = [asked(large_port, "/assets/large.bin") for _ in range(MAX_REQUESTS)]
    busy = HTTPConnection("localhost", large_port, timeout=LIMIT_S)
    refused, body = answered_as(busy, 503)  # once all turns are taken, and for TURN_TIMEOUT_S nobody's has ended
    assert json.loads(body)["code"] == "busy"
    assert int(refused.headers["Retry-After"]) > 0
    assert refused.headers["Content-Type"] == "application/problem+json"
    answered_as(busy, 200)  # once those who do not read are let go, after WRITE_TIMEOUT_S
    for connection in unread:
        connection.close()
    busy.close()


def test_a_slow_reader_that_goes_on_reading_gets_the_whole_file(large_port: int) -> None:
    with asked(large_port, "/assets/large.bin") as connection:
        count, begin = 0, time.monotonic()
        connection.settimeout(LIMIT_S)
        while count < LARGE:
            part = connection.recv(1 << 20)
            assert part, f"the server ended after {count} bytes"
            count += len(part)
            time.sleep(0.002)
        assert time.monotonic() - begin > WRITE_TIMEOUT_S / 4


@pytest.mark.parametrize("request_", [b"\x16\x03\x01\x00\xa5\r\n\r\n", b"GET / HTTP/1.1\r\nHost : a b\r\n\r\n"])
def test_what_is_no_http_is_answered_with_every_header(port: int, request_: bytes) -> None:
    head, _, body = answer_of(port, request_).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    for name in (b"content-security-policy", b"x-content-type-options", b"cross-origin-opener-policy", b"x-request-id"):
        assert b"\r\n" + name + b":" in head.lower()
    assert json.loads(body)["code"] == "bad-request"


def test_a_broken_body_leaves_no_traceback(port: int, caplog: pytest.LogCaptureFixture) -> None:
    head = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with caplog.at_level(logging.ERROR), contextlib.suppress(ConnectionResetError):
        answer_of(port, head + b"1;" + b"x" * (1 << 20) + b"\r\na\r\n0\r\n\r\n")
    time.sleep(0.2)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("host", ["[::1]evil.com", "localhost.evil.com", "[::1", "127.0.0.1:80:80", "local[host]", ""])
def test_a_host_that_only_begins_like_ours_is_refused(port: int, host: str) -> None:
    request = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    assert answer_of(port, request.encode()).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]", "[::1]:8000", "LOCALHOST:"])
def test_our_own_hosts_are_served(port: int, host: str) -> None:
    request = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    assert answer_of(port, request.encode()).startswith(b"HTTP/1.1 200")


def test_who_was_slow_once_may_go_on_after_the_write_timeout(large_port: int) -> None:
    connection = HTTPConnection("localhost", large_port, timeout=LIMIT_S)
    for path, rest_s in (("/assets/large.bin", WRITE_TIMEOUT_S + 0.3), ("/healthz", 0)):
        connection.request("GET", path)
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        time.sleep(rest_s)
    connection.close()


def test_a_connection_that_ends_leaves_no_timer(settings: Settings) -> None:
    protocol, made = protocol_with_limits(settings), list[LimitedProtocol]()

    def accept() -> LimitedProtocol:
        made.append(protocol(config=config, server_state=ServerState(), app_state={}))
        return made[-1]

    config = Config(create_app(settings), http=protocol)
    config.load()

    async def scenario() -> bool:
        loop = asyncio.get_running_loop()
        async with await loop.create_server(accept, "127.0.0.1", 0) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"GET / HTTP/1.1\r\n")
            while not made or made[0].header_timer is None:
                await asyncio.sleep(0.01)
            timer, end = made[0].header_timer, loop.time() + LIMIT_S
            writer.close()
            while not timer.cancelled() and loop.time() < end:
                await asyncio.sleep(0.01)
            return timer.cancelled()

    assert asyncio.run(scenario())


def test_small_answers_leave_at_once(large_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look(protocol: LimitedProtocol, data: bytes) -> None:
        connection = protocol.transport.get_extra_info("socket")
        seen.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        before(protocol, data)

    before = LimitedProtocol.data_received
    monkeypatch.setattr(LimitedProtocol, "data_received", look)
    assert b"200 OK" in answer_of(large_port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert seen
    assert all(seen)


def test_large_files_come_whole_over_tls(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes a certificate, is not installed")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate]
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, *subject], check=True, capture_output=True)
    trusted = ssl.create_default_context(cafile=str(certificate))
    settings = made_site(tmp_path)
    data = bytes(range(256)) * 20_000
    (settings.site / "assets" / "static-1" / "icon.svg").write_bytes(data)
    manifest = json.loads((settings.site / "manifest.json").read_text())
    manifest["assets"]["static/icon.svg"] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (settings.site / "manifest.json").write_text(json.dumps(manifest))
    with running_server(settings, 0, certificate, key) as address:
        for path, size in (("healthz", 0), ("assets/static-1/icon.svg", len(data))):
            with urlopen(f"{address}/{path}", timeout=5, context=trusted) as answer:
                assert len(answer.read()) == int(answer.headers["Content-Length"]) >= size
