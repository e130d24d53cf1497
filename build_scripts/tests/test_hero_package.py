"""The home page's package is compiled on a machine that has nothing but what its step installs."""

import subprocess
from pathlib import Path

import pytest

from build_scripts.site import hero_package


def test_the_kernels_runtime_is_installed_before_the_package_is_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[object] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        done.append(command[2:4])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(hero_package, "PACKAGES", tmp_path)
    monkeypatch.setattr(hero_package, "ensure_groups", done.append)
    monkeypatch.setattr(subprocess, "run", run)
    hero_package.compile_package()
    assert done == [("native",), ["webinfer", "compile"]]
