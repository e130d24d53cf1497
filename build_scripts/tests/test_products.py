"""What the build makes: the wheel, the lock, the site and the models."""

import ast
import base64
import hashlib
import json
import marshal
import re
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageStat

from build_scripts.paths import (
    BROWSER_WHEELS,
    ENGINE,
    IMAGES,
    KERNELS,
    MODELS,
    PAGE_ENGINE,
    ROOT,
    SITE,
    WEB,
    settings,
    version,
)
from build_scripts.setup import models
from build_scripts.setup.models import packed_files
from build_scripts.site import page_engine
from build_scripts.site.page_engine import CPYTHON_ONLY, engine_files, solid, write_wheel
from build_scripts.site.wheel import wheel_name
from server.manifest import read_manifest

needs_build = pytest.mark.skipif(
    not (SITE / "manifest.json").is_file(), reason="the site was not built: python3 -m build_scripts setup"
)


def _unchanged(source: str, field_types: object) -> str:
    """In place of the minifier, by a name that other processes know."""
    return source


@pytest.fixture(scope="module")
def members() -> dict[str, bytes]:
    """What the browser's wheel holds, its sources as they are: test_minify has the minifier."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_engine, "minify", _unchanged)
        return page_engine.browser_members()


def test_two_wheels_of_the_same_engine_are_the_same_bytes(members: dict[str, bytes], tmp_path: Path) -> None:
    write_wheel(tmp_path / "first.whl", members)
    write_wheel(tmp_path / "second.whl", dict(reversed(members.items())))
    assert (tmp_path / "first.whl").read_bytes() == (tmp_path / "second.whl").read_bytes()


def test_the_wheel_records_every_member_with_its_hash(tmp_path: Path) -> None:
    path = tmp_path / wheel_name()
    write_wheel(path, {"webinfer/__init__.py": b"x = 1\n", "webinfer/_shaders/a.wgsl": b"// a\n"})
    with zipfile.ZipFile(path) as packed:
        names = packed.namelist()
        record = next(name for name in names if name.endswith(".dist-info/RECORD"))
        rows = [line.rsplit(",", 2) for line in packed.read(record).decode().splitlines()]
        assert sorted(row[0] for row in rows) == sorted(names)
        for name, digest, size in rows:
            if name != record:
                data = packed.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert (digest, int(size)) == (f"sha256={expected}", len(data))


def test_a_wheel_that_was_packed_with_care_is_smaller_and_holds_the_same(tmp_path: Path) -> None:
    zopfli = pytest.importorskip("zopfli", reason="needs pip zopfli")
    from build_scripts.site.thorough import Thorough

    data = {"webinfer/a.py": Path(__file__).read_bytes(), "webinfer/b.py": b""}
    for name, compressor in (("plain", None), ("thorough", Thorough)):
        write_wheel(tmp_path / f"{name}.whl", data, compressor)
    assert (tmp_path / "thorough.whl").stat().st_size < 0.98 * (tmp_path / "plain.whl").stat().st_size, zopfli
    with zipfile.ZipFile(tmp_path / "thorough.whl") as packed:
        assert packed.testzip() is None
        assert packed.read("webinfer/a.py") == data["webinfer/a.py"]


def test_a_wheel_holds_the_engine_and_its_shaders_and_nothing_else() -> None:
    names = {name for name, _ in engine_files()}
    python = {f"webinfer/{path.relative_to(ENGINE).as_posix()}" for path in ENGINE.rglob("*.py")}
    shaders = {
        f"webinfer/_shaders/{path.relative_to(WEB / 'shaders').as_posix()}"
        for path in (WEB / "shaders").rglob("*.wgsl")
    }
    assert python | shaders <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_the_browsers_wheel_leaves_out_only_what_no_page_uses(members: dict[str, bytes]) -> None:
    bundles = [
        json.loads(data) for name, data in members.items() if name.endswith(("_shaders/all.json", "/shaders.json"))
    ]
    shaders = {name for bundle in bundles for name in bundle}
    assert shaders == {path.name for path in (WEB / "shaders").rglob("*.wgsl")}
    left_out = {name for name, _ in engine_files() if not name.endswith(".wgsl")} - set(members)
    assert {"webinfer/cli.py", "webinfer/host/native.py"} <= left_out
    assert all(name.startswith(CPYTHON_ONLY) for name in left_out)
    missing = [entry for entry in CPYTHON_ONLY if not any(name.startswith(entry) for name in left_out)]
    assert not missing, "the list names what is no longer there"
    of_cpython = re.compile(rb"^(?:import|from) (?:wgpu|wasmtime|numpy)\b", re.MULTILINE)
    wanting = [name for name, data in members.items() if name.endswith(".py") and of_cpython.search(data)]
    assert not wanting, "a page imports all of its modules for the snapshot"
    kept = ("webinfer/backends/wasm", "webinfer/backends/webgpu", "webinfer/importers/tflite")
    assert not [name for name in left_out if name.startswith(kept)]


def test_the_browsers_wheel_keeps_its_modules_in_one_archive_that_python_imports_from(
    members: dict[str, bytes], tmp_path: Path
) -> None:
    write_wheel(tmp_path / wheel_name(), solid(members))
    with zipfile.ZipFile(tmp_path / wheel_name()) as packed:
        packed.extractall(tmp_path / "site")
    read = (
        "import webinfer, webinfer.session.loading, webinfer.importers.onnx as onnx\n"
        "from webinfer.codegen.templates import preload_templates\n"
        "from webinfer.backends.webgpu.default_tunings import DATA\n"
        "preload_templates()\n"
        "print(onnx.__file__, len(DATA), webinfer.load.__module__)"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{read}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    file, tunings, home = done.stdout.split()
    assert "/_modules.zip/webinfer/importers/onnx/" in file
    assert int(tunings) > 0
    assert home == "webinfer.session.loading"


def test_late_parts_are_left_out_and_each_lies_in_one_file_of_its_own(members: dict[str, bytes]) -> None:
    rest, parts = page_engine.without_late_parts(members, lambda sources: sources)
    packed = {name: set(marshal.loads(zlib.decompress(data))) for name, data in parts.items()}
    assert "webinfer/importers/onnx/convert.py" in packed["late-onnx.bin"]
    assert sorted([*rest, *(name for names in packed.values() for name in names)]) == sorted(
        {*members, page_engine.LATE_TABLE}
    )
    shaders = {name for name, data in packed.items() if any(member.endswith("shaders.json") for member in data)}
    assert shaders == {"late-language.bin"}
    assert "block_product_row.wgsl" not in json.loads(rest[page_engine.ALL_SHADERS])
    table = late_table(rest[page_engine.LATE_TABLE])
    for module, (asset, sha256) in table.items():
        file = asset.removeprefix("python/")
        assert sha256 == hashlib.sha256(parts[file]).hexdigest()
        path = module.replace(".", "/")
        assert any(name in packed[file] for name in (f"{path}.py", f"{path}/__init__.py")), module


def test_what_every_page_loads_imports_no_late_part_before_it_is_needed(members: dict[str, bytes]) -> None:
    rest, _ = page_engine.without_late_parts(members, lambda sources: sources)
    late = tuple(late_table(rest[page_engine.LATE_TABLE]))
    found = []
    for name in (name for name in rest if name.endswith(".py")):
        for node in ast.parse(rest[name]).body:
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found += [
                (name, module) for module in modules if f"{module}.".startswith(tuple(f"{part}." for part in late))
            ]
    assert not found


def late_table(source: bytes) -> dict[str, tuple[str, str]]:
    """PARTS of a late table."""
    table: dict[str, tuple[str, str]] = ast.literal_eval(source.decode().removeprefix("PARTS = "))
    return table


def test_pips_wheel_holds_engine_shaders_kernels_and_the_command(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        ".",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.glob("*.whl")
    assert path.name == wheel_name()
    with zipfile.ZipFile(path) as packed:
        names = set(packed.namelist())
        info = f"webinfer-{version()}.dist-info"
        assert "webinfer = webinfer.cli:main" in packed.read(f"{info}/entry_points.txt").decode()
        assert "Requires-Dist: wasmtime" in packed.read(f"{info}/METADATA").decode()
    assert {name for name, _ in engine_files()} <= names
    assert {"webinfer/py.typed", f"{info}/licenses/LICENSE", "webinfer/backends/wasm/kernel_table.py"} <= names
    assert {f"webinfer/_kernels/{file.name}" for file in KERNELS.glob("*.wasm")} <= names
    scripts = (
        "gpu.js",
        "thread_worker.js",
        "player_player.js",
        "player_player_worker.js",
        "player_player_tasks.js",
        "player_index.html",
        "player_demo.js",
    )
    assert {f"webinfer/_static/{name}" for name in scripts} <= names
    lab = ("server/lab/alone.py", "server/templates/lab.html", "server/pages.toml", "static/lab.js", "static/first.js")
    assert {f"webinfer/_lab/{name}" for name in lab} <= names
    beside = (f"{info}/", *(f"webinfer/{folder}/" for folder in ("_kernels", "_static", "_lab")))
    rest = {name for name in names if not name.startswith(beside)}
    assert rest == {name for name, _ in engine_files()} | {"webinfer/_published.json"}


@needs_build
def test_sample_photos_are_published_small_and_look_the_same() -> None:
    rows = read_manifest(SITE).public["assets"]
    names = [name for name in rows if name.startswith("images/")]
    places = [Path(place) for package in settings()["photos"].values() for place in package["files"].values()]
    kept = {place.with_suffix(".webp").name: place.name for place in places}
    assert {Path(name).name for name in names} == set(kept)
    assert all(rows[name]["bytes"] < 140_000 for name in names)
    for name in names:
        with Image.open(IMAGES / Path(name).name) as small, Image.open(IMAGES / kept[Path(name).name]) as whole:
            difference = ImageChops.difference(small.convert("RGB"), whole.convert("RGB").resize(small.size))
            assert max(ImageStat.Stat(difference).rms) < 8, name  # colours are halved in size


@needs_build
def test_the_lock_names_wheels_that_are_served_beside_it_with_their_hashes() -> None:
    lock = json.loads((PAGE_ENGINE / "pyodide-lock.json").read_text())
    manifest = read_manifest(SITE)
    folder = manifest.folders["python"]
    assert manifest.urls["python/pyodide-lock.json"] == f"{folder}pyodide-lock.json"
    for name, row in lock["packages"].items():
        assert row["file_name"].endswith("-py3-none-any.whl"), f"{name} needs a platform that no browser is"
        assert manifest.assets[folder + row["file_name"]].sha256 == row["sha256"]
        assert set(row["depends"]) <= set(lock["packages"])


@needs_build
def test_markupsafe_for_the_browser_holds_no_machine_code() -> None:
    with zipfile.ZipFile(next(BROWSER_WHEELS.glob("markupsafe-*.whl"))) as packed:
        assert not [name for name in packed.namelist() if name.endswith((".so", ".pyd", ".dylib"))]


@needs_build
def test_every_file_of_the_site_has_the_hash_and_name_that_the_manifest_says() -> None:
    rows = json.loads((SITE / "manifest.json").read_text())["assets"]
    for logical, row in rows.items():
        data = (SITE / row["url"].lstrip("/")).read_bytes()
        assert hashlib.sha256(data).hexdigest() == row["sha256"], logical
        kind = logical.split("/")[0]
        assert row["sha256"][:16] in row["url"] or row["url"].startswith(f"/assets/{kind}-"), logical


@needs_build
def test_compressed_variants_unpack_to_the_file() -> None:
    import gzip

    import brotli
    import zstandard

    for asset in read_manifest(SITE).assets.values():
        unpackers = {"zstd": zstandard.decompress, "br": brotli.decompress, "gzip": gzip.decompress}
        for encoding, variant in asset.encodings.items():
            assert hashlib.sha256(unpackers[encoding](variant.read_bytes())).hexdigest() == asset.sha256


@needs_build
def test_the_packed_face_detector_is_the_published_one() -> None:
    """The face_mesh package carries a second copy; its bytes prove that ranges are read rightly."""
    folder = WEB / "node_modules/@mediapipe/face_mesh"
    table = packed_files((folder / "face_mesh_solution_packed_assets_loader.js").read_text())
    begin, end = table["face_detection_short_range.tflite"]
    packed = (folder / "face_mesh_solution_packed_assets.data").read_bytes()[begin:end]
    assert packed == (MODELS / "face_detection_short_range.tflite").read_bytes()


def test_the_npm_lock_pins_every_package_by_hash_and_names_no_host() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text())
    packages = {name: row for name, row in lock["packages"].items() if name}
    assert packages
    assert all(row["integrity"].startswith("sha512-") for row in packages.values())
    assert not [name for name, row in packages.items() if "resolved" in row]


def test_models_that_were_asked_for_outlive_the_unpacking_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed, unpacked = tmp_path / "face_mesh", tmp_path / "models"
    packed.mkdir()
    unpacked.mkdir()
    (packed / f"{models.FACE_MESH}.data").write_bytes(b"0123TFL3")
    row = '{"filename": "/a.tflite", "start": 0, "end": 8}'
    (packed / f"{models.FACE_MESH}_loader.js").write_text(f'loadPackage({{"files": [{row}]}});')
    (unpacked / "asked_for.onnx").write_bytes(b"model")
    for name, value in (("MEDIAPIPE", tmp_path), ("MODELS", unpacked), ("PLAIN", ()), ("PACKED", ("a.tflite",))):
        monkeypatch.setattr(models, name, value)
    models._unpack_models()
    assert {path.name for path in unpacked.iterdir()} == {"a.tflite", "asked_for.onnx"}
