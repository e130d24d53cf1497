"""One `.wasm` runs in engines that know nothing of webinfer: wasmtime as library and as command, Node."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wasmtime
from tests.importers.test_variables import ADDING, X
from tests.ops.case_graphs import run
from tests.session.models import IMAGE, model

import webinfer
from webinfer.dtypes import DType
from webinfer.graph.ir import TensorType, Value
from webinfer.host.kernels_native import kernel_engine
from webinfer.package import compile_model, compile_wasm
from webinfer.package.standalone import npy_head


@cache
def module(command: bool = False) -> bytes:
    return run(compile_wasm(model(), command=command))


@cache
def wanted() -> Any:
    data = run(compile_model(model(), backend="wasm", builds=("simd128",), threads=False))
    with run(webinfer.load(data, backend="wasm")) as session:
        return run(session.run(IMAGE))["y"].numpy()


class Instance:
    """A module without imports, as wasmtime runs it."""

    def __init__(self, data: bytes) -> None:
        self.store = wasmtime.Store(kernel_engine())
        self.exports: Any = wasmtime.Instance(self.store, wasmtime.Module(kernel_engine(), data), []).exports(
            self.store
        )

    def __call__(self, name: str, *args: int) -> Any:
        return self.exports[name](self.store, *args)

    def write(self, at: int, data: bytes) -> None:
        self.exports["memory"].write(self.store, data, at)

    def read(self, at: int, nbytes: int) -> bytes:
        return bytes(self.exports["memory"].read(self.store, at, at + nbytes))


def test_a_module_runs_by_itself() -> None:
    instance = Instance(module())
    about = json.loads(instance.read(instance("metadata"), instance("metadata_bytes")))
    assert about["name"] == "model"
    (row,) = about["inputs"]
    assert row == ["image", "float32", [1, 6, 6, 2], None, instance("input", 0), 288]
    for _ in range(2):
        instance.write(instance("input", 0), IMAGE.tobytes())
        instance("run")
        found = np.frombuffer(instance.read(instance("output", 0), 144), np.float32)
        np.testing.assert_array_equal(found, wanted()[0])
    with pytest.raises(wasmtime.Trap):
        instance("input", 1)


def test_variables_live_in_a_module() -> None:
    instance, total = Instance(run(compile_wasm(ADDING, command=False))), np.array([0.5, -1.5], np.float32)
    about = json.loads(instance.read(instance("metadata"), instance("metadata_bytes")))
    x = next(i for i, row in enumerate(about["inputs"]) if row[0] == "x")
    y = next(i for i, row in enumerate(about["outputs"]) if row[0] == "y")
    for given in X:
        total = total + given
        instance.write(instance("input", x), given.tobytes())
        instance("run")
        np.testing.assert_array_equal(np.frombuffer(instance.read(instance("output", y), 8), np.float32), total)


SHARED = Path(__file__).parents[5] / "shared" / "models_more" / "dtln_micro_int8.tflite"


@pytest.mark.skipif(not SHARED.is_file(), reason=f"{SHARED.name} is not there")
def test_what_is_kept_is_not_overwritten_by_the_next_run() -> None:
    instance = Instance(run(compile_wasm(str(SHARED), command=False)))
    about = json.loads(instance.read(instance("metadata"), instance("metadata_bytes")))
    data = run(compile_model(str(SHARED), backend="wasm", builds=("simd128",), threads=False))
    with run(webinfer.load(data, backend="wasm")) as session:
        for seed in range(3):
            given = session.noise(seed=seed)
            for i, row in enumerate(about["inputs"]):
                if row[0] in given:
                    instance.write(instance("input", i), bytes(given[row[0]]))
            instance("run")
            for name, tensor in run(session.run(given)).items():
                row = next(row for row in about["outputs"] if row[0] == name)
                assert instance.read(row[4], row[5]) == tensor.numpy().tobytes(), (seed, name)


def commanded(given: bytes, folder: Path) -> tuple[int, bytes, str]:
    """Exit status, standard output and standard error of the command."""
    (folder / "in").write_bytes(given)
    store, config, linker = wasmtime.Store(kernel_engine()), wasmtime.WasiConfig(), wasmtime.Linker(kernel_engine())
    config.stdin_file, config.stdout_file, config.stderr_file = (str(folder / n) for n in ("in", "out", "err"))
    store.set_wasi(config)
    linker.define_wasi()
    started: Any = linker.instantiate(store, wasmtime.Module(kernel_engine(), module(True))).exports(store)["_start"]
    try:
        started(store)
        status = 0
    except wasmtime.ExitTrap as trap:
        status = trap.code
    return status, (folder / "out").read_bytes(), (folder / "err").read_text()


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("given", [npy(IMAGE), IMAGE.tobytes()], ids=["npy", "raw"])
def test_the_command_reads_tensors_and_writes_npy(given: bytes, tmp_path: Path) -> None:
    status, out, err = commanded(given, tmp_path)
    assert (status, err) == (0, "")
    np.testing.assert_array_equal(np.load(io.BytesIO(out)), wanted())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (b"", "needed: 'image', float32 1x6x6x2"), (IMAGE.tobytes()[:-1], "needed: 'image'"),
        (IMAGE.tobytes() + b"x", "more input"), (npy(IMAGE.astype(np.float64)), "needed: 'image'"),
        (npy(IMAGE.reshape(6, 6, 2)), "needed: 'image'"), (npy(IMAGE)[:-4], "needed: 'image'"),
    ],
)  # fmt: skip
def test_the_command_refuses_other_input(given: bytes, told: str, tmp_path: Path) -> None:
    status, out, err = commanded(given, tmp_path)
    assert status == 2
    assert told in err
    assert not out


def test_node_runs_the_module(tmp_path: Path) -> None:
    if (node := shutil.which("node")) is None:
        pytest.skip("no node on the path")
    (tmp_path / "small.wasm").write_bytes(module())
    (tmp_path / "in").write_bytes(IMAGE.tobytes())
    script = """
        const fs = require("fs");
        WebAssembly.instantiate(fs.readFileSync("small.wasm")).then(({ instance, module }) => {
          const { memory, run, input, output } = instance.exports;
          const [about] = WebAssembly.Module.customSections(module, "webinfer");
          const { outputs } = JSON.parse(new TextDecoder().decode(about));
          new Uint8Array(memory.buffer).set(fs.readFileSync("in"), input(0));
          run();
          process.stdout.write(Buffer.from(memory.buffer, output(0), outputs[0][5]));
        });
    """
    done = subprocess.run([node, "-e", script], cwd=tmp_path, capture_output=True, check=True)
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.float32), wanted()[0])


@pytest.mark.parametrize(
    ("dtype", "shape"), [("float32", (1, 2)), ("float32", ()), ("bool", (3,)), ("int64", (2, 0)), ("uint8", (1,) * 20)]
)
def test_heads_are_those_that_numpy_writes(dtype: str, shape: tuple[int, ...]) -> None:
    value = Value("x", TensorType(shape, DType(dtype)))
    assert npy(np.zeros(shape, dtype)) == npy_head(value) + bytes(value.type.nbytes)
