"""Devices that are driven from here: a real engine behind real WebSockets, in place of a browser."""

from __future__ import annotations

import asyncio
import json
import struct
from array import array
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.page.model_files import damaged, open_onnx, tfjs, tflite

import webinfer
from webinfer import lab
from webinfer.cli import main
from webinfer.errors import (
    ClosedError,
    InputError,
    LimitError,
    ModelFormatError,
    UnsupportedOpError,
)
from webinfer.host.interface import ProgressEvent
from webinfer.lab.errors import error_of
from webinfer.lab.frames import read, written
from webinfer.page.model_controller import ModelController
from webinfer.tune.log import About, Log, TuningReport, Verdict
from webinfer.tune.search import Winner

pytest.importorskip("sqlalchemy")
pytest.importorskip("websockets")
from tests.lab.devices import restored

from server.tests.lab_devices import TOKEN, joined


@pytest.fixture
def address(root: str) -> str:
    return f"{root}/lab#token={TOKEN}"


class Engine:
    """What the page of a device does: questions to a desk, steps and answers back."""

    def __init__(self) -> None:
        self.desk = ModelController(self._step)
        self.steps: list[dict[str, Any]] = []
        self.stops = 0

    def _step(self, event: ProgressEvent) -> None:
        self.steps.append({"stage": event.stage, "done": event.done, "total": event.total})

    async def __call__(self, data: Any, socket: Any) -> None:
        head, buffers = read(data)
        self.stops += head["type"] == "stop"
        if head["type"] != "ask":
            return

        self.steps.clear()
        try:
            answer, sent = await self.desk.answer(head["action"], restored(head["fields"], buffers))
            for step in self.steps[:3]:
                await socket.send(written("step", {"id": head["id"], **step}))
            text = written("answer", {"id": head["id"], "answer": answer, "sent": sent})
        except webinfer.WebinferError as error:
            text = written("error", {"id": head["id"], "code": error.code, "message": str(error)})
        await socket.send(text)


def with_device(root: str, work: Callable[[Engine], Awaitable[Any]], name: str = "pixel") -> Any:
    """The result of work beside a device."""

    async def together() -> Any:
        engine = Engine()
        with closing(engine.desk):
            async with joined(root, name, engine):
                return await asyncio.wait_for(work(engine), 60)

    return asyncio.run(together())


def test_a_model_runs_is_checked_measured_and_kept(root: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBINFER_LAB", address)
    image = array("f", [number / 32 for number in range(32)])

    async def work(engine: Engine) -> Any:
        (here,) = await lab.devices()
        assert (here["name"], here["busy"]) == ("pixel", False)
        events: list[ProgressEvent] = []
        async with await lab.device("pixel") as device:
            assert (await lab.devices())[0]["busy"]
            session = await device.load(tflite(), backend="wasm", progress=events.append)
            (info,) = session.inputs
            assert (info.name, info.shape, info.dtype) == ("image", (1, 4, 4, 2), webinfer.DType.FLOAT32)
            outputs = await session.run({"image": image})
            again = await session.run(image)
            verified = await session.verify("reference", progress=events.append)
            profile = await session.profile(rounds=1, progress=events.append)
            timing = await session.bench(rounds=5)
            noise = await session.run()
        assert {event.stage for event in events} >= {"profile", "verify"}
        assert {name: tensor.tobytes() for name, tensor in outputs.items()} == {
            name: tensor.tobytes() for name, tensor in again.items()
        }
        assert noise.keys() == outputs.keys()
        assert verified.ok
        assert len(profile.rows) == len(profile.times_ms) > 0
        assert "conv" in str(profile)
        assert 0 < timing.least_ms <= timing.median_ms
        assert len(timing.times_ms) == 5
        assert "pixel, wasm: median" in str(timing)
        return {name: tensor.tolist() for name, tensor in outputs.items()}, await lab.results()

    outputs, kept = with_device(root, work)
    with webinfer.load_sync(tflite(), backend="wasm") as session:
        assert {name: tensor.tolist() for name, tensor in session.run({"image": image}).items()} == outputs
    assert [row["action"] for row in kept] == ["run", "time", "profile", "verify", "run", "run"]
    assert {(row["device"], row["model"], row["backend"]) for row in kept} == {("pixel", "model", "wasm")}
    assert len(kept[1]["value"]["times"]) == 5


class Tuned:
    """A session on a GPU, whose timings are given."""

    def __init__(self, session: Any) -> None:
        about, verdict = About("adapter", "browser", "1"), Verdict("p", "model", 2.0, 1.5, 1, True)
        log = Log(about, {"k": Winner("k", "fast", 1.0, 2.0, "slow")}, {"p": verdict}).text()
        self.session, self.report, self.known = session, TuningReport(about, verdict, 3, 1, 4, log), ""

    async def tune(self, budget_ms: float, progress: Callable[[ProgressEvent], None]) -> TuningReport:
        for done in range(3):
            progress(ProgressEvent("tune", done, 3, "steps"))
        assert budget_ms == 500
        return self.report

    async def export_tuning(self) -> str:
        return self.report.lines

    async def import_tuning(self, text: str) -> tuple[int, int]:
        self.known = text
        return len(text.splitlines()), 7

    def close(self) -> None:
        self.session.close()


def test_a_tuning_is_made_there_kept_and_applied(root: str, address: str) -> None:
    async def work(engine: Engine) -> Any:
        events: list[ProgressEvent] = []
        async with await lab.device("gpu", address) as device:
            session = await device.load(tflite(), backend="wasm")
            tuned = engine.desk._sessions["wasm"] = Tuned(engine.desk._sessions["wasm"])  # type: ignore[assignment]
            assert await session.tune(500, events.append) == tuned.report
            assert await session.export_tuning() == tuned.report.lines
            kept = await lab.tunings(address)
            assert await session.import_tuning(kept) == (2, 7)
            assert tuned.known == kept
            result = (await lab.results(address))[0]
        assert [(event.stage, event.done) for event in events] == [("tune", 0), ("tune", 1), ("tune", 2)]
        assert (result["action"], result["value"]["gain"]) == ("tune", 0.25)
        return tuned.report.lines, kept

    made, kept = with_device(root, work, "gpu")
    assert sorted(kept.splitlines()) == sorted(made.splitlines())


def test_models_of_several_files_and_open_sizes(root: str, address: str) -> None:
    async def work(engine: Engine) -> None:
        async with await lab.device("pixel", address) as device:
            files = tfjs()
            session = await device.load({name: bytes(data) for name, data in files.items()}, backend="wasm")
            assert await session.run()
            with pytest.raises(InputError, match="open"):
                await device.load(open_onnx(), backend="wasm")
            with pytest.raises(ClosedError, match="another model"):
                await session.run()

    with_device(root, work)


def test_errors_of_the_engine_there_come_as_they_are(root: str, address: str) -> None:
    async def work(engine: Engine) -> None:
        async with await lab.device("pixel", address) as device:
            with pytest.raises(ModelFormatError):
                await device.load(damaged(), backend="wasm")
            session = await device.load(tflite(), backend="wasm")
            for wrong in ({}, {"x": b""}, {"image": bytes(3)}, {"image": 5}):
                with pytest.raises(InputError):
                    await session.run(wrong)
            with pytest.raises(InputError, match="tuned explicitly"):
                await session.tune(100)
            with pytest.raises(InputError, match="unknown action"):
                await device.ask("run_code", {})
            with pytest.raises(LimitError, match="smaller"):
                await device.ask("open", {"files": {"large": bytes(1 << 20)}})
            assert await session.run()  # after each error the next call works
        with pytest.raises(ClosedError):
            await session.run()

    with_device(root, work)


def test_a_lab_that_is_not_there_or_refuses_is_said(root: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBINFER_LAB", raising=False)

    async def work(engine: Engine) -> None:
        for wrong, words in (
            (None, "lab's address is not known"),
            (root, "not an address of a lab"),
            (f"{root}/lab#token=wrong", "token is missing or wrong"),
            ("http://127.0.0.1:9/lab#token=x", "cannot be reached"),
        ):
            for question in (lab.device("pixel", wrong), lab.devices(wrong)):
                with pytest.raises(lab.LabError, match=words):
                    await question
        with pytest.raises(lab.NoDeviceError, match="there is pixel"):
            await lab.device("other", address)
        async with await lab.device("pixel", address):
            with pytest.raises(lab.DeviceBusyError, match="another program"):
                await lab.device("pixel", address)

    with_device(root, work)


@pytest.mark.parametrize(
    ("body", "words"),
    [("Content-Length: 9\r\n\r\n[]", "cannot be reached"), ("\r\n<html>", "is not a lab"), ("\0", "is not a lab")],
)
def test_an_answer_that_breaks_off_or_is_none_is_a_typed_error(body: str, words: str) -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\n{body}".encode())
        writer.close()

    async def work() -> None:
        async with await asyncio.start_server(half, "127.0.0.1", 0) as server:
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/lab#token=x"
            with pytest.raises(lab.LabError, match=words):
                await lab.results(address)
            with pytest.raises(lab.LabError, match=r"cannot be reached|refuses"):
                await lab.device("pixel", address)

    asyncio.run(work())


def test_the_command_line_lists_devices_answers_and_tunings(
    root: str, address: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def work(engine: Engine) -> None:
        async def said(*more: str) -> str:
            assert await asyncio.to_thread(main, ["devices", "--lab", address, *more]) == 0
            return capsys.readouterr().out

        assert await said() == "pixel: free; none; GPU unknown\n"
        async with await lab.device("pixel", address) as device:
            await (await device.load(tflite(), backend="wasm")).bench(1)
            assert await said() == "pixel: controlled: waiting; none; GPU unknown\n"
        rows = [json.loads(line) for line in (await said("--results")).splitlines()]
        assert rows[-1]["action"] == "time"
        file = tmp_path / "log.jsonl"
        assert await said("--tunings", str(file)) == f"{file}: {len(file.read_text().splitlines())} lines\n"

    with_device(root, work)
    assert main(["devices", "--lab", address]) == 0
    assert "no device is here" in capsys.readouterr().out
    assert main(["devices", "--lab", f"{root}/lab#token=wrong"]) == 2
    assert "token is missing or wrong" in capsys.readouterr().err


def test_a_device_that_goes_or_is_silent_fails_its_questions(root: str, address: str) -> None:
    async def never(data: Any, socket: Any) -> None:
        if read(data)[0].get("action") == "go":
            await socket.close()

    async def work() -> None:
        async with joined(root, "mute", never):
            device = await lab.device("mute", address, silence_s=0.1)
            with pytest.raises(lab.DeviceGoneError, match=r"not responded for 0\.1 seconds"):
                await device.ask("run", {})
            with pytest.raises(lab.DeviceGoneError):
                await device.ask("run", {})
        async with joined(root, "brief", never):
            device = await lab.device("brief", address)
            waiting = asyncio.create_task(device.ask("run", {}))
            await asyncio.sleep(0)
            for question in (device.ask("go", {}), waiting, device.ask("run", {})):
                with pytest.raises(lab.DeviceGoneError, match="brief"):
                    await question
            assert "gone" in repr(device)
            await device.close()

    asyncio.run(work())


def test_what_is_cancelled_is_stopped_there(root: str, address: str) -> None:
    heard = []

    async def steps(data: Any, socket: Any) -> None:
        heard.append(head := read(data)[0])
        if head["type"] == "ask":
            await socket.send(written("step", {"id": head["id"], "stage": "tune", "done": 1, "total": 9}))

    async def work() -> None:
        async with joined(root, "long", steps), await lab.device("long", address) as device:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(device.ask("tune", {}), 0.2)

            def enough(event: ProgressEvent) -> None:
                raise KeyError(event.done)

            with pytest.raises(KeyError):
                await device.ask("tune", {}, enough)
        while [head["type"] for head in heard].count("stop") < 2:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(work(), 20))


def test_each_code_of_an_error_becomes_its_class() -> None:
    for kind in (InputError, ModelFormatError, ClosedError, lab.NoDeviceError, lab.DeviceBusyError):
        found = error_of(kind.code, "text")
        assert type(found) is kind
        assert str(found) == "text"
    unsupported = error_of("unsupported-op", str(UnsupportedOpError(["one", "two"])))
    assert isinstance(unsupported, UnsupportedOpError)
    assert unsupported.problems == ["one", "two"]
    strange = error_of("full", "no room")
    assert (type(strange), strange.code, str(strange)) == (lab.LabError, "full", "no room (full)")


def test_messages_carry_buffers_wherever_they_stand() -> None:
    data = written(
        "ask", {"fields": {"files": {"a": b"xyz", "b": memoryview(b"")}, "list": [array("f", [1.0]).tobytes()]}}
    )
    head, buffers = read(data)
    assert head["fields"] == {"files": {"a": {"buffer": 0}, "b": {"buffer": 1}}, "list": [{"buffer": 2}]}
    assert [bytes(one) for one in buffers] == [b"xyz", b"", struct.pack("f", 1)]
    for bad in ("{", "[]", "{}", b"", b"\1\0\0\0{", data[:-1]):
        with pytest.raises(lab.LabError, match="invalid message"):
            read(bad)
