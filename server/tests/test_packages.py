"""Packages of models that are fetched when a page first asks for them."""

import hashlib
import shlex
import time
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from server.app import create_app
from server.settings import Settings

WRITES = "import pathlib; p = pathlib.Path('{folder}/models'); p.mkdir(); (p / 'n.tflite').write_bytes(b'model')"
FAILS = "import sys; print('first line'); sys.exit('error: no such host')"


def asked(settings: Settings, code: str) -> tuple[TestClient, dict[str, Any]]:
    """A client of a server whose fetcher is this code, and the last answer about the package."""
    own = replace(settings, fetch_models=f"-c {shlex.quote(code)}" if code else "", late=settings.site.parent / "late")
    own.late.mkdir()
    with TestClient(create_app(own), base_url="http://localhost") as client:
        answer = client.post("/api/packages/pack").json()
        deadline = time.monotonic() + 20
        while answer["state"] == "fetching" and time.monotonic() < deadline:
            time.sleep(0.05)
            answer = client.get("/api/packages/pack").json()
        if answer["state"] == "ready":
            answer["served"] = client.get(answer["assets"]["models/n.tflite"]["url"]).content
        return client, answer


def test_a_package_is_fetched_and_its_files_are_served(settings: Settings) -> None:
    folder = settings.site.parent / "late"
    _, answer = asked(settings, WRITES.format(folder=folder))
    assert (answer["state"], answer["total"], answer["served"]) == ("ready", 7_000_000, b"model")
    row = answer["assets"]["models/n.tflite"]
    assert (row["bytes"], row["sha256"]) == (5, hashlib.sha256(b"model").hexdigest())


def test_a_package_that_cannot_be_had_says_why(settings: Settings) -> None:
    _, answer = asked(settings, FAILS)
    assert (answer["state"], answer["message"]) == ("failed", "no such host")


def test_all_packages_and_why_they_failed_are_listed(settings: Settings) -> None:
    client, _ = asked(settings, FAILS)
    assert client.get("/api/packages").json() == {"pack": {"state": "failed", "message": "no such host"}}


def test_a_server_that_fetches_nothing_says_so(settings: Settings) -> None:
    _, answer = asked(settings, "")
    assert (answer["state"], answer["message"]) == ("failed", "this server fetches no packages")


def test_a_package_without_its_file_is_no_package(settings: Settings) -> None:
    _, answer = asked(settings, "pass")
    assert answer["state"] == "failed"
    assert "n.tflite" in answer["message"]


@pytest.mark.parametrize("name", ["other", ""])
def test_only_known_packages_can_be_asked_for(client: TestClient, name: str) -> None:
    assert client.get(f"/api/packages/{name}").status_code == 404
    assert client.post(f"/api/packages/{name}").status_code == 404


def test_no_other_site_makes_this_one_fetch(client: TestClient) -> None:
    refused = client.post("/api/packages/pack", headers={"sec-fetch-site": "cross-site"})
    assert refused.status_code == 403
    assert client.get("/api/packages/pack").json()["state"] == "absent"
