"""Models that are in no registry: fetched from their publisher, or taken from a folder, and checked."""

import hashlib
from pathlib import Path

import pytest

from build_scripts.errors import BuildError
from build_scripts.setup.task_models import late_packages, repository_file

MODEL = b"TFL3 of another project"
SHA256 = hashlib.sha256(MODEL).hexdigest()


def test_a_folder_stands_in_for_the_network_whatever_its_file_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.tflite").write_bytes(b"another model")
    (tmp_path / "renamed.tflite").write_bytes(MODEL)
    monkeypatch.setenv("WEBINFER_MODELS", f"{tmp_path / 'nothing'}:{tmp_path}")
    assert repository_file("https://nowhere.invalid/model.tflite", SHA256) == MODEL


def test_what_comes_from_the_publisher_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBINFER_MODELS", raising=False)
    file = tmp_path / "model.tflite"
    file.write_bytes(MODEL)
    assert repository_file(file.as_uri(), SHA256) == MODEL
    with pytest.raises(BuildError, match=r"model\.tflite has another hash"):
        repository_file(file.as_uri(), "0" * 64)
    file.unlink()
    with pytest.raises(BuildError, match=r"model\.tflite cannot be fetched .* no folder of WEBINFER_MODELS has it"):
        repository_file(file.as_uri(), SHA256)


def test_every_file_of_a_package_of_repositories_has_its_hash() -> None:
    packages = late_packages()
    assert "models/imagenet_labels.txt" in packages["coral"][1]
    assert "sounds/speech.mp3" in packages["speech"][1]
