"""Limits per client: one that wants too much is told to come again, and the others notice nothing."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from pathlib import Path
from typing import Any

import pytest

from build_scripts.site.serving import running_server
from server.clients import Clients, Tally, client_of
from server.running import within_files
from server.settings import Settings, SettingsError, settings_from
from server.tests.sites import made_site

LIMIT_S = 8
LARGE = 32 << 20  # bytes that no pair of sockets holds
Serve = Callable[..., int]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts servers of a site with one large file, `serve(client_requests=2)`; gives their ports."""
    made = made_site(tmp_path_factory.mktemp("clients"))
    row = {"url": "/assets/large.bin", "bytes": LARGE, "encodings": {}, "sha256": "0" * 64, "type": "text/plain"}
    (made.site / "assets/large.bin").write_bytes(bytes(LARGE))
    manifest = json.loads((made.site / "manifest.json").read_text())
    manifest["assets"]["large.bin"] = row
    (made.site / "manifest.json").write_text(json.dumps(manifest))
    with ExitStack() as servers:
        yield lambda **more: int(servers.enter_context(running_server(replace(made, **more))).rsplit(":", 1)[1])


def unread(port: int, client: str = "") -> socket.socket:
    """A connection on which the large file was asked for, and nothing was read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    connection.connect(("127.0.0.1", port))
    forwarded = f"X-Forwarded-For: {client}\r\n" if client else ""
    connection.sendall(f"GET /assets/large.bin HTTP/1.1\r\nHost: localhost\r\n{forwarded}\r\n".encode())
    return connection


def asked(port: int, client: str = "") -> tuple[HTTPResponse, dict[str, Any]]:
    """The answer to a request for the server's health, and its JSON."""
    connection = HTTPConnection("localhost", port, timeout=LIMIT_S)
    connection.request("GET", "/healthz", headers={"X-Forwarded-For": client} if client else {})
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer, body


def until_served(port: int) -> bool:
    """Whether the server answers 200 in time; it hears of connections that ended with a delay."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if asked(port)[0].status == 200:
            return True
        time.sleep(0.05)
    return False


def test_a_client_with_too_many_requests_gets_429_until_one_ends(serve: Serve) -> None:
    port = serve(client_requests=3)
    busy = [unread(port) for _ in range(3)]
    time.sleep(0.3)
    answer, problem = asked(port)
    assert (answer.status, problem["code"]) == (429, "too-many")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    busy[0].close()
    assert until_served(port)
    for connection in busy:
        connection.close()


def test_a_client_with_too_many_connections_gets_429_and_the_connection_ends(serve: Serve) -> None:
    port = serve(client_connections=3)
    idle = [socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) for _ in range(3)]
    time.sleep(0.2)
    answer, problem = asked(port)
    assert (answer.status, problem["code"]) == (429, "too-many")
    assert answer.headers["Connection"] == "close"
    assert int(answer.headers["Retry-After"]) > 0
    idle.pop().close()
    assert until_served(port)
    for connection in idle:
        connection.close()


def test_connections_beyond_twice_the_limit_are_closed_at_once(serve: Serve) -> None:
    port = serve(client_connections=2)
    idle = [socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) for _ in range(4)]
    time.sleep(0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as one_more:
        begin = time.monotonic()
        try:
            ended = one_more.recv(1) == b""
        except ConnectionResetError:
            ended = True
        assert ended
        assert time.monotonic() - begin < 2
    for connection in idle:
        connection.close()


def test_connections_beyond_all_that_may_be_open_are_closed_at_once(serve: Serve) -> None:
    port = serve(max_connections=2)
    idle = [socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) for _ in range(2)]
    time.sleep(0.2)
    with pytest.raises((ConnectionError, RemoteDisconnected)):
        asked(port)
    idle.pop().close()
    time.sleep(0.2)
    assert asked(port)[0].status == 200
    idle.pop().close()


def test_without_limits_many_connections_of_one_client_are_served(serve: Serve) -> None:
    port = serve(client_connections=0, client_requests=0)
    busy = [unread(port) for _ in range(40)]
    time.sleep(0.3)
    assert asked(port)[0].status == 200
    for connection in busy:
        connection.close()


def test_the_defaults_do_not_hinder_an_office_behind_one_address(serve: Serve) -> None:
    port = serve()
    browsers = [socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) for _ in range(6 * 100)]
    assert asked(port)[0].status == 200
    for connection in browsers:
        connection.close()


def test_behind_a_trusted_proxy_each_forwarded_client_has_its_own_limit(serve: Serve) -> None:
    port = serve(client_requests=2, client_connections=2, trusted_proxies=frozenset({"127.0.0.0/8"}))
    busy = [unread(port, "203.0.113.7") for _ in range(2)]
    time.sleep(0.3)
    assert asked(port, "203.0.113.7")[0].status == 429
    assert asked(port, "198.51.100.1, 203.0.113.7")[0].status == 429  # the left part is the client's own word
    assert asked(port, "203.0.113.8")[0].status == 200
    assert asked(port)[0].status == 200  # the proxy's own
    for connection in busy:
        connection.close()


def test_a_forwarded_header_of_anybody_else_counts_for_nothing(serve: Serve) -> None:
    port = serve(client_requests=2)
    busy = [unread(port, f"203.0.113.{number}") for number in range(2)]
    time.sleep(0.3)
    assert asked(port, "203.0.113.99")[0].status == 429
    for connection in busy:
        connection.close()


def test_a_request_waits_for_its_turn(serve: Serve) -> None:
    port = serve(max_requests=2, write_timeout_s=1.0, turn_timeout_s=LIMIT_S)
    busy = [unread(port) for _ in range(2)]
    time.sleep(0.3)
    begin = time.monotonic()
    assert asked(port)[0].status == 200
    assert time.monotonic() - begin > 0.3
    for connection in busy:
        connection.close()


@pytest.mark.parametrize(
    ("written", "counted"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::9", "2001:db8:1:2::/64"),
        ("[2001:db8:1:3::1]", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_addresses_of_one_client_are_counted_as_one(written: str, counted: str) -> None:
    assert client_of(written) == counted


@pytest.mark.parametrize(
    ("peer", "values", "client"),
    [
        ("10.0.0.1", ["203.0.113.7"], "203.0.113.7"),
        ("10.0.0.1", ["1.1.1.1, 203.0.113.7, 10.0.0.2"], "203.0.113.7"),
        ("10.0.0.1", ["1.1.1.1", "203.0.113.7"], "203.0.113.7"),
        ("10.0.0.1", ["1.1.1.1, unknown"], ""),
        ("10.0.0.1", [], ""),
        ("10.0.0.1", ["10.0.0.3"], ""),
        ("10.0.0.1", [", ".join(["10.0.0.2"] * 1000)], ""),
        ("192.0.2.1", ["203.0.113.7"], "192.0.2.1"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_proxy(peer: str, values: list[str], client: str) -> None:
    clients = Clients(Settings(trusted_proxies=frozenset({"10.0.0.0/24"})))
    headers = [(b"x-forwarded-for", value.encode()) for value in values]
    assert clients.of({"client": (peer, 1), "headers": headers}) == client


def test_who_has_nothing_any_more_costs_no_memory() -> None:
    tally = Tally(1)
    assert [tally.enter("a"), tally.enter("a"), tally.enter("b")] == [0, 1, 0]
    for client in ("a", "a", "b"):
        tally.leave(client)
    assert not tally.counts


def test_settings_come_from_the_environment() -> None:
    environment = {
        "WEBINFER_SERVER_HOSTS": "Demo.example.org, 127.0.0.1", "WEBINFER_SERVER_CLIENT_REQUESTS": "50",
        "WEBINFER_SERVER_WRITE_TIMEOUT_S": "2.5", "WEBINFER_SERVER_ISOLATED": "0", "PATH": "/bin",
        "WEBINFER_SERVER_SITE": "/srv/site",
    }  # fmt: skip
    found = settings_from(environment, client_connections=7)
    assert found == Settings(
        hosts=frozenset({"demo.example.org", "127.0.0.1"}), client_requests=50, write_timeout_s=2.5, isolated=False,
        site=Path("/srv/site"), client_connections=7,
    )  # fmt: skip
    assert settings_from({}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CLIENT_REQUESTS", "many"), ("CLIENT_REQUESTS", "-1"), ("MAX_REQUESTS", "1e3"), ("ISOLATED", "yes"),
        ("WRITE_TIMEOUT_S", "nan"), ("WRITE_TIMEOUT_S", "inf"), ("NO_SUCH", "1"), ("TRUSTED_PROXIES", "nginx"),
    ],
)  # fmt: skip
def test_a_variable_that_does_not_fit_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"WEBINFER_SERVER_{name}"):
        settings_from({f"WEBINFER_SERVER_{name}": value})


def test_where_few_files_may_be_open_the_limits_are_lower() -> None:
    few = within_files(Settings(), 1024)
    assert few.max_requests == 448
    assert few.max_connections + few.max_requests + 128 == 1024
    assert within_files(Settings(), 100_000) == Settings()
