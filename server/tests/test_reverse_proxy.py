"""The documentation's way to run behind a reverse proxy: its settings exist, and its nginx configuration works."""

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields, replace
from http.client import HTTPConnection
from pathlib import Path

import pytest

from build_scripts.site.serving import running_server
from server.settings import PREFIX, ROOT, Settings, settings_from
from server.tests.sites import FILES, SCRIPT, made_site

TEXT = (Settings().docs / "serving.md").read_text(encoding="utf-8")
NAME = "demo.example.org"
PEOPLE = ("127.0.0.2", "127.0.0.3")  # addresses from which clients come; nginx itself comes from 127.0.0.1
LIMIT_S = 8
LARGE = 32 << 20  # bytes


def test_every_setting_stands_in_the_documentation_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|(?: `([^`]*)`)? \|", TEXT, re.MULTILINE))
    assert set(rows) == {one.name for one in fields(Settings)}
    for name, written in rows.items():
        default = getattr(Settings(), name)
        told = settings_from({PREFIX + name.upper(): str(ROOT / written) if isinstance(default, Path) else written})
        assert getattr(told, name) == default, name


def test_every_variable_in_the_documentation_is_one_of_a_setting() -> None:
    found = re.findall(rf"\b({PREFIX}\w+)=([\w.,-]*\w)", TEXT)
    assert len(found) >= 4
    for variable, value in found:
        assert settings_from({variable: value}) != Settings()


def configuration(folder: Path, port: int, upstream: int) -> Path:
    """The documentation's nginx configuration as a whole file: on loopback, without TLS."""
    match = re.search(r"```nginx\n(.*?)```", TEXT, re.DOTALL)
    assert match is not None
    text, count = re.subn(r"listen 443 ssl http2;", f"listen 127.0.0.1:{port};", match[1])
    assert count == 1
    text = re.sub(r"ssl_certificate\w*\s+\S+;\n", "", text).replace("127.0.0.1:8000", f"127.0.0.1:{upstream}")
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("proxy", "client_body", "fastcgi", "uwsgi", "scgi")
    )
    file = folder / "nginx.conf"
    head = f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
    file.write_text(f"{head}http {{ access_log off; {places}\n{text}\n}}\n")
    return file


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an nginx before a server that allows two requests a client."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    made, folder, port = made_site(tmp_path_factory.mktemp("site")), tmp_path_factory.mktemp("nginx"), free_port()
    row = {"url": "/assets/large.bin", "bytes": LARGE, "encodings": {}, "sha256": "0" * 64, "type": "text/plain"}
    (made.site / "assets/large.bin").write_bytes(bytes(LARGE))
    manifest = json.loads((made.site / "manifest.json").read_text())
    manifest["assets"]["large.bin"] = row
    (made.site / "manifest.json").write_text(json.dumps(manifest))
    environment = {f"{PREFIX}HOSTS": NAME, f"{PREFIX}TRUSTED_PROXIES": "127.0.0.1"}
    told = settings_from(environment, site=made.site, templates=made.templates, tables=made.tables, docs=made.docs)
    with ExitStack() as stack:
        address = stack.enter_context(running_server(replace(told, client_requests=2, max_requests=64)))
        file = configuration(folder, port, int(address.rsplit(":", 1)[1]))
        command = [program, "-c", str(file), "-p", str(folder)]
        assert subprocess.run([*command, "-t"], capture_output=True, text=True).returncode == 0
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        stack.callback(process.wait, 10)
        stack.callback(process.terminate)
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port


def connected(port: int, person: str = PEOPLE[0]) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", port, timeout=LIMIT_S, source_address=(person, 0))


def test_files_come_through_nginx_with_their_headers(proxied: int) -> None:
    connection = connected(proxied)
    url = "/" + FILES["static/page.js"][0]
    connection.request("GET", url, headers={"Host": NAME})
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, SCRIPT)
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "immutable" in answer.headers["Cache-Control"]
    connection.request("GET", url, headers={"Host": NAME, "Range": "bytes=3-5"})
    part = connection.getresponse()
    assert (part.status, part.read()) == (206, SCRIPT[3:6])
    connection.request("GET", url, headers={"Host": NAME, "If-None-Match": answer.headers["ETag"]})
    same = connection.getresponse()
    assert (same.status, same.read()) == (304, b"")
    connection.request("GET", url, headers={"Host": NAME, "Accept-Encoding": "gzip"})
    packed = connection.getresponse()
    assert (packed.status, packed.headers["Content-Encoding"]) == (200, "gzip")
    connection.close()


def test_another_host_is_refused_behind_nginx_too(proxied: int) -> None:
    connection = connected(proxied)
    connection.request("GET", "/healthz", headers={"Host": "evil.example"})
    assert connection.getresponse().status == 400
    connection.close()


def test_nginx_reads_for_slow_readers_and_their_turn_ends(proxied: int) -> None:
    slow = [connected(proxied) for _ in range(8)]
    for connection in slow:
        connection.request("GET", "/assets/large.bin", headers={"Host": NAME})
        time.sleep(0.4)  # nginx has taken all of it by then: the client has few requests under way, not eight
    for person in PEOPLE:
        other = connected(proxied, person)
        other.request("GET", "/healthz", headers={"Host": NAME})
        assert other.getresponse().status == 200
        other.close()
    for connection in slow:
        connection.close()


def test_each_client_of_nginx_has_its_own_limit(proxied: int) -> None:
    statuses: dict[str, set[int]] = {person: set() for person in PEOPLE}
    many = [connected(proxied, PEOPLE[0]) for _ in range(12)]
    for connection in many:
        connection.request("GET", "/assets/large.bin", headers={"Host": NAME})
    other = connected(proxied, PEOPLE[1])
    other.request("GET", "/healthz", headers={"Host": NAME, "X-Forwarded-For": PEOPLE[0]})
    statuses[PEOPLE[1]].add(other.getresponse().status)
    for connection in many:
        statuses[PEOPLE[0]].add(connection.getresponse().status)
    assert statuses == {PEOPLE[0]: {200, 429}, PEOPLE[1]: {200}}
    for connection in (*many, other):
        connection.close()
