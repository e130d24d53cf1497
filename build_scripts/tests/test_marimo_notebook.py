"""marimo's page takes a package that is built without its C part; what builds it comes as it is published."""

from pathlib import Path

import pytest

pytest.importorskip("playwright")
from build_scripts.places import marimo_notebook


def test_a_package_is_built_without_c_and_its_build_tools_are_not_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, ...]] = []

    def pip(*arguments: str, extra_environment: dict[str, str]) -> None:
        asked.append(arguments)
        assert extra_environment == {"CC": "/bin/false"}
        (tmp_path / "built").mkdir()
        (tmp_path / "built" / "pyyaml-6.0.3-cp311-cp311-linux_x86_64.whl").write_bytes(b"")

    monkeypatch.setattr(marimo_notebook, "pip", pip)
    marimo_notebook._build_pure("pyyaml==6.0.3", tmp_path)
    at = asked[0].index("--no-binary")
    assert asked[0][at + 1] == "pyyaml", "':all:' would build Cython from source, too"
    assert (tmp_path / "pyyaml-6.0.3-py3-none-any.whl").is_file()
