"""Bytes: types, caching, ranges, compressed variants, and paths that must not lead anywhere."""

import hashlib
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from build_scripts.site.serving import running_server
from server.manifest import ManifestError, read_manifest
from server.ranges import requested_ranges
from server.settings import Settings
from server.tests.sites import FILES, SCRIPT, made_site

SCRIPT_URL = "/assets/static-1/page.js"
MODEL_URL = "/assets/models/m-1.tflite"
MODEL = FILES["models/m.tflite"][2]
PLAIN = {"accept-encoding": "identity"}


@pytest.mark.parametrize(("url", "media_type"), [(f"/{path}", kind) for path, kind, _ in FILES.values()])
def test_every_file_has_its_own_media_type(client: TestClient, url: str, media_type: str) -> None:
    answer = client.get(url, headers=PLAIN)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == media_type


def test_hashed_names_are_kept_for_ever(client: TestClient) -> None:
    answer = client.get(MODEL_URL)
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["etag"] == f'"{hashlib.sha256(MODEL).hexdigest()[:32]}"'


def test_a_known_entity_tag_is_answered_without_a_body(client: TestClient) -> None:
    etag = client.get(MODEL_URL).headers["etag"]
    for header in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = client.get(MODEL_URL, headers={"if-none-match": header})
        assert (answer.status_code, answer.content) == (304, b"")
    assert client.get(MODEL_URL, headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate, br", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip", "gzip"),
        ("br;q=0.1, gzip;q=0.9", "gzip"),
        ("br; q=0.5, gzip; q=0.5", "br"),
        ("*", "zstd"),
        ("*, zstd;q=0", "br"),
        ("*, br;q=0, zstd;q=0", "gzip"),
        ("identity;q=1, br;q=0.5", ""),
        ("identity", ""),
        ("deflate", ""),
    ],
)
def test_the_best_accepted_variant_is_sent(client: TestClient, accepted: str, encoding: str) -> None:
    with client.stream("GET", SCRIPT_URL, headers={"accept-encoding": accepted}) as answer:
        body = b"".join(answer.iter_raw())
    assert answer.headers.get("content-encoding", "") == encoding
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["etag"].endswith(f'-{encoding}"' if encoding else answer.headers["etag"][-2:])
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert (body == SCRIPT) == (encoding == "")
    assert int(answer.headers["content-length"]) == len(body)


def test_variants_have_entity_tags_of_their_own(client: TestClient) -> None:
    tags = set()
    for accepted in ("br", "gzip", "identity"):
        with client.stream("GET", SCRIPT_URL, headers={"accept-encoding": accepted}) as answer:
            tags.add(answer.headers["etag"])
    assert len(tags) == 3


def test_a_file_without_variants_does_not_vary(client: TestClient) -> None:
    assert "vary" not in client.get(MODEL_URL, headers={"accept-encoding": "br, gzip"}).headers


@pytest.mark.parametrize(
    ("asked", "begin", "end"),
    [("bytes=0-0", 0, 1), ("bytes=10-19", 10, 20), ("bytes=1000-", 1000, 1024), ("bytes=-5", 1019, 1024)],
)
def test_a_range_gives_these_bytes(client: TestClient, asked: str, begin: int, end: int) -> None:
    answer = client.get(MODEL_URL, headers={"range": asked})
    assert answer.status_code == 206
    assert answer.content == MODEL[begin:end]
    assert answer.headers["content-range"] == f"bytes {begin}-{end - 1}/1024"


def test_a_range_beyond_the_end_names_the_length(client: TestClient) -> None:
    answer = client.get(MODEL_URL, headers={"range": "bytes=1024-"})
    assert answer.status_code == 416
    assert answer.headers["content-range"] == "bytes */1024"

    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "range-not-satisfiable"


@pytest.mark.parametrize(
    "asked", ["bytes=9-5", "items=0-1", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1-2,x", "bytes=+1-2", "=0-1"]
)
def test_what_is_no_range_of_bytes_is_ignored(client: TestClient, asked: str) -> None:
    answer = client.get(MODEL_URL, headers={"range": asked})
    assert (answer.status_code, answer.content) == (200, MODEL)


def test_ranges_beyond_the_end_are_left_out(client: TestClient) -> None:
    answer = client.get(MODEL_URL, headers={"range": "bytes=4000-5000, 0-3"})
    assert (answer.status_code, answer.content) == (206, MODEL[:4])


def test_an_ignored_range_still_gets_a_compressed_variant(client: TestClient) -> None:
    with client.stream("GET", SCRIPT_URL, headers={"range": "items=0-1", "accept-encoding": "br"}) as answer:
        assert (answer.status_code, answer.headers["content-encoding"]) == (200, "br")


def test_a_range_never_reads_a_compressed_variant(client: TestClient) -> None:
    answer = client.get(SCRIPT_URL, headers={"range": "bytes=0-9", "accept-encoding": "br, gzip"})
    assert (answer.status_code, answer.content) == (206, SCRIPT[:10])
    assert "content-encoding" not in answer.headers


def test_a_range_of_another_version_gives_the_whole_file(client: TestClient) -> None:
    etag = client.get(MODEL_URL).headers["etag"]
    headers = {"range": "bytes=0-9", "if-range": '"older"'}
    assert client.get(MODEL_URL, headers=headers).content == MODEL
    assert client.get(MODEL_URL, headers={**headers, "if-range": etag}).content == MODEL[:10]


def test_head_gives_headers_only(client: TestClient) -> None:
    answer = client.head(MODEL_URL)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == "1024"


RAW_PATHS = [
    "/assets/../manifest.json",
    "/assets/%2e%2e/manifest.json",
    "/assets/..%2fmanifest.json",
    "/assets/..%5cmanifest.json",
    "/assets//etc/passwd",
    "//etc/passwd",
    "/assets/static-1/page.js%00",
    "/assets/static-1/page.js/",
    "/assets/static-1/",
    "/assets/static-1/PAGE.JS",
    "/assets/static-1/page.js.br",
    "/assets/",
    "/manifest.json",
    "/assets/" + "a" * 300,
    "/assets/" + "a/" * 2000,
]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a real server: a test client would tidy the paths before sending them."""
    with running_server(made_site(tmp_path_factory.mktemp("raw"))) as address:
        yield int(address.rsplit(":", 1)[1])


@pytest.mark.parametrize("path", RAW_PATHS)
def test_no_spelling_of_a_path_leads_out_of_the_manifest(port: int, path: str) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    connection.putrequest("GET", path, skip_accept_encoding=True)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 404
    assert b"not-found" in body
    assert b"root:" not in body


def test_a_link_in_the_site_is_refused_at_start(settings: Settings) -> None:
    target = settings.site / "assets/models/m-1.tflite"
    secret = settings.site.parent / "secret"
    secret.write_bytes(target.read_bytes())
    target.unlink()
    target.symlink_to(secret)
    with pytest.raises(ManifestError, match="link"):
        read_manifest(settings.site)


def test_a_manifest_that_names_a_file_outside_is_refused(settings: Settings) -> None:
    (settings.site.parent / "secret").write_bytes(b"x")
    path = settings.site / "manifest.json"
    path.write_text(path.read_text().replace("/assets/kernels-1/k.wasm", "/../secret"))
    with pytest.raises(ManifestError):
        read_manifest(settings.site)


def test_a_site_that_was_not_built_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="build_scripts setup"):
        read_manifest(tmp_path)


def test_a_truncated_file_is_noticed_at_start(settings: Settings) -> None:
    (settings.site / "assets/models/m-1.tflite").write_bytes(b"short")
    with pytest.raises(ManifestError, match="5 bytes"):
        read_manifest(settings.site)


def test_a_span_ends_with_the_file() -> None:
    assert requested_ranges("bytes=5-", 10) == requested_ranges("bytes=-5", 10) == [(5, 9)]
    assert requested_ranges("bytes=5-99", 10) == [(5, 9)]
    assert requested_ranges("bytes=-0", 10) == []


def test_who_asks_for_more_than_sixteen_ranges_gets_the_whole_file() -> None:
    asked = [",".join(f"{2 * i}-{2 * i}" for i in range(count)) for count in (16, 17)]
    assert [requested_ranges(f"bytes={spans}", 100) is None for spans in asked] == [False, True]
