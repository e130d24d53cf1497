"""`webinfer serve --site`: a folder for a browser on this machine."""

import asyncio
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.ops.case_graphs import run

from webinfer.errors import InputError
from webinfer.package.serving import serve_folder


def answers(folder: Path, *paths: str) -> list[tuple[int, str, str | None]]:
    """Status, type and embedder policy of what a server of this folder answers to each path."""

    def ask(address: str) -> tuple[int, str, str | None]:
        try:
            with urllib.request.urlopen(address, timeout=10) as got:
                return got.status, got.headers["Content-Type"], got.headers["Cross-Origin-Embedder-Policy"]
        except urllib.error.HTTPError as error:
            return error.code, "", error.headers["Cross-Origin-Embedder-Policy"]

    async def served() -> list[tuple[int, str, str | None]]:
        address: asyncio.Queue[str] = asyncio.Queue()
        task = asyncio.create_task(serve_folder(folder, 0, address.put_nowait))
        root = (await address.get()).rstrip("/")
        found = [await asyncio.to_thread(ask, root + path) for path in paths]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(urllib.error.URLError):
            await asyncio.to_thread(ask, root)
        return found

    return run(served())


def test_pages_and_modules_come_with_their_types_and_isolated(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("not of the site")
    site = tmp_path / "site"
    (site / "parts").mkdir(parents=True)
    for name in ("index.html", "model.wasm", "player.js", "parts/more.mjs"):
        (site / name).write_text("")
    found = answers(site, "/", "/model.wasm", "/player.js", "/parts/more.mjs", "/parts/", "/../secret.txt", "/none")
    assert [status for status, *_ in found] == [200, 200, 200, 200, 404, 404, 404]
    kinds = ["text/html; charset=utf-8", "application/wasm", *["text/javascript; charset=utf-8"] * 2]
    assert [kind for _, kind, _ in found[:4]] == kinds
    assert {policy for *_, policy in found} == {"require-corp"}


def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no index.html; `webinfer export"):
        run(serve_folder(tmp_path, 0))
    (tmp_path / "index.html").write_text("")
    with pytest.raises(InputError, match="--port names another one"):
        run(serve_folder(tmp_path, 70_000))
