"""What .venv gets: exact versions, and no file without a hash that the project keeps."""

import re
import zipfile
from pathlib import Path

import pytest

from build_scripts.errors import BuildError
from build_scripts.paths import ROOT, configuration
from build_scripts.setup import environment
from build_scripts.setup.environment import pinned_versions, requirements, requirements_file


def test_no_pin_is_loose_and_every_package_has_hashes() -> None:
    groups = configuration()["dependency-groups"]
    assert not [name for name in requirements(groups) if "==" not in name]
    wheel = configuration()["build-system"]["requires"]
    assert set(wheel) <= set(requirements(groups)), "pip builds with the pinned versions"
    for group in groups:
        text = requirements_file(group).read_text()
        rows = pinned_versions(text)
        names = {row.split(" ; ")[0] for row in rows}
        assert {re.sub(r"\[.*?\]", "", name) for name in requirements([group])} <= names, group
        assert all(re.match(r"[a-z0-9-]+==\S+( ; .+)?$", row) for row in rows)
        blocks = re.split(r"^(?=\S)", text.partition(rows[0].split(" ")[0])[2], flags=re.MULTILINE)
        assert len(blocks) == len(rows)
        assert all("--hash=sha256:" in block for block in blocks), group
        assert "://" not in text
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("exec python3 -m build_scripts test --every-browser")


def test_a_package_with_another_hash_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = tmp_path / "small_thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("small_thing.py", "")
        archive.writestr(
            "small_thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: small-thing\nVersion: 1.0\n"
        )
        archive.writestr(
            "small_thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("small_thing-1.0.dist-info/RECORD", "")
    locked = tmp_path / "group.txt"
    for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", tmp_path), ("TARGET", tmp_path / "into")):
        monkeypatch.setenv(f"PIP_{name}", str(value))
    monkeypatch.setattr(environment, "requirements_file", lambda group: locked)
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.delenv(environment.UNCHECKED, raising=False)

    locked.write_text(f"small-thing==1.0 \\\n    --hash=sha256:{'0' * 64}\n")
    with pytest.raises(BuildError, match=f"hash that group.txt lists[^$]*set {environment.UNCHECKED}=1"):
        environment._install("group")
    assert not (tmp_path / "into").exists()

    monkeypatch.setenv(environment.UNCHECKED, "1")
    environment._install("group")
    assert "no file is checked" in capsys.readouterr().out
    assert (tmp_path / "into" / "small_thing.py").exists()
