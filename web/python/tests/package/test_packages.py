"""A package runs what the model runs: the same numbers, from one file; damaged ones are refused in words."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.importers.test_variables import ADDING, X
from tests.ops.case_graphs import run
from tests.ops.targets import Target
from tests.session.models import IMAGE, model
from tests.test_cli import status_of

import webinfer
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.webgpu.tuning import Tuner
from webinfer.errors import (
    BackendUnavailableError,
    InputError,
    IntegrityError,
    KernelError,
    LimitError,
    ModelFormatError,
    WebinferError,
)
from webinfer.host import current
from webinfer.host.gpu import GpuDevice
from webinfer.host.interface import Host
from webinfer.host.native import NativeHost
from webinfer.package import compile_model
from webinfer.package.container import ALIGNMENT, HEAD, Package, Writer
from webinfer.package.executors import gpu_fits
from webinfer.package.module import Module
from webinfer.package.pruning import pruned
from webinfer.package.recording import PaperDevice, PaperHost
from webinfer.tune.log import About, Log
from webinfer.version import VERSION


@cache
def package(backend: str = "wasm") -> bytes:
    return run(compile_model(model(), backend=backend, builds=("relaxed",), threads=False))


def results(source: Any, backend: str, given: Any, **options: Any) -> dict[str, Any]:
    with run(webinfer.load(source, backend=backend, **options)) as session:
        return {name: tensor.numpy() for name, tensor in run(session.run(given)).items()}


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_a_package_gives_the_numbers_of_its_model(backend: str) -> None:
    Target(backend, (("isa", "relaxed"),) if backend == "wasm" else ()).demand()
    want, found = (results(source, backend, IMAGE)["y"] for source in (model(), package(backend)))
    np.testing.assert_allclose(found, want, rtol=1e-5 if backend == "webgpu" else 0, atol=1e-6 * (backend == "webgpu"))


def test_a_package_tells_what_it_has_and_has_not() -> None:
    with run(webinfer.load(package(), backend="wasm")) as session:
        assert [(i.name, i.shape) for i in session.inputs] == [("image", (1, 6, 6, 2))]
        assert [row.kernel for row in session.plan().rows][1] == "f32_max_pool2d_nhwc"
        with pytest.raises(BackendUnavailableError, match="no plan for reference"):
            run(session.verify())
    with pytest.raises(BackendUnavailableError, match="no plan for webgpu"):
        run(webinfer.load(package(), backend="webgpu"))
    with pytest.raises(InputError, match="already compiled"):
        run(webinfer.load(package(), backend="wasm", dequantize=True))
    with pytest.raises(InputError, match="compile it again"):
        run(webinfer.load(package(), backend="wasm", shapes={"image": (2, 6, 6, 2)}))


def test_variables_live_in_packages_too() -> None:
    data = run(compile_model(ADDING, backend="wasm", builds=("simd128",), threads=False))
    with run(webinfer.load(data, backend="wasm")) as session, run(webinfer.load(ADDING, backend="wasm")) as judge:
        for x in X:
            found, want = (next(iter(run(s.run({"x": x})).values())).numpy() for s in (session, judge))
            np.testing.assert_array_equal(found, want)


def test_only_the_kernels_that_a_plan_calls_are_in_it() -> None:
    opened = Package(memoryview(package()), "small")
    module = Module.read(bytes(opened.section("wasm/relaxed/kernels")))
    whole = bytes(run(NativeHost().kernel_module("relaxed")))
    assert len(module.bodies) < len(Module.read(whole).bodies) / 4
    assert len(module.written()) < len(whole) / 4
    named = set(module.exports)
    assert "run" in named
    assert named & set(KERNELS) == {*opened.json("wasm/relaxed")["steps"]} | {"f32_pack_conv_weights"}


def test_a_kernel_that_was_left_out_traps_and_the_others_compute() -> None:
    whole = Module.read(bytes(run(NativeHost().kernel_module("simd128"))))
    kept = pruned(
        whole, ["f32_log_softmax"], [n for n in KERNELS if n != "f32_log_softmax"], ("run", "abi", "__heap_base")
    )
    kernels = run(NativeHost().kernels("simd128", 1, kept.written()))
    assert kernels.call("abi") == run(NativeHost().kernels("simd128")).call("abi")
    with pytest.raises(KernelError, match="no function 'f32_softmax'"):
        kernels.call("f32_softmax", 0)
    with pytest.raises(ModelFormatError, match="no function 'dance'"):
        pruned(whole, ["dance"], [], ())


def test_a_kernel_that_another_one_calls_stays() -> None:
    whole = Module.read(bytes(run(NativeHost().kernel_module("simd128"))))
    kept = pruned(whole, ["b8_two_lines"], [n for n in KERNELS if n != "b8_two_lines"], ("abi", "__heap_base"))
    kernels = run(NativeHost().kernels("simd128", 1, kept.written()))
    table = kernels.heap_base
    kernels.grow(table + 512)
    kernels.write(table, bytes(reversed(range(256))))
    kernels.write(table + 256, b"abc")
    kernels.call("b8_two_lines", table + 256, table + 300, table, 0, 0, 0, 0, 0, 0, 0, 0, 3)  # looked up: b8_lookup
    assert bytes(kernels.read(table + 300, 3)) == bytes(255 - x for x in b"abc")


def test_kernels_of_another_interface_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webinfer.backends.wasm.kernel_table.KernelTable.abi", 7)
    with pytest.raises(KernelError, match="the engine needs 7; rebuild both together"):
        run(compile_model(model(), backend="wasm", builds=("scalar",)))


def test_a_module_is_written_as_it_was_read() -> None:
    whole = bytes(run(NativeHost().kernel_module("relaxed-threads")))
    once = Module.read(whole).written()
    assert Module.read(once).written() == once
    with pytest.raises(ModelFormatError, match="does not begin a WebAssembly module"):
        Module.read(b"\0asn\1\0\0\0")
    with pytest.raises(ModelFormatError, match="ends"):
        Module.read(whole[: len(whole) // 2])


# ----- damaged files


def damaged(change: Any) -> bytes:
    """The package with another header, whose hash is right."""
    data = package()
    length = HEAD.unpack_from(data)[2]
    header = json.loads(data[HEAD.size : HEAD.size + length])
    change(header)
    text = json.dumps(header).encode()
    body = data[-(-(HEAD.size + length) // ALIGNMENT) * ALIGNMENT :]
    gap = bytes(-(HEAD.size + len(text)) % ALIGNMENT)
    return HEAD.pack(b"webinfer", 1, len(text), hashlib.sha256(text).digest()) + text + gap + body


def with_plan(change: Any) -> bytes:
    """The package with another plan on wasm."""
    opened = Package(memoryview(package()), "small")
    plan = opened.json("wasm/relaxed")
    change(plan)
    writer = Writer()
    writer.weights(bytes(opened.section("weights")))
    for name in ("wasm/relaxed/kernels", "wasm/relaxed/programs"):
        writer.sections[name] = bytes(opened.section(name))
    writer.sections["wasm/relaxed"] = json.dumps(plan).encode()
    return writer.file({k: v for k, v in opened.header.items() if k != "sections"})


def refusal(data: bytes) -> WebinferError:
    with pytest.raises(WebinferError) as caught, run(webinfer.load(data, backend="wasm")) as session:
        run(session.run(session.noise()))
    return caught.value


def test_changed_bytes_are_noticed() -> None:
    data, rng = package(), np.random.default_rng(1)
    for at in rng.integers(8, len(data) - ALIGNMENT, 60):
        changed = bytearray(data)
        changed[at] ^= 1 << int(rng.integers(8))
        try:
            found = results(bytes(changed), "wasm", IMAGE)["y"]  # between sections are bytes that nobody reads
        except (IntegrityError, ModelFormatError, LimitError):
            continue
        np.testing.assert_array_equal(found, results(data, "wasm", IMAGE)["y"])
    for length in (0, 7, 8, 40, 100, len(data) // 2):
        assert isinstance(refusal(data[:length]), IntegrityError | ModelFormatError)


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h.clear(), lambda h: h.update(inputs=3), lambda h: h.update(inputs=[["x", "float99", [1], None]]),
        lambda h: h["inputs"][0].__setitem__(2, [1 << 40, 9]), lambda h: h["inputs"][0].__setitem__(2, [-1]),
        lambda h: h.update(sections=[["weights", -1, 2, 3, ""]]), lambda h: h.update(sections={}),
        lambda h: h["sections"][0].__setitem__(3, 1 << 40), lambda h: h["sections"][1].__setitem__(1, 1 << 60),
        lambda h: h.update(wasm=[{}]), lambda h: h.update(wasm=7), lambda h: h["wasm"][0].update(section="nowhere"),
        lambda h: h.update(states=[["a", "b", "c", "zz"]]), lambda h: h["wasm"][0].update(threads=8),
    ],
)  # fmt: skip
def test_a_header_that_breaks_the_form_is_refused(change: Any) -> None:
    assert refusal(damaged(change)).code in ("model-format", "integrity", "limit", "backend-unavailable")


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.clear(), lambda p: p.update(top=1 << 40), lambda p: p.update(top="9"), lambda p: p.update(heap=64),
        lambda p: p["writes"][0].__setitem__(0, 1 << 31), lambda p: p["writes"][0].__setitem__(0, -5),
        lambda p: p["writes"][0].__setitem__(3, 1 << 30), lambda p: p["writes"][0].__setitem__(1, 2),
        lambda p: p.update(program=[0, 5]), lambda p: p.update(program=[1 << 31, 5]), lambda p: p.update(program=[]),
        lambda p: p.update(inputs=[]), lambda p: p.update(inputs=[1 << 40]), lambda p: p.update(outputs=[1 << 33]),
        lambda p: p.update(prepare=[77, 3]), lambda p: p.update(memory=[1]),
    ],
)  # fmt: skip
def test_a_plan_that_breaks_the_form_is_refused(change: Any) -> None:
    assert refusal(with_plan(change)).code in ("model-format", "limit", "kernel")


def test_a_section_that_unpacks_to_more_than_it_says_is_refused() -> None:
    assert "does not have" in str(refusal(damaged(lambda h: h["sections"][1].__setitem__(3, h["sections"][1][3] - 1))))


# ----- the command line


@pytest.mark.parametrize("suffix", [".webinfer", ".wasm"])
def test_the_command_line_compiles_and_runs(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.tflite").write_bytes(model())
    made = tmp_path / f"small{suffix}"
    few = ["--backend", "wasm", "--build", "simd128"]
    assert status_of(["compile", str(tmp_path / "small.tflite"), "-o", str(made), *few]) == 0
    assert f"{made.stat().st_size:,} bytes" in capsys.readouterr().out
    assert status_of(["run", str(made), "--backend", "wasm"]) == (0 if suffix == ".webinfer" else 2)


@pytest.mark.parametrize(
    "arguments",
    [["-o", "x.zip"], ["-o", "x.webinfer", "--backend", "cuda"], ["-o", "x.webinfer", "--task", "dance"],
     ["-o", "x.wasm", "--build", "avx"], ["-o", "x.webinfer", "--task", "pose-landmarks"],
     ["-o", "x.webinfer", "--build", "avx", "--backend", "wasm"]],
)  # fmt: skip
def test_what_cannot_be_compiled_is_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.tflite").write_bytes(model())
    assert status_of(["compile", str(tmp_path / "small.tflite"), *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_was_tuned_elsewhere_is_a_plan_of_its_adapter() -> None:
    builder = webinfer.GraphBuilder("filter")
    weights = np.ones((8, 3, 3, 8), np.float32)
    builder.output(builder.node("conv2d", builder.input("x", (1, 16, 16, 8)), weights, np.ones(8, np.float32)), "y")
    plain = Package(memoryview(run(compile_model(builder, backend="webgpu"))), "p")
    device = PaperDevice(frozenset(), "Vendor (Model/9)", "Browser 1")
    host = PaperHost(current(), None, device)
    session = run(webinfer.load(builder, backend="webgpu", strict=True, host=cast(Host, host)))
    tuner = Tuner(session.graphs()[0], cast(Host, host), cast(GpuDevice, device), Log(About("", "", "")))
    (key, shape), *_ = tuner.shapes.items()
    about = {"adapter": device.name, "browser": device.runtime, "engine": VERSION}
    lines = [{**about, "key": key, "choice": choice, "ms": 1, "default_ms": 2} for choice in shape.names[:3]]
    sections = set()
    for line in lines:
        elsewhere = json.dumps({**line, "engine": "another"})
        text = json.dumps(line) + "\n\n" + elsewhere + "\n"
        tuned = Package(memoryview(run(compile_model(builder, backend="webgpu", tunings=text))), "p")
        rows = [row for row in tuned.header["webgpu"] if row["named"]]
        assert [row["named"] for row in rows] == 2 * [["vendor", "model", "9)"]]
        assert [row for row in tuned.header["webgpu"] if not row["named"]] == plain.header["webgpu"]
        sections.add(bytes(tuned.section(rows[0]["section"])))
        fitting = [row for row in tuned.header["webgpu"] if gpu_fits(row, cast(GpuDevice, device))]
        assert fitting[-1]["named"]
        assert not any(
            row["named"] for row in tuned.header["webgpu"] if gpu_fits(row, PaperDevice(frozenset(), "Vendor"))
        )
    assert len(sections) > 1  # with other kernels
    for bad in ("{", "[]", json.dumps(about), json.dumps({**lines[0], "ms": "x"})):
        with pytest.raises(InputError, match="tuning log, line 1"):
            run(compile_model(builder, backend="webgpu", tunings=bad))
