"""Slow clients: a request whose head does not end in time closes the connection."""

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest

from build_scripts.site.serving import running_server
from server.tests.sites import made_site

HEADER_TIMEOUT_S = 1
LIMIT_S = 8


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder: Path = tmp_path_factory.mktemp("header_timeout")
    with running_server(replace(made_site(folder), header_timeout_s=HEADER_TIMEOUT_S)) as address:
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


def test_requests_one_after_the_other_are_served_beyond_the_timeout(port: int) -> None:
    connection = HTTPConnection("localhost", port, timeout=5)
    for _ in range(4):
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        time.sleep(HEADER_TIMEOUT_S * 0.4)
    connection.close()
