"""Fixtures: settings for a hand-made site, and a client of its server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from server.app import create_app
from server.settings import Settings
from server.tests.sites import made_site


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return made_site(tmp_path)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as client:
        yield client
