"""Dumps of models: two are compared file by file, renamed kernels by a mapping."""

import json
from pathlib import Path

import pytest

from build_scripts.errors import BuildError
from build_scripts.judge.dump import compare, run


def folders(tmp_path: Path, old: str, new: str) -> tuple[Path, Path]:
    for name, text in (("a", old), ("b", new)):
        (tmp_path / name / "wasm").mkdir(parents=True)
        (tmp_path / name / "wasm" / "steps.txt").write_text(text)
    return tmp_path / "a", tmp_path / "b"


def test_equal_dumps_give_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = folders(tmp_path, "relu units=1\n", "relu units=1\n")
    assert run(["--compare", str(a), str(b)]) == 0
    assert capsys.readouterr().out == "1 equal, 0 differ\n"


def test_a_difference_names_its_file_and_first_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = folders(tmp_path, "relu units=1\nadd\n", "relu units=1\nmul\n")
    assert run(["--compare", str(a), str(b), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found == {"equal": 0, "differ": {"wasm/steps.txt": "line 2: 'add' became 'mul'"}}


def test_a_file_on_one_side_differs(tmp_path: Path) -> None:
    a, b = folders(tmp_path, "", "")
    (b / "more.wgsl").write_text("fn main() {}")
    assert compare(a, b, {}) == (1, {"more.wgsl": "only in b"})


def test_renamed_kernels_are_equal_by_a_mapping(tmp_path: Path) -> None:
    a, b = folders(tmp_path, "f32_conv_4x8 f32_conv\n", "f32_conv_4x8 f32_convolution\n")
    (a / "pool_any_1.wgsl").write_text("")
    (b / "pool_all_1.wgsl").write_text("")
    assert compare(a, b, {})[0] == 0
    mapping = tmp_path / "names.json"
    mapping.write_text(json.dumps({"f32_conv": "f32_convolution", "pool_any": "pool_all"}))
    assert run(["--compare", str(a), str(b), "--names", str(mapping)]) == 0


def test_comments_of_shaders_do_not_count(tmp_path: Path) -> None:
    a, b = folders(tmp_path, "", "")
    (a / "k.wgsl").write_text("// old words\nlet x = 1u; // more\n")
    (b / "k.wgsl").write_text("// new words\n\nlet x = 1u;\n")
    assert compare(a, b, {}) == (2, {})
    (b / "k.wgsl").write_text("let x = 2u;\n")
    assert list(compare(a, b, {})[1]) == ["k.wgsl"]


def test_a_folder_without_models_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="--models"):
        run(["--models", str(tmp_path), "--to", str(tmp_path / "out")])
    with pytest.raises(BuildError, match="--to"):
        run([])
