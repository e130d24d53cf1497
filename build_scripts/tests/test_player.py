"""The player's npm package is whole: what it names is there, what it exports is typed, and it is small."""

import gzip
import json
import re
import subprocess
from pathlib import Path

import pytest

from build_scripts.paths import settings
from build_scripts.setup.node import npm_command
from build_scripts.site.npm_bundle import ESBUILD
from build_scripts.site.player import SOURCE, write_player


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not ESBUILD.is_file():
        pytest.skip("web/node_modules is not installed: python3 -m build_scripts setup")
    return write_player(tmp_path_factory.mktemp("player"))


def test_npm_packs_what_the_package_names(package: Path) -> None:
    facts = json.loads((package / "package.json").read_text())
    assert not facts.get("dependencies")
    command = [*npm_command(), "pack", "--dry-run", "--json", "--loglevel=error"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=True)
    packed = {file["path"] for file in json.loads(done.stdout)[0]["files"]}
    assert packed == {*facts["files"], "package.json"}
    assert {facts["main"][2:], facts["types"][2:]} <= packed


def test_the_player_is_small(package: Path) -> None:
    budgets = settings()["sizes"]["products"]
    for name in ("player", "player_tasks"):
        most = budgets[f"build/player/{name}.js"]["gzip"]
        assert len(gzip.compress((package / f"{name}.js").read_bytes(), 9)) <= most


def test_all_that_is_exported_has_a_type(package: Path) -> None:
    types = (package / "player.d.ts").read_text()
    exported = re.search(r"export\{([^}]*)\}", (package / "player.js").read_text())
    assert exported
    names = {item.split(" as ")[-1] for item in exported[1].split(",")}
    assert names == {"PlayerError", "capabilities", "load"}
    assert all(re.search(rf"export (?:function|class) {name}\b", types) for name in names)


def test_the_engines_own_scripts_drive_the_gpu() -> None:
    taken = re.findall(
        r'from "(?:\.\./)+static/\w+/(\w+)\.js"', "".join(p.read_text() for p in (SOURCE / "src").glob("*.js"))
    )
    assert {"gpu_device", "gpu_picture", "gpu_program", "integrity"} <= set(taken)
