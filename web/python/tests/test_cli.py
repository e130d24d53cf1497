"""The command line: what it prints, and that whatever is wrong with it is one line and exit status 2."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.importers.tflite_writer import Writer
from tests.session.models import model

from webinfer.cli import _save, main
from webinfer.dtypes import DType
from webinfer.tensor import Tensor
from webinfer.version import VERSION

VERBS = (["run"], ["bench", "--rounds", "2"], ["verify"])


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "small.tflite"
    path.write_bytes(model())
    return str(path)


def status_of(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as end:  # argparse ends the process itself
        return int(end.code or 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ["bench", "--rounds", "0"], ["bench", "--rounds", "-3"], ["bench", "--rounds", "x"],
        ["bench", "--rounds", "1.5"],
        ["verify", "--tolerance", "nan"], ["verify", "--tolerance", "-1"], ["verify", "--tolerance", "x"],
        ["verify", "--against", "cuda"], ["tune", "--budget-ms", "nan"], ["tune", "--budget-ms", "-5"],
        ["tune", "--budget-ms", "x"], ["run", "--backend", "cuda"], ["run", "--precision", "half"],
        ["run", "--nothing"], ["run", "--shape", "image=1xx6"], ["run", "--shape", "1x6"], ["bench", "--shape", "i=2"],
        ["run", "image=nowhere.npy"], ["run", "image"], ["run", "--output", "/dev/null/folder"],
        ["bench", "--rounds", "1", "--svg", "/dev/null/profile.svg"], ["dance"], [],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_wrong_is_one_line(arguments: list[str], file: str, capsys: pytest.CaptureFixture[str]) -> None:
    known = arguments[:1] if arguments[:1] != ["dance"] else []
    backend = ["--backend", "wasm"] if known and "--backend" not in arguments else []
    given = [*known, file, *backend, *arguments[1:]] if known else arguments
    assert status_of(given) == 2
    told = capsys.readouterr().err
    assert told.startswith("webinfer: ")
    assert told.count("\n") == 1, told


def test_a_budget_is_refused_before_a_backend_is_asked(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", file, "--backend", "wasm", "--budget-ms", "-5"]) == 2
    assert "--budget-ms is -5.0, needs a number of milliseconds from 0 up" in capsys.readouterr().err


def test_outputs_are_written(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", file, "--backend", "wasm", "--output", str(tmp_path / "out")]) == 0
    assert np.load(tmp_path / "out" / "y.npy").shape == (1, 36)
    assert capsys.readouterr().out.startswith("y: float32 [1, 36] min ")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64", "bfloat16"])
def test_outputs_of_every_type_are_written_without_numpy(dtype: str, tmp_path: Path) -> None:
    for shape in ((2, 3), (), (0, 4)):
        numbers = (np.arange(math.prod(shape)) % 2).astype("float32" if dtype == "bfloat16" else dtype).reshape(shape)
        data = (numbers.view("uint32") >> 16).astype("uint16") if dtype == "bfloat16" else numbers
        _save(tmp_path, "a/b", Tensor(data.tobytes(), shape, DType(dtype)))
        found = np.load(tmp_path / "a_b.npy")
        assert (found.dtype, found.shape) == (numbers.dtype, shape)
        assert (found == numbers).all()


def test_who_lacks_numpy_is_told_so(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert main(["run", file, "--output", str(tmp_path), "--backend", "wasm"]) == 0
    assert capsys.readouterr().out.startswith("y: float32")
    assert (tmp_path / "y.npy").is_file()
    assert main(["run", file, "image=picture.npy", "--backend", "wasm"]) == 2
    told = capsys.readouterr()
    assert "NumPy: pip install numpy" in told.err
    assert not told.out


@pytest.mark.parametrize("backend", ["wasm", "reference"])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize("dtype", ["bool", "int64", "int32", "uint8", "float32"])
def test_every_verb_runs_on_inputs_of_every_type(dtype: str, verb: list[str], backend: str, tmp_path: Path) -> None:
    w = Writer()
    x, y = w.input("x", (2, 3), dtype), w.tensor("y", (3, 2), dtype)
    w.node("TRANSPOSE", [x, w.constant("order", np.int32([1, 0]))], [y])
    path = tmp_path / "turned.tflite"
    path.write_bytes(w.finish(y))
    assert main([verb[0], str(path), "--backend", backend, *verb[1:]]) == 0


def test_an_output_without_elements_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    w = Writer()
    x, y = w.input("x", (0, 3)), w.tensor("y", (0, 3))
    w.node("ABS", [x], [y])
    (tmp_path / "empty.tflite").write_bytes(w.finish(y))
    assert main(["run", str(tmp_path / "empty.tflite"), "--backend", "reference"]) == 0
    assert capsys.readouterr().out == "y: float32 [0, 3] no elements\n"


def test_open_sizes_are_given_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.session.models import open_model

    path = tmp_path / "open.tflite"
    path.write_bytes(open_model())
    assert status_of(["run", str(path), "--backend", "reference", "--shape", "image=1x5x7x2"]) == 0
    assert "y: float32 [1, 5, 7, 4]" in capsys.readouterr().out


def test_open_sizes_without_defaults_are_asked_for_with_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 3]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "open", ends[:1], ends[1:])
    path = tmp_path / "open.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    assert status_of(["inspect", str(path)]) == 0  # its inputs can be told without sizes
    assert "input x: float32 ['rows', 3]\n" in (told := capsys.readouterr().out)
    assert "--shape x=1x3" in told
    for verb in ("run", "bench", "verify", "inspect --json"):
        assert status_of([*verb.split(), str(path)]) == 2
        assert "--shape x=1x3" in capsys.readouterr().err
    assert status_of(["run", str(path), "--shape", "x=2x3"]) == 0


@pytest.mark.parametrize("verb", ["serve", "serve --lab"])
def test_who_would_serve_from_an_installation_is_told_the_way(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(verb.split()) == 2
    told = capsys.readouterr().err
    assert f"python3 -m build_scripts {verb}" in told


def test_a_misspelt_model_is_answered_with_names_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "blazefase"]) == 2
    assert "blazeface_short_range" in capsys.readouterr().err
    assert main(["inspect", "nothing-like-it.onnx"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_ctrl_c_ends_a_verb_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def stopped(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("webinfer.cli._inspect", stopped)
    assert main(["inspect", "blazeface_short_range"]) == 130
    assert capsys.readouterr().err == ""


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"webinfer {VERSION}\n"
