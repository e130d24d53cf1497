"""The lab's devices as an executor: real engines behind real WebSockets; some of them go away, and one lies."""

from __future__ import annotations

import time
from array import array
from typing import Any

import pytest

import webinfer
from webinfer import lab
from webinfer.dtypes import DType
from webinfer.lab.executor import CHECK_EVERY, difference
from webinfer.package import compile_model
from webinfer.tensor import Tensor

pytest.importorskip("sqlalchemy")
pytest.importorskip("websockets")
from tests.lab.devices import Devices, Engine

from server.tests.lab_devices import TOKEN

SIZE = 8


@pytest.fixture(scope="module")
def model() -> bytes:
    """y = tanh(2 x) for 8 numbers, compiled."""
    builder = webinfer.GraphBuilder("tanh")
    x = builder.node("linear", builder.input("x", (1, SIZE)), a=2.0, b=0.0)
    builder.output(builder.node("tanh", x), "y")
    return bytes(webinfer.run_sync(compile_model(builder, backend="wasm", threads=False)))


def executor(root: str, **options: Any) -> lab.Executor:
    return lab.Executor(f"{root}/lab#token={TOKEN}", **options)


def batches(count: int) -> list[array[float]]:
    return [array("f", [(number * SIZE + i) / 300 for i in range(SIZE)]) for number in range(count)]


def right(found: list[dict[str, Tensor]], model: bytes, count: int) -> bool:
    with webinfer.load_sync(model, backend="wasm") as session:
        return [one["y"].tobytes() for one in found] == [session.run(x)["y"].tobytes() for x in batches(count)]


def test_runs_are_shared_among_devices_that_are_there_and_one_that_comes(
    root: str, devices: Devices, model: bytes
) -> None:
    for name in ("a", "b"):
        devices.join(name, Engine())
    with executor(root) as found:
        found.wait_for_devices(2)
        assert right(list(found.map(model, batches(60))), model, 60)
        devices.join("c", Engine())
        found.wait_for_devices(3)
        assert set(found.devices) == {"a", "b", "c"}
        assert right(list(found.map(model, batches(90))), model, 90)
    assert all(engine.runs > 10 for engine in devices.engines.values())
    with pytest.raises(webinfer.ClosedError, match="shut down"):
        found.submit(model, batches(1)[0])


def test_what_a_device_had_that_went_away_is_given_to_another(root: str, devices: Devices, model: bytes) -> None:
    """Three of four go away in the middle: all answers are right."""
    for name, dies in (("a", 5), ("b", 1 << 30), ("c", 12), ("d", 2)):
        devices.join(name, Engine(dies=dies))
    with executor(root) as found:
        found.wait_for_devices(4)
        assert right(list(found.map(model, batches(80))), model, 80)
        assert found.put_aside == {}


def test_a_device_that_says_nothing_any_more_is_gone(root: str, devices: Devices, model: bytes) -> None:
    devices.join("a", Engine(silent=6))
    devices.join("b", Engine())
    with executor(root, silence_s=1.0) as found:
        found.wait_for_devices(2)
        assert right(list(found.map(model, batches(40))), model, 40)


def test_a_device_that_answers_wrongly_is_put_aside_and_nothing_of_it_is_delivered(
    root: str, devices: Devices, model: bytes
) -> None:
    devices.join("honest", Engine())
    devices.join("liar", Engine(lies=8))
    with executor(root, check_every=4) as found:
        found.wait_for_devices(2)
        assert right(list(found.map(model, batches(100))), model, 100)
        assert list(found.put_aside) == ["liar"]
        assert "of its range off on 'liar'" in found.put_aside["liar"]
        time.sleep(1.2)  # another look at who is there
        assert found.devices == ("honest",)


def test_errors_of_a_run_are_raised_and_the_others_go_on(root: str, devices: Devices, model: bytes) -> None:
    devices.join("a", Engine())
    with webinfer.load_sync(model, backend="wasm") as session, executor(root) as found:
        wrong = found.submit(session, {"z": batches(1)[0]})
        good = found.submit(session, batches(1)[0])
        with pytest.raises(webinfer.InputError, match="takes x"):
            wrong.result(30)
        assert right([good.result(30)], model, 1)
        with pytest.raises(webinfer.ModelFormatError):
            found.submit(b"no model", batches(1)[0]).result(30)
        with pytest.raises(webinfer.InputError, match="with its inputs only, not with 2"):
            found.submit(model, 1, 2)
        assert right([found.run(model, batches(1)[0])], model, 1)


def test_other_calls_run_here_and_may_wait_for_devices(root: str, devices: Devices, model: bytes) -> None:
    """As Dask calls an executor that is its scheduler."""
    devices.join("a", Engine())
    with executor(root) as found:
        made = list(found.map(lambda x: found.run(model, x), batches(20)))
        assert right(made, model, 20)
        dask = pytest.importorskip("dask", reason="dask is not installed")
        tasks = [dask.delayed(found.run)(model, x) for x in batches(6)]
        assert right(list(dask.compute(*tasks, scheduler=found)), model, 6)


def test_without_devices_runs_wait_and_can_be_cancelled(root: str, model: bytes) -> None:
    found = executor(root)
    waiting = found.submit(model, batches(1)[0])
    with pytest.raises(lab.NoDeviceError, match="0 devices are in the lab, but 1 are needed"):
        found.wait_for_devices(1, timeout=0.2)
    assert waiting.cancel()
    late = found.submit(model, batches(1)[0])
    found.shutdown(cancel_futures=True)
    assert late.cancelled()


def test_known_answers_are_compared_by_their_range() -> None:
    def tensor(*values: float) -> Tensor:
        return Tensor(array("f", values), (len(values),), DType.FLOAT32)

    nan = float("nan")
    assert difference(tensor(0, 10), tensor(0, 10)) == 0
    assert difference(tensor(0, 9), tensor(0, 10)) == pytest.approx(0.1)
    assert difference(tensor(5.5), tensor(5)) == pytest.approx(0.1)
    assert difference(tensor(0, nan), tensor(0, 10)) == float("inf")
    assert difference(tensor(0, nan), tensor(0, nan)) == 0
    assert difference(tensor(0), tensor(0, 1)) == float("inf")
    assert CHECK_EVERY > 1
