"""What the server lets in: hosts, origins, tokens, networks, paths and sizes, each beside what is nearly the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from server.app import create_app
from server.clients import Clients
from server.lab import frames
from server.lab.guard import PROTOCOL, TOKEN_PREFIX, refusal_of_request, refusal_of_socket
from server.lab.hub import Device, Job
from server.lab.routes import Keeper
from server.manifest import ManifestError, read_manifest
from server.middleware import RequestMiddleware
from server.settings import Settings

EVIL = ("evil", "evil.", "x-", "a@", "evil.example/", " ")
TOKEN = "a right token"
TRAVERSALS = (
    "../{}", "./{}", "x/../{}", "..\\{}", "/{}", "//{}", "{}/", "{}/.", "{}\0", "{}\0.js", "{}\\",
    "{}.br", "{}.gz", "{}.zst",
    "..;/{}", "{}~", "%2e%2e/{}", "..%2f{}", "assets/{}",
)  # fmt: skip


def near(text: str) -> list[str]:
    """Texts that hold the given one, or most of it, and are another."""
    longer = [f"{other}{text}" for other in EVIL]
    longer += [f"{text}{other}" for other in (".evil.example", "evil", ".", "@evil", " x", ",x", "\\", "%00")]
    others = (text[1:], text[:-1], text[::-1], text.replace(".", "x", 1), text + text, "", f"({text})")
    return [other for other in (*longer, *others) if other != text]


def host_is_accepted(settings: Settings, *hosts: str) -> bool:
    """Whether a request with these Host headers reaches the routes."""
    guard = RequestMiddleware(None, settings)  # type: ignore[arg-type]
    headers = [(b"host", host.encode("latin-1")) for host in hosts]
    scope = {"type": "http", "headers": headers, "path": "/", "request_id": "", "state": {}}
    return guard._refusal(scope, False) is None


@pytest.mark.parametrize("name", sorted(Settings().hosts))
def test_a_host_is_accepted_as_a_whole_and_nothing_that_looks_like_it(settings: Settings, name: str) -> None:
    written = f"[{name}]" if ":" in name else name
    for port in ("", ":", ":8000"):
        assert host_is_accepted(settings, written + port)
        accepted = {
            other for other in near(written) if other not in settings.hosts and host_is_accepted(settings, other + port)
        }
        assert not accepted
    for port in (":80a", ":80:80", ":-1", " :80", ":80 ", ":８０"):
        assert not host_is_accepted(settings, written + port.encode("utf-8").decode("latin-1")), port
    assert not host_is_accepted(settings)
    assert not host_is_accepted(settings, written, written)
    assert not host_is_accepted(replace(settings, hosts=frozenset({"other"})), written)


def test_a_host_of_the_settings_is_compared_without_its_case(settings: Settings) -> None:
    own = replace(settings, hosts=frozenset({"my.example"}))
    assert host_is_accepted(own, "MY.Example:9")
    assert not [other for other in near("my.example") if host_is_accepted(own, other)]


def answered(client: TestClient, path: str) -> tuple[int, bytes]:
    """Status and body for a path exactly as a client may write it; libraries would tidy it."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "scheme": "http",
        "http_version": "1.1",
    }  # fmt: skip
    asyncio.run(client.app(scope, receive, send))  # type: ignore[arg-type]
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_files_are_found_by_their_whole_address_only(settings: Settings) -> None:
    client = TestClient(create_app(settings))
    (settings.site / "secret.txt").write_text("secret")
    for known in ("static-1/page.js", "models/m-1.tflite", "static-1/results/boxes.js"):
        assert answered(client, f"/assets/{known}")[0] == 200
        for form in (*TRAVERSALS, known.upper()):
            assert answered(client, f"/assets/{form.format(known)}")[0] in (307, 404), form
    for wanted in ("secret.txt", "manifest.json", "assets/static-1/page.js", str(settings.site / "secret.txt")):
        for form in ("{}", "../{}", "../../{}", "../../../../../../../../../..{}", *TRAVERSALS):
            status, body = answered(client, f"/assets/{form.format(wanted)}")
            assert status in (307, 404), form
            assert b"secret" not in body


def test_a_manifest_names_files_inside_of_the_site_that_are_no_links(settings: Settings) -> None:
    outside = settings.site.parent / "outside.js"
    file = settings.site / "assets" / "static-1" / "page.js"
    outside.write_bytes(file.read_bytes())
    read_manifest(settings.site)
    file.unlink()
    file.symlink_to(outside)
    with pytest.raises(ManifestError):
        read_manifest(settings.site)


def test_a_path_may_be_as_long_as_the_settings_say_and_no_longer(settings: Settings) -> None:
    path = "/healthz"
    for most, status in ((len(path), 200), (len(path) - 1, 404)):
        app = create_app(replace(settings, max_path_chars=most))
        assert TestClient(app, base_url="http://localhost").get(path).status_code == status


def lab_refusal(
    settings: Settings, *, peer: str = "127.0.0.1", host: str = "lab.local:8000", **headers: str
) -> tuple[int, int]:
    """With what a request and a WebSocket to the lab are refused; 0 for those that are welcome."""
    token = headers.pop("token", TOKEN)
    scope: dict[str, Any] = {"client": (peer, 1), "subprotocols": [PROTOCOL, TOKEN_PREFIX + token]}
    named = {"host": host, **headers}
    bearer = {"authorization": f"Bearer {token}", **named}
    return refusal_of_request(scope, bearer, settings), refusal_of_socket(scope, named, settings)


@pytest.fixture
def lab() -> Settings:
    return Settings(lab=True, lab_token=TOKEN)


def test_the_lab_is_open_to_its_own_pages_and_to_programs(lab: Settings) -> None:
    assert lab_refusal(lab) == (0, 0)
    assert (
        lab_refusal(lab, origin="http://lab.local:8000") == lab_refusal(lab, origin="https://LAB.local:8000") == (0, 0)
    )
    foreign = ("null", "", "lab.local:8000", "http://lab.local", "http://lab.local:80001", "http://evil.example")
    for origin in (*foreign, *(f"http://{other}" for other in near("lab.local:8000"))):
        assert lab_refusal(lab, origin=origin) == (403, 403), origin


def test_the_lab_is_open_to_its_token_as_a_whole(lab: Settings) -> None:
    for other in near(TOKEN):
        assert lab_refusal(lab, token=other) == (401, 401), other
    assert lab_refusal(lab, token=TOKEN.upper()) == (401, 401)
    assert lab_refusal(replace(lab, lab_token=""), token="") == (401, 401)
    scope = {"client": ("127.0.0.1", 1), "subprotocols": [TOKEN_PREFIX + TOKEN]}
    assert refusal_of_socket(scope, {}, lab) == 401  # it does not offer the lab's protocol
    assert refusal_of_request(scope, {"authorization": f"Basic {TOKEN}"}, lab) == 401


@pytest.mark.parametrize(
    "peer", ["8.8.8.8", "172.32.0.1", "11.0.0.1", "192.169.0.1", "2001:4860::1", "::ffff:8.8.8.8", "", "x"]
)
def test_the_lab_is_closed_to_addresses_of_the_internet(lab: Settings, peer: str) -> None:
    assert lab_refusal(lab, peer=peer) == (403, 403)


@pytest.mark.parametrize(
    "peer", ["10.9.8.7", "172.16.0.1", "192.168.1.1", "169.254.1.1", "::1", "fe80::1%eth0", "fd00::1"]
)
def test_the_lab_is_open_to_its_own_network(lab: Settings, peer: str) -> None:
    assert lab_refusal(lab, peer=peer) == (0, 0)


def test_only_a_proxy_that_is_trusted_speaks_for_others() -> None:
    clients = Clients(Settings(trusted_proxies=frozenset({"10.0.0.0/30", "2001:db8::1"})))

    def client(peer: str, *forwarded: str) -> str:
        headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
        return clients.of({"client": (peer, 1), "headers": headers})

    assert client("10.0.0.3", "8.8.8.8") == client("::ffff:10.0.0.3", "9.9.9.9, 8.8.8.8") == "8.8.8.8"
    assert client("10.0.0.3", "9.9.9.9", "8.8.8.8, 10.0.0.1") == "8.8.8.8"  # the nearest stranger, not who he names
    assert client("10.0.0.4", "8.8.8.8") == "10.0.0.4"
    assert client("110.0.0.3", "8.8.8.8") == "110.0.0.3"
    assert client("2001:db8::2", "8.8.8.8") == "2001:db8::/64"
    assert client("10.0.0.3", "no address") == client("10.0.0.3") == ""


def test_a_message_of_the_lab_is_refused_at_each_of_its_ends() -> None:
    frame = frames.Frame({"type": "ask", "buffers": [4, 2]}, b"123456").written()
    assert isinstance(frame, bytes)
    assert frames.read(frame).tail == b"123456"
    for wrong in (frame[:-1], frame + b"x", frame[:3], b"", b"\xff\xff\xff\x7f" + frame[4:], b"\0\0\0\0" + frame[4:]):
        with pytest.raises(frames.FrameError):
            frames.read(wrong)


def test_what_a_device_says_is_kept_cut_to_its_room_and_without_its_tensors() -> None:
    rows: list[tuple[Any, ...]] = []

    class Paper:
        def add_result(self, *row: Any) -> None:
            rows.append(row)

        def add_tunings(self, *row: Any) -> None:
            rows.append(row)

    device = Device("tab", None, {"engine": "1"})  # type: ignore[arg-type]
    keeper = Keeper(Paper())  # type: ignore[arg-type]
    answer = {"backend": "x" * 41, "lines": "a line", "outputs": [1], "buffers": [2], "ms": 3}
    keeper._write(device, "model", Job(None, 1, "tune", {}), answer)  # type: ignore[arg-type]
    keeper._write(device, "model", Job(None, 1, "run", {"backend": "wasm"}), {"lines": "b"})  # type: ignore[arg-type]
    facts = {"action": "tune", "model": "model", "backend": "x" * 40}
    assert rows == [
        ("tab", {"engine": "1"}, facts, {"backend": "x" * 41, "ms": 3}),
        ("tab", "a line"),
        ("tab", {"engine": "1"}, {"action": "run", "model": "model", "backend": "wasm"}, {}),
    ]
