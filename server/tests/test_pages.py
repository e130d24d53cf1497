"""The page, the headers that hold for everything, and errors as problem bodies."""

import asyncio
import json
import re
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from server.app import create_app
from server.integrity import OTHER_SITES, policy_with
from server.middleware import CONTENT_SECURITY_POLICY, RequestMiddleware
from server.settings import Settings
from server.studio import StudioError, read_studio


def island_of(text: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="manifest">(.*?)</script>', text, re.DOTALL)
    assert match
    parsed: dict[str, object] = json.loads(match[1])
    return parsed


def test_the_page_names_its_scripts_by_hashed_address(client: TestClient) -> None:
    answer = client.get("/things")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert 'src="/assets/static-1/page.js"' in answer.text
    assert "<title>Things &amp; more 1.2.3</title>" in answer.text


def test_people_get_a_page_where_there_is_none_and_scripts_get_json(client: TestClient) -> None:
    for address in ("/nope", "/docs/nope", "/lab"):
        page = client.get(address, headers={"accept": "text/html,*/*;q=0.8"})
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "Page not found" in page.text
        assert 'href="/"' in page.text
        assert "script-src" in page.headers["content-security-policy"]
    answer = client.get("/nope", headers={"accept": "*/*"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    missing = client.get("/assets/static-1/nope.js", headers={"accept": "*/*"})
    assert missing.json()["code"] == "not-found"


def test_a_page_comes_compressed_to_who_takes_that_and_each_form_has_a_tag_of_its_own(client: TestClient) -> None:
    plain = client.get("/things", headers={"accept-encoding": "identity"})
    small = client.get("/things", headers={"accept-encoding": "gzip"})
    assert (plain.headers.get("content-encoding"), small.headers["content-encoding"]) == (None, "gzip")
    assert small.text == plain.text
    assert int(small.headers["content-length"]) < 0.7 * int(plain.headers["content-length"])
    assert small.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert small.headers["etag"] != plain.headers["etag"]
    again = {"accept-encoding": "gzip", "if-none-match": small.headers["etag"]}
    assert client.get("/things", headers=again).status_code == 304


def test_the_page_carries_the_manifest_without_file_names_of_the_server(client: TestClient) -> None:
    data = island_of(client.get("/things").text)
    assert data["engine"] == "1.2.3"
    assert data["isolated"] is True
    assert set(data["assets"]["models/m.tflite"]) == {"url", "bytes", "sha256"}  # type: ignore[index]
    published = client.get("/api/manifest").json()
    del published["page"]["tasks"]  # which the engine tells
    assert data == {**published, "isolated": True}


def test_no_name_in_the_manifest_can_end_the_script_element(settings: Settings) -> None:
    path = settings.site / "manifest.json"
    path.write_text(path.read_text().replace("models/m.tflite", "models/</script><b>&.tflite"))
    text = TestClient(create_app(settings), base_url="http://localhost").get("/things").text
    assert text.count("</script>") == 2
    assert "models/</script><b>&.tflite" in island_of(text)["assets"]  # type: ignore[operator]


def test_the_home_page_leads_to_every_demo_and_every_page_back_to_it(client: TestClient) -> None:
    home = client.get("/").text
    assert "<h1>All demos</h1>" in home
    assert '<a href="/things">Things &amp; more</a>' in home
    assert "0.0 MB" in home  # of a model of a kilobyte
    assert "at most 7 MB" in home  # of a package whose files nobody has measured
    assert 'data-late="pack"' in home
    assert '<a href="/" aria-current="page">Demos</a>' in home
    assert '<a href="/">Demos</a>' in client.get("/docs").text
    assert client.get("/things/").status_code == client.get("/finder").status_code == 404


def test_a_model_that_cannot_be_had_is_said_on_its_card(settings: Settings) -> None:
    home = TestClient(create_app(replace(settings, fetch_models="")), base_url="http://localhost").get("/").text
    assert home.count("this site does not have its model") == 1  # of two demos
    assert "0.0 MB" in home


def test_a_demo_of_sound_texts_or_files_shows_no_picture(settings: Settings) -> None:
    path = settings.tables / "demos.toml"
    path.write_text(path.read_text().replace('inputs = ["picture"]', 'inputs = ["audio"]', 1))
    (settings.templates / "task.html").write_text("{{ demo.source }} {{ code }}")
    client = TestClient(create_app(settings), base_url="http://localhost")
    assert client.get("/things").text.startswith("sound ")
    assert "task.run(recording)" in client.get("/things").text
    assert client.get("/late").text.startswith("picture ")
    assert client.get("/").text.count("<img") == 2  # the site's own sign, and the picture's


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("demos.toml", 'colour = "red"', "nobody reads: colour"),
        ("demos.toml", '[[demo]]\nslug = "other"', "other.*missing"),
        ("demos.toml", 'also = []\n[[demo]]\nslug = "docs"', "docs.*missing"),
        ("pages.toml", '[[page]]\nslug = "things"\nmenu = ""\ntitle = ""\nsummary = ""', "address /things is taken"),
        ("pages.toml", '[[page]]\nslug = "api"\nmenu = ""\ntitle = ""\nsummary = ""', "address /api is taken"),
    ],
)
def test_a_row_that_cannot_become_a_page_is_named(settings: Settings, file: str, text: str, complaint: str) -> None:
    path = settings.tables / file
    path.write_text(path.read_text() + text)
    with pytest.raises(StudioError, match=complaint):
        create_app(settings)


def test_the_page_is_revalidated_every_time(client: TestClient) -> None:
    answer = client.get("/")
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get("/", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


SECURITY = {
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(self)",
}


@pytest.mark.parametrize("path", ["/", "/healthz", "/assets/models/m-1.tflite", "/nothing-here"])
def test_every_answer_carries_the_security_headers(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-embedder-policy"] == "require-corp"
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])


def test_the_content_security_policy_allows_no_inline_code_and_no_eval(client: TestClient) -> None:
    policy = dict(part.strip().split(" ", 1) for part in client.get("/").headers["content-security-policy"].split(";"))
    assert re.fullmatch(r"'self'( 'sha256-[\w+/]{43}=')? 'wasm-unsafe-eval'", policy["script-src"])
    assert policy["worker-src"] == policy["connect-src"] == policy["style-src"] == policy["default-src"] == "'self'"
    assert policy["object-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert not any("'unsafe-" in value for value in policy.values())


def test_only_a_page_that_says_so_may_read_files_of_other_sites() -> None:
    def sources(page: str) -> str:
        return next(part for part in policy_with(CONTENT_SECURITY_POLICY, page).split("; ") if "connect-src" in part)

    assert (
        sources('<html lang="en" data-home="/" data-page="model" data-fetches>') == f"connect-src 'self' {OTHER_SITES}"
    )
    assert sources('<html lang="en" data-page="chat"><p data-fetches>') == "connect-src 'self'"
    fetching = [page.slug for page in read_studio(Settings().tables).pages if page.fetches]
    assert fetching == ["model"]


def test_isolation_can_be_left_out(settings: Settings) -> None:
    client = TestClient(create_app(replace(settings, isolated=False)), base_url="http://localhost")
    answer = client.get("/things")
    assert "cross-origin-opener-policy" not in answer.headers
    assert "cross-origin-embedder-policy" not in answer.headers
    assert island_of(answer.text)["isolated"] is False


def test_health_says_what_is_served(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "engine": "1.2.3", "assets": 11}


def test_an_unknown_address_is_a_problem_with_the_request_id(client: TestClient) -> None:
    answer = client.get("/nothing-here")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "code": "not-found",
        "title": "There is nothing at this address.",
        "status": 404,
        "request_id": answer.headers["x-request-id"],
    }


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/manifest", "/assets/models/m-1.tflite"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused_by_name(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 405
    assert answer.json()["code"] == "method-not-allowed"
    assert set(answer.headers["allow"].replace(" ", "").split(",")) == {"GET", "HEAD"}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:8000"])
def test_a_foreign_host_name_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/", headers={"host": host})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-request")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:9", "LOCALHOST:1"])
def test_loopback_host_names_are_accepted(client: TestClient, host: str) -> None:
    assert client.get("/healthz", headers={"host": host}).status_code == 200


def test_a_failure_inside_shows_no_stack(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    app = create_app(settings)

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("a secret detail")

    client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
    answer = client.get("/broken")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert answer.json()["request_id"] in caplog.text


def test_each_request_leaves_one_line(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="webinfer.access")
    client.get("/healthz")
    lines = [record.getMessage() for record in caplog.records if record.name == "webinfer.access"]
    assert len(lines) == 1
    assert lines[0].startswith("GET '/healthz' 200 ")


def test_an_answer_that_fails_halfway_is_left_broken(settings: Settings) -> None:
    sent: list[str] = []

    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise OSError("the disk is gone")

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message["type"])

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")], "client": ("::1", 1)}
    with pytest.raises(OSError, match="disk"):  # the server must end the connection
        asyncio.run(RequestMiddleware(failing, settings)(scope, receive, send))
    assert sent == ["http.response.start", "http.response.body"]
