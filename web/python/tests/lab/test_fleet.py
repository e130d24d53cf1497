"""Suites on the devices of a lab: real engines behind real WebSockets; and browsers that a grid brings."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.lab.devices import Devices, Engine

import webinfer
from webinfer import lab
from webinfer.cli import main
from webinfer.lab.browsers import AGREE, HERE, READY, grid_browsers
from webinfer.lab.errors import LabError
from webinfer.lab.fleet import ZOO, models_of, page_of, read_runs, run_suite, shard_of
from webinfer.package import compile_model

pytest.importorskip("sqlalchemy")
pytest.importorskip("websockets")
from server.tests.lab_devices import TOKEN


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, a file that is none, and one that is of no suite."""
    folder = tmp_path_factory.mktemp("suite") / "small"
    folder.mkdir()
    for name in ("tanh", "exp"):
        builder = webinfer.GraphBuilder(name)
        builder.output(builder.node(name, builder.input("x", (1, 8))), "y")
        made = compile_model(builder, backend="wasm", threads=False)
        (folder / f"{name}.webinfer").write_bytes(bytes(webinfer.run_sync(made)))
    (folder / "broken.onnx").write_bytes(b"\xff" * 40)
    (folder / "notes.txt").write_text("not a model")
    return folder


def test_shards_have_each_model_once() -> None:
    models = models_of(ZOO)
    shards = [shard_of(models, f"{number}/8")[0] for number in range(1, 9)]
    assert sorted(model for shard in shards for model in shard) == models
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    for wrong in ("0/8", "9/8", "3", "a/b", "-1/2"):
        with pytest.raises(webinfer.InputError, match="3/8 for the third of eight"):
            shard_of(models, wrong)
    with pytest.raises(webinfer.InputError, match="neither 'zoo' nor a folder"):
        models_of("nowhere")


def test_a_suite_on_two_devices_becomes_files_that_stay_and_a_page(
    root: str, devices: Devices, suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of the devices answers wrongly."""
    devices.join("good", Engine())
    devices.join("bad", Engine(lies=0))
    runs, address = tmp_path / "runs", f"{root}/lab#token={TOKEN}"
    command = ["lab", "run", "--lab", address, "--suite", str(suite), "--rounds", "2", "-o", str(runs)]
    assert main([*command, "--device", "good", "--shard", "1/2"]) == 1  # a file there is not a model
    assert main([*command, "--device", "good", "--device", "bad", "--shard", "2/2"]) == 1
    assert "bad, exp.webinfer on wasm" in (said := capsys.readouterr().out)
    assert said.count("WRONG: 'y'") == 1
    found = read_runs(runs)
    first, second = sorted(found.values(), key=lambda run: run["shard"])
    assert [row["model"] for row in first["rows"]] == ["broken.onnx", "tanh.webinfer"]
    assert "error" in first["rows"][0]
    assert first["rows"][1]["right"]
    assert first["rows"][1]["runs"] == 2
    assert {row["device"]: row["right"] for row in second["rows"]} == {"good": True, "bad": False}
    file = runs / next(iter(found))
    assert not file.stat().st_mode & 0o222
    assert main(["lab", "page", str(runs)]) == 0
    assert main(["lab", "page", str(runs / "none")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    page = (runs / "index.html").read_text()
    assert all(text in page for text in ("tanh.webinfer", "broken.onnx", "wrong: y", *found))
    assert "no run of" not in page
    assert "small: no run of 1 of 2" in page_of({"one": second})
    file.chmod(0o644)
    file.write_text(file.read_text().replace('"runs": 2', '"runs": 3') + " ")
    with pytest.raises(webinfer.IntegrityError, match="does not have the hash in its name"):
        read_runs(runs)


def test_a_lab_without_devices_runs_no_suite(root: str, suite: Path) -> None:
    with pytest.raises(lab.NoDeviceError, match="has no free device"):
        asyncio.run(run_suite(str(suite), address=f"{root}/lab#token={TOKEN}"))


class Grid(http.server.BaseHTTPRequestHandler):
    """A WebDriver whose browsers open a page and do what three scripts tell."""

    asked: list[tuple[str, str, Any]]
    refuses: bool

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(("POST", self.path, body))
        if self.refuses:
            self._answer(500, {"error": "session not created", "message": "no browser is free\nstack"})
            return
        script = body.get("script", "")
        known = any(script == f"return ({text})(...arguments)" for text in (READY, AGREE, HERE))
        self._answer(200, {"sessionId": "one"} if self.path == "/session" else known)

    def do_DELETE(self) -> None:
        self.asked.append(("DELETE", self.path, None))
        self._answer(200, None)

    def _answer(self, status: int, value: Any) -> None:
        data = json.dumps({"value": value}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("refuses", [False, True])
def test_browsers_of_a_grid_open_the_labs_page_agree_and_are_given_back(refuses: bool) -> None:
    handler = type("Handler", (Grid,), {"asked": [], "refuses": refuses})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        grid, address = f"http://127.0.0.1:{server.server_port}", "http://lab:8000/lab#token=it"

        async def work() -> list[str]:
            async with grid_browsers(grid, 1, browser="firefox", address=address) as names:
                return names

        if refuses:
            with pytest.raises(LabError, match=r"refuses: no browser is free$"):
                asyncio.run(work())
        else:
            assert asyncio.run(work()) == ["grid firefox 1"]
        server.shutdown()
    if refuses:
        return
    wanted = handler.asked[0][2]["capabilities"]["alwaysMatch"]
    assert wanted == {"browserName": "firefox", "moz:firefoxOptions": {"args": ["-headless"]}}
    assert [(method, path) for method, path, _ in handler.asked[1:]] == [
        ("POST", "/session/one/url"),
        *[("POST", "/session/one/execute/sync")] * 3,
        ("DELETE", "/session/one"),
    ]
    assert handler.asked[1][2] == {"url": address}
    assert handler.asked[3][2]["args"] == ["grid firefox 1"]
