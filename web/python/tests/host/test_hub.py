"""Models by address: from a hub on this machine, over connections that break, into the cache folder and out of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.hub_server import Hub, served_hub
from tests.session.models import model

import webinfer
from webinfer.cli import main
from webinfer.errors import InputError, IntegrityError, ModelFormatError
from webinfer.host import cache_folder, downloads, kept_downloads
from webinfer.host.hub import located
from webinfer.host.interface import ProgressEvent
from webinfer.host.kept_downloads import kept_download
from webinfer.host.progress_bar import ProgressBar, is_shown

MODEL = model()
LARGE = bytes(range(256)) * 8000  # 2 MB: eight chunks


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with served_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("WEBINFER_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr(downloads, "PAUSE_S", 0.01)
        hub.files = {"o/n/small.tflite": MODEL, "o/n/README.md": b"", "o/large/weights.onnx": LARGE}
        yield hub


def found(address: str) -> str:
    async def fetch(url: str) -> memoryview:
        return kept_download(url)

    return asyncio.run(located(address, fetch))


def test_a_model_of_a_hub_runs_and_is_asked_for_once(hub: Hub) -> None:
    for _ in range(2):
        with webinfer.load_sync("hf:o/n/small.tflite") as session:
            assert session.name == "small"
            assert session.run(session.noise())
    assert hub.paths() == ["/o/n/resolve/main/small.tflite", "/bytes/o/n/small.tflite"] * 2
    assert hub.seen[-1][2]["If-None-Match"]


def test_a_repository_with_one_model_needs_no_name_of_a_file(hub: Hub) -> None:
    hub.files |= {
        "o/q/a-Q4_K_M.gguf": b"",
        "o/q/a-Q8_0-00001-of-00002.gguf": b"",
        "o/q/a-Q8_0-00002-of-00002.gguf": b"",
    }
    hub.files |= {"o/t/onnx/model.onnx": b"", "o/t/onnx/model_int8.onnx": b"", "o/v/a.onnx": b"", "o/v/b.onnx": b""}
    base = hub.address
    assert found("hf:o/n") == found("hf://o/n/small.tflite") == f"{base}/o/n/resolve/main/small.tflite"
    assert found("hf:o/q") == f"{base}/o/q/resolve/main/a-Q4_K_M.gguf"
    assert found("hf:o/q:q8_0") == f"{base}/o/q/resolve/main/a-Q8_0-00001-of-00002.gguf"
    assert found("hf:o/t") == f"{base}/o/t/resolve/main/onnx/model.onnx"
    assert found("hf:o/n@v1/a b.onnx") == f"{base}/o/n/resolve/v1/a%20b.onnx"
    assert found("model.onnx") == "model.onnx"
    with pytest.raises(InputError, match=r"several models; name one.*a.onnx, b.onnx"):
        found("hf:o/v")
    with pytest.raises(InputError, match="no one file of Q5"):
        found("hf:o/q:Q5")
    for address in ("hf:o", "hf:o/../n/x", "hf:"):
        with pytest.raises(InputError, match="is not hf:owner/name/file"):
            found(address)
    with pytest.raises(ModelFormatError, match=r"404.*check owner, name and file"):
        webinfer.load_sync("hf:o/n/none.onnx")


def test_a_download_that_breaks_off_goes_on_where_it_was(hub: Hub) -> None:
    hub.breaks = [700_000, 300_000]
    told: list[ProgressEvent] = []
    assert kept_download(f"{hub.address}/o/large/resolve/main/weights.onnx", told.append) == LARGE
    assert [headers.get("Range") for _, path, headers in hub.seen if path.startswith("/bytes")] == [
        None, "bytes=700000-", "bytes=1000000-",
    ]  # fmt: skip
    assert (told[-1].done, told[-1].total) == (len(LARGE), len(LARGE))
    assert [event.done for event in told] == sorted(event.done for event in told)


def test_another_process_goes_on_with_a_download_that_was_given_up(hub: Hub) -> None:
    hub.breaks = [500_000, 0, 0, 0, 0, 0]
    url = f"{hub.address}/bytes/o/large/weights.onnx"
    with pytest.raises(ModelFormatError, match="ended after"):
        kept_download(url)
    hub.breaks, hub.seen = [], []
    code = f"from webinfer.host.kept_downloads import kept_download; print(len(kept_download({url!r})))"
    path = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout.strip() == str(len(LARGE)), done.stderr
    assert hub.seen[0][2]["Range"] == "bytes=500000-"
    assert kept_download(url) == LARGE


def test_a_part_of_an_earlier_edition_is_not_gone_on_with(hub: Hub) -> None:
    hub.breaks = [500_000, 0, 0, 0, 0, 0]
    url = f"{hub.address}/bytes/o/large/weights.onnx"
    with pytest.raises(ModelFormatError, match="ended after"):
        kept_download(url)
    hub.breaks, hub.files["o/large/weights.onnx"] = [], LARGE[::-1]
    assert kept_download(url) == LARGE[::-1]


def test_what_comes_damaged_is_refused_by_the_hash_that_the_hub_tells(hub: Hub) -> None:
    hub.damaged = 1
    with pytest.raises(IntegrityError, match="arrived damaged"):
        webinfer.load_sync("hf:o/n/small.tflite")
    with webinfer.load_sync("hf:o/n/small.tflite") as session:
        assert session.run(session.noise())


def test_the_digest_of_any_server_is_checked(hub: Hub) -> None:
    hub.headers = {"Repr-Digest": "sha-256=:" + "A" * 43 + "=:"}
    with pytest.raises(IntegrityError, match="the server says 0000000000000000"):
        kept_download(f"{hub.address}/bytes/o/n/small.tflite")


def test_without_the_server_the_copy_is_used_and_told(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    with served_hub() as other:
        other.files = hub.files
        url = f"{other.address}/bytes/o/n/small.tflite"
        assert kept_download(url) == MODEL
    assert kept_download(url) == MODEL
    assert "the copy of" in caplog.text
    with pytest.raises(ModelFormatError, match="check the address and the network"):
        kept_download(url, fresh=True)


def test_a_copy_that_was_changed_is_downloaded_again(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    url = f"{hub.address}/bytes/o/n/small.tflite"
    kept_download(url)
    (row,) = kept_downloads.listed()
    os.utime(row.file)  # touched, with the same bytes
    assert kept_download(url) == MODEL
    assert len(hub.seen) == 2
    assert hub.seen[-1][2]["If-None-Match"]
    row.file.write_bytes(b"?" + MODEL[1:])
    assert kept_download(url) == MODEL
    assert "was changed" in caplog.text


def test_nothing_is_kept_where_the_server_or_the_user_forbids_it(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{hub.address}/bytes/o/n/small.tflite"
    hub.headers = {"Cache-Control": "no-store"}
    assert kept_download(url) == MODEL
    hub.headers, hub.etags = {}, False
    assert kept_download(url) == MODEL
    assert not kept_downloads.listed()
    monkeypatch.setenv("WEBINFER_CACHE", "off")
    hub.etags = True
    assert kept_download(url) == MODEL
    assert cache_folder.folder() is None


def test_an_address_of_a_commit_is_not_asked_for_again(hub: Hub) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    for _ in range(2):
        with webinfer.load_sync(f"hf:o/n@{commit}/small.tflite"):
            pass
    assert len(hub.seen) == 2  # the redirect, and the bytes


def test_threads_that_want_one_file_download_it_once(hub: Hub) -> None:
    url, came = f"{hub.address}/bytes/o/large/weights.onnx", []
    threads = [threading.Thread(target=lambda: came.append(kept_download(url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert came == [LARGE] * 4
    assert sum("If-None-Match" not in headers for _, _, headers in hub.seen) == 1


def test_a_token_goes_to_the_hub_alone(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    kept_download(f"{hub.address}/o/n/resolve/main/small.tflite")
    with served_hub() as other:
        other.files = hub.files
        kept_download(f"{other.address}/bytes/o/n/small.tflite")
        assert "Authorization" not in other.seen[0][2]
    assert [headers.get("Authorization") for _, _, headers in hub.seen] == ["Bearer secret", None]


def test_the_cache_is_listed_found_and_emptied_from_a_shell(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"{hub.address}/o/n/resolve/main/small.tflite"
    kept_download(url)
    cache_folder.remember("published-face.tflite", bytes(2000))
    cache_folder.remember("machine-code.1", bytes(3000))
    assert main(["cache", "ls"]) == 0
    told = capsys.readouterr()
    assert url in told.out
    assert "2.0 kB" in told.out
    assert "face.tflite" in told.out
    assert "machine code (1 files)" in told.out
    assert main(["cache", "path", "hf:o/n/small.tflite"]) == 0
    assert Path(capsys.readouterr().out.strip()).read_bytes() == MODEL
    assert main(["cache", "rm", "face.tflit"]) == 2
    assert "did you mean 'face.tflite'?" in capsys.readouterr().err
    assert main(["cache", "rm", "hf:o/n/small.tflite", "face.*"]) == 0
    assert "2 removed" in capsys.readouterr().out
    assert not kept_downloads.listed()
    assert main(["cache", "rm", "--all"]) == 0
    folder = cache_folder.folder()
    assert folder is not None
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_a_bar_has_the_form_of_tqdm_where_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    seconds = iter(range(100))
    with ProgressBar("weights.onnx", clock=lambda: next(seconds)) as bar:
        bar(ProgressEvent("model", 0, 10_000_000))
        bar(ProgressEvent("model", 4_500_000, 10_000_000))
        bar(ProgressEvent("model", 10_000_000, 10_000_000))
    lines = capsys.readouterr().err.replace("\n", "\r").split("\r")
    assert "weights.onnx:  45%|████▌     | 4.50M/10.0M [00:" in "\r".join(lines)
    assert lines[-2].startswith("weights.onnx: 100%|██████████| 10.0M/10.0M [00:")


def test_a_bar_is_tqdms_where_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Tqdm:
        def __init__(self, total: int, desc: str, initial: int, **options: object) -> None:
            self.n, self.total, self.options, self.closed = initial, total, options, False
            made.append(self)

        def update(self, n: int) -> None:
            self.n += n

        def refresh(self) -> None:
            pass

        def close(self) -> None:
            self.closed = True

    module = type(sys)("tqdm.auto")
    module.tqdm = Tqdm  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", type(sys)("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    with ProgressBar("photos") as bar:
        for done in range(1, 4):
            bar(ProgressEvent("run", done, 3, "pictures"))
    assert [(one.n, one.total, one.options["unit"], one.closed) for one in made] == [(3, 3, " pictures", True)]


def test_who_looks_is_known_from_the_terminal_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBINFER_PROGRESS", raising=False)
    assert not is_shown()  # pytest's standard error is not a terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert is_shown()
    monkeypatch.setenv("WEBINFER_PROGRESS", "off")
    assert not is_shown()
