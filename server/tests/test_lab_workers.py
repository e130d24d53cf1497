"""A lab that several workers serve: devices and programs that are connected to different ones."""

import asyncio
import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from server.lab import neighbours
from server.lab.directory import Directory, Worker
from server.lab.store import Store, StoreError
from server.running import address_of, bound_socket
from server.settings import Settings
from server.tests.databases import Postgres
from server.tests.lab_devices import joined, lab_settings, running_workers, said
from server.tests.test_lab import asked, drive, echo, question

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import pickle, sys
from pathlib import Path
from server.app import create_app
from server.lab.workers import serve_workers
from server.running import address_of, bound_socket, within_files

if __name__ == "__main__":
    settings = within_files(pickle.loads(Path(sys.argv[1]).read_bytes()))
    listener = bound_socket(0)
    print(address_of(listener), flush=True)
    serve_workers(create_app, settings, listener, int(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with running_workers(tmp_path_factory.mktemp("lab"), 2) as found:
        yield found


def test_a_program_drives_a_device_of_another_worker(roots: list[str]) -> None:
    async def driven() -> None:
        here, there = roots
        async with joined(here, "far", echo):
            async with drive(there, "far") as socket:
                welcome = said(await socket.recv())
                assert (welcome["type"], welcome["device"]["name"]) == ("welcome", "far")
                answers = [row["type"] for number in range(50) for row in await question(socket, number, "time")]
                assert answers == ["step", "answer"] * 50
                for root in roots:
                    async with drive(root, "far") as second:
                        assert said(await second.recv())["code"] == "device-busy"
            for root in roots:
                (row,) = json.loads(await asyncio.to_thread(asked, root, "devices"))
                assert row["name"] == "far"
            async with drive(there, "far") as socket:  # which the first program has let go
                await socket.recv()
                assert [row["code"] for row in await question(socket, 7, "vanish")] == ["device-gone"]
                assert said(await socket.recv())["code"] == "device-gone"
                with pytest.raises(ConnectionClosed) as closed:
                    await socket.recv()
                assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4000, "device-gone")
        for root in roots:
            assert json.loads(await asyncio.to_thread(asked, root, "devices")) == []

    asyncio.run(driven())


def test_large_messages_pass_from_worker_to_worker(roots: list[str]) -> None:
    async def driven() -> int:
        async with joined(roots[0], "large", echo), drive(roots[1], "large") as socket:
            await socket.recv()
            rows = await question(socket, 1, "time", name="x" * 5_000_000)
            return len(rows[-1]["answer"]["fields"]["name"])

    assert asyncio.run(driven()) == 5_000_000


def test_a_name_belongs_to_one_device_of_all_workers(roots: list[str]) -> None:
    async def tried() -> None:
        async with joined(roots[0], "one", echo):
            for root in roots:
                with pytest.raises(AssertionError):  # no welcome
                    async with joined(root, "one", echo):
                        pass
        async with joined(roots[1], "one", echo):  # the name is free at once, wherever it was
            (row,) = json.loads(await asyncio.to_thread(asked, roots[0], "devices"))
            assert row["name"] == "one"
        async with drive(roots[0], "nobody") as socket:
            assert said(await socket.recv())["code"] == "no-device"

    asyncio.run(tried())


def test_what_a_worker_left_behind_is_taken_over(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'lab.sqlite'}"
    dead = Directory(Store(database), Worker("http://127.0.0.1:9", "key"))
    assert dead.claim("old") == ""
    with running_workers(tmp_path / "site", 1, lab_database=database) as (root,):

        async def tried() -> None:
            async with drive(root, "old") as socket:
                assert said(await socket.recv())["code"] == "no-device"
            async with joined(root, "old", echo), drive(root, "old") as socket:
                assert said(await socket.recv())["type"] == "welcome"

        asyncio.run(tried())
    assert dead.others() != [], "a worker that lives stays"
    assert dead.worker(dead.me.address) is None, "one that does not answer is forgotten"


def test_a_worker_that_is_only_slow_keeps_its_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "ANSWER_S", 0.3)
    database = f"sqlite:///{tmp_path / 'lab.sqlite'}"
    with bound_socket(0) as silent, running_workers(tmp_path / "site", 1, lab_database=database) as (root,):
        slow = Directory(Store(database), Worker(address_of(silent), "key"))
        assert slow.claim("old") == ""

        async def tried() -> None:
            with pytest.raises(AssertionError):  # no welcome: the name is taken
                async with joined(root, "old", echo):
                    pass
            async with drive(root, "old") as socket:
                assert said(await socket.recv())["code"] == "no-device"
            assert json.loads(await asyncio.to_thread(asked, root, "devices")) == []

        asyncio.run(tried())
        assert slow.address_of("old") == slow.me.address
        assert slow.worker(slow.me.address) == slow.me


def test_workers_need_a_database_that_they_share(tmp_path: Path) -> None:
    from server.lab.workers import serve_workers

    with bound_socket(0) as listener, pytest.raises(StoreError, match="share"):
        serve_workers(lambda: None, lab_settings(tmp_path, lab_database="sqlite://"), listener, 2)  # type: ignore[arg-type, return-value]


def test_a_worker_that_is_killed_costs_its_own_devices_only(tmp_path: Path) -> None:
    settings = lab_settings(tmp_path)
    with program(tmp_path, settings) as process:
        assert process.stdout is not None
        root = process.stdout.readline().strip()
        asyncio.run(killed(root, process.pid, Store(settings.lab_database)))


@contextlib.contextmanager
def program(folder: Path, settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """A process that serves a lab with two workers, until the block ends."""
    (folder / "workers.py").write_text(PROGRAM)
    (folder / "settings").write_bytes(pickle.dumps(settings))
    command = [sys.executable, str(folder / "workers.py"), str(folder / "settings"), "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def test_a_site_that_lacks_a_file_is_not_served_and_the_file_is_named(tmp_path: Path) -> None:
    settings = lab_settings(tmp_path)
    missing = settings.site / "assets" / "kernels-1" / "k.wasm"
    missing.unlink()
    with program(tmp_path, settings) as process:
        _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    last = told.splitlines()[-1]
    assert f"{missing} is missing" in last
    assert "build_scripts setup" in last
    assert told.count(str(missing)) == 1


def test_workers_that_cannot_start_again_end_the_server(tmp_path: Path) -> None:
    settings = lab_settings(tmp_path)
    missing = settings.site / "assets" / "kernels-1" / "k.wasm"
    with program(tmp_path, settings) as process:
        directory = Directory(Store(settings.lab_database), Worker("test", "key"))
        asyncio.run(until(lambda: len(directory.others()) == 2))
        missing.unlink()
        os.kill(workers_of(process.pid)[0], signal.SIGKILL)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"{missing} is missing" in told.splitlines()[-1]


async def killed(root: str, parent: int, store: Store) -> None:
    """Kills one of two workers under twelve devices; the others are driven, and the lost ones come back."""
    directory = Directory(store, Worker("test", "key"))
    names = [f"device-{number}" for number in range(12)]
    async with AsyncExitStack() as stack:
        await until(lambda: len(directory.others()) == 2)
        for name in names:
            await stack.enter_async_context(joined(root, name, echo))
        homes = {name: directory.address_of(name) for name in names}
        victims = workers_of(parent)
        assert len(victims) == 2
        os.kill(victims[0], signal.SIGKILL)
        states = Counter[str]()
        lost = []
        for name in names:  # through whichever worker takes the connection; the dead one's devices are not there
            async with drive(root, name) as socket:
                first = said(await socket.recv())
                states[first.get("code", first["type"])] += 1
                if first["type"] == "welcome":
                    assert (await question(socket, 1, "time"))[-1]["type"] == "answer"
                else:
                    lost.append(name)
        assert len({homes[name] for name in lost}) <= 1, "one worker's devices"
        assert set(states) <= {"welcome", "no-device"}
        for name in lost:
            await stack.enter_async_context(joined(root, name, echo))
        rows = json.loads(await asyncio.to_thread(asked, root, "devices"))
        assert sorted(row["name"] for row in rows) == sorted(names)
        await until(lambda: len(workers_of(parent)) == 2)  # the dead one has a successor


async def until(found: object, limit_s: float = 90.0) -> None:
    end = time.monotonic() + limit_s
    while not found():  # type: ignore[operator]
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


def workers_of(parent: int) -> list[int]:
    """The processes below a parent that serve, by their command."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(p) for p in children if "spawn_main" in Path(f"/proc/{p}/cmdline").read_text()]


def test_a_database_that_is_started_again_costs_nothing(tmp_path: Path) -> None:
    postgres = Postgres(tmp_path)
    with running_workers(tmp_path / "site", 2, lab_database=postgres.address) as roots:

        async def driven() -> None:
            async with joined(roots[0], "near", echo), drive(roots[1], "near") as socket:
                await socket.recv()
                for number in range(10):
                    await question(socket, number, "time")
                await asyncio.to_thread(postgres.stop)
                for number in range(10):  # who has a device keeps it
                    await question(socket, number, "time")
                asking = asyncio.create_task(asyncio.to_thread(asked, roots[0], "devices"))
                late = asyncio.create_task(come_late())
                await asyncio.sleep(1)
                assert not late.done(), "a device that comes now waits"
                await asyncio.to_thread(postgres.start)
                await late
                assert {row["name"] for row in json.loads(await asking)} >= {"near"}

        async def come_late() -> None:
            async with joined(roots[1], "late", echo):
                pass

        asyncio.run(driven())
        rows = json.loads(asked(roots[0], "results"))
        assert len([row for row in rows if row["device"] == "near"]) == 20
    postgres.stop()
