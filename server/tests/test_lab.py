"""The lab: devices and programs over real WebSockets, what is kept of them, and who is not let in."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from server.lab.frames import Frame, FrameError, message, read
from server.lab.hub import Device, Job
from server.lab.routes import Keeper
from server.lab.store import Store, StoreError
from server.tests.databases import Postgres
from server.tests.lab_devices import PROTOCOLS, TOKEN, joined, lab_settings, running_lab, said, socket_of

LINE = {"adapter": "a", "browser": "b", "engine": "1", "key": "k", "choice": "c", "ms": 1.0, "default_ms": 2.0}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_lab(tmp_path_factory.mktemp("lab"), lab_message_bytes=1 << 16) as root:
        yield root


def asked(root: str, what: str, token: str = TOKEN, **headers: str) -> Any:
    request = Request(f"{root}/api/lab/{what}", headers={"Authorization": f"Bearer {token}", **headers})
    with urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def drive(root: str, device: str) -> connect:
    return connect(socket_of(root, f"drive?device={device}"), subprotocols=PROTOCOLS, max_size=None)


async def question(socket: ClientConnection, number: Any, action: str, **fields: Any) -> list[dict[str, Any]]:
    """All that comes until the question is answered."""
    await socket.send(json.dumps({"type": "ask", "id": number, "action": action, "fields": fields}))
    found = []
    while not found or found[-1]["type"] == "step":
        found.append(said(await asyncio.wait_for(socket.recv(), 10)))
    return found


async def echo(text: Any, socket: ClientConnection) -> None:
    """Answers each question with a step and with what it was."""
    if (head := said(text))["type"] != "ask":
        return
    if head["action"] == "vanish":
        socket.transport.abort()
        return
    await socket.send(json.dumps({"type": "step", "id": head["id"], "stage": "s", "done": 1, "total": 2}))
    answer = {"backend": "wasm", "name": head["fields"].get("name", ""), "times": [1.5], "fields": head["fields"]}
    if head["action"] == "tune":
        answer["lines"] = json.dumps({**LINE, "choice": head["fields"]["choice"]}) + "\n"
    await socket.send(json.dumps({"type": "answer", "id": head["id"], "answer": answer}))


def test_ten_devices_work_at_once_and_one_that_vanishes_costs_its_own_job_only(lab: str) -> None:
    async def one(number: int) -> list[dict[str, Any]]:
        async with drive(lab, f"device-{number}") as socket:
            assert said(await socket.recv())["device"]["name"] == f"device-{number}"
            if number == 3:
                return await question(socket, "x", "vanish")
            await question(socket, 0, "open", name=f"model {number}")
            found = []
            for job in range(20):
                found += await question(socket, job, "time", backend="wasm", which=[number, job])
            return found

    async def all_of_them() -> tuple[list[list[dict[str, Any]]], str]:
        async with AsyncExitStack() as stack:
            for number in range(10):
                await stack.enter_async_context(joined(lab, f"device-{number}", echo))
            here = json.loads(await asyncio.to_thread(asked, lab, "devices"))
            assert {row["name"] for row in here} == {f"device-{number}" for number in range(10)}
            return await asyncio.gather(*map(one, range(10))), await asyncio.to_thread(asked, lab, "results")

    found, kept = asyncio.run(all_of_them())
    assert [row["type"] for row in found[3]] == ["error"]
    assert (found[3][0]["id"], found[3][0]["code"]) == ("x", "device-gone")
    for number in {*range(10)} - {3}:
        answers = [row for row in found[number] if row["type"] == "answer"]
        assert [row["answer"]["fields"]["which"] for row in answers] == [[number, job] for job in range(20)]
        assert [row["id"] for row in found[number]] == [job for job in range(20) for _ in range(2)]  # steps too
    rows = [row for row in json.loads(kept) if row["device"].startswith("device-")]
    assert len(rows) == 9 * 20
    assert {(row["device"], row["model"]) for row in rows} == {
        (f"device-{n}", f"model {n}") for n in {*range(10)} - {3}
    }
    assert json.loads(asked(lab, "devices")) == []


def test_a_busy_device_a_missing_one_and_a_name_that_is_taken_are_said(lab: str) -> None:
    async def tried() -> list[str]:
        codes = []
        async with joined(lab, "one", echo), drive(lab, "one") as first:
            await first.recv()
            for socket in (drive(lab, "one"), drive(lab, "two")):
                async with socket as other:
                    codes.append(said(await other.recv())["code"])
                    with pytest.raises(ConnectionClosed):
                        await other.recv()
            for name in ("one", "", "<b>", "x" * 41):
                with pytest.raises(AssertionError):  # no welcome
                    async with joined(lab, name, echo):
                        pass
            assert (await question(first, 1, "time"))[-1]["type"] == "answer"  # which nobody disturbed
        async with joined(lab, "one", echo), drive(lab, "one") as again:  # the name is free again
            codes.append(said(await again.recv())["type"])
        return codes

    assert asyncio.run(tried()) == ["device-busy", "no-device", "welcome"]


def test_a_program_that_goes_stops_its_job_and_frees_the_device(lab: str) -> None:
    heard: list[dict[str, Any]] = []

    async def slow(text: Any, socket: ClientConnection) -> None:
        heard.append(said(text))
        if heard[-1]["type"] == "released":  # the answer of what was stopped goes to nobody
            await socket.send(json.dumps({"type": "answer", "id": 1, "answer": {}}))

    async def tried() -> None:
        async with joined(lab, "slow", slow):
            async with drive(lab, "slow") as first:
                await first.recv()
                await first.send(json.dumps({"type": "ask", "id": 7, "action": "tune", "fields": {}}))
                while len(heard) < 2:
                    await asyncio.sleep(0.01)
            async with drive(lab, "slow") as second:
                assert said(await second.recv())["type"] == "welcome"
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(second.recv(), 0.2)

    asyncio.run(tried())
    assert [row["type"] for row in heard[:5]] == ["controlled", "ask", "stop", "released", "controlled"]


@pytest.mark.parametrize("path", ["join?name=x", "drive?device=x"])
@pytest.mark.parametrize(
    ("protocols", "headers", "status"),
    [
        (None, {}, 401),
        (["webinfer.lab"], {}, 401),
        (["webinfer.lab", "token."], {}, 401),
        (["webinfer.lab", "token.wrong"], {}, 401),
        (PROTOCOLS, {"Origin": "http://evil.example"}, 403),
        (PROTOCOLS, {"Origin": "null"}, 403),
        (PROTOCOLS, {"Host": "evil.example"}, 400),
    ],
)
def test_strangers_get_a_problem_document(
    lab: str, path: str, protocols: list[str] | None, headers: dict[str, str], status: int
) -> None:
    async def tried() -> Any:
        with pytest.raises(InvalidStatus) as refused:
            await connect(socket_of(lab, path), subprotocols=protocols, additional_headers=headers)  # type: ignore[arg-type]
        return refused.value.response

    if "Host" in headers:
        response = asyncio.run(_with_host(lab, path, headers["Host"]))
        assert response.startswith(b"HTTP/1.1 400")
        return
    response = asyncio.run(tried())
    assert response.status_code == status
    assert json.loads(response.body)["status"] == status
    assert response.headers["X-Content-Type-Options"] == "nosniff"


async def _with_host(root: str, path: str, host: str) -> bytes:
    """The first bytes of the answer to a handshake with another Host."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(root.rsplit(":", 1)[1]))
    lines = [
        f"GET /api/lab/{path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        f"Sec-WebSocket-Protocol: {', '.join(PROTOCOLS)}", "", "",
    ]  # fmt: skip
    writer.write("\r\n".join(lines).encode())
    found = await asyncio.wait_for(reader.read(200), 10)
    writer.close()
    return found


@pytest.mark.parametrize("what", ["devices", "results", "tunings"])
def test_reports_are_for_those_with_the_token(lab: str, what: str) -> None:
    for token, headers, status in (("", {}, 401), ("wrong", {}, 401), (TOKEN, {"Origin": "http://evil.example"}, 403)):
        with pytest.raises(HTTPError) as refused:
            asked(lab, what, token, **headers)
        assert refused.value.code == status
        assert json.loads(refused.value.read())["status"] == status
    assert isinstance(asked(lab, what), str)


@pytest.mark.parametrize(
    "bad",
    [
        "{", "[]", "{}", '{"type": 1}', "[" * 100_000, b"", b"\xff\xff\xff\x7f{}", b"\2\0\0\0{}x",
        '{"type": "ask", "action": 1, "fields": {}}', '{"type": "ask", "action": "a", "fields": 1}',
        '{"type": "welcome"}', '{"type": "ask", "buffers": [-1]}',
        b'\x18\0\0\0{"type":"a","buffers":3}', "x" * (1 << 17),
    ],
    ids=lambda bad: repr(bad[:24]),
)  # fmt: skip
def test_damaged_and_oversize_messages_end_their_own_connection_only(lab: str, bad: str | bytes) -> None:
    async def tried() -> None:
        async with joined(lab, "well", echo), drive(lab, "well") as program:
            await program.recv()
            async with connect(socket_of(lab, "join?name=ill"), subprotocols=PROTOCOLS) as socket:
                await socket.send(json.dumps({"type": "hello", "about": {}}))
                await socket.recv()
                await ended(socket)
            assert (await question(program, 1, "time"))[-1]["type"] == "answer"
            await ended(program)
            async with drive(lab, "well") as again:  # the device itself is there
                assert said(await again.recv())["type"] == "welcome"

    async def told_why(socket: ClientConnection) -> None:
        await socket.send(bad)
        while True:
            assert said(await asyncio.wait_for(socket.recv(), 10))["code"] == "protocol"

    async def ended(socket: ClientConnection) -> None:
        with pytest.raises(ConnectionClosed) as end:
            await told_why(socket)
        assert end.value.rcvd
        assert end.value.rcvd.code == (1009 if len(bad) > 1 << 16 else 4000)

    asyncio.run(tried())


def test_a_device_outlives_the_limits_of_requests(tmp_path: Path) -> None:
    async def tried(root: str) -> None:
        async with joined(root, "patient", echo), drive(root, "patient") as socket:
            await socket.recv()
            await asyncio.sleep(0.5)
            assert (await question(socket, 1, "time"))[-1]["type"] == "answer"

    with running_lab(tmp_path, header_timeout_s=0.1, write_timeout_s=0.1, client_connections=2) as root:
        for _ in range(3):  # connections that are over are counted no more
            asyncio.run(tried(root))


def test_a_server_without_a_lab_has_neither_page_nor_sockets(tmp_path: Path) -> None:
    from fastapi.testclient import TestClient

    from server.app import create_app

    with TestClient(create_app(lab_settings(tmp_path, lab=False)), base_url="http://127.0.0.1") as client:
        assert client.get("/lab").status_code == 404
        assert client.get("/api/lab/devices").status_code == 404


HOSTILE = {
    "NaN": '{"median": NaN, "worst": Infinity, "least": -Infinity}',
    "too large": '{"ms": 1e999, "n": ' + "1" * 400 + "}",
    "lone surrogates": r'{"backend": "\ud800", "name": "\udfff", "\ud800": 1}',
    "NUL": r'{"backend": "a\u0000b"}',
    "deep": '{"a": ' + "[" * 400 + "]" * 400 + "}",
    "lines": r'{"lines": "{\"key\": NaN}\n\ud800", "backend": 5}',
    "no texts": '{"backend": {"a": []}, "name": [NaN]}',
}


@pytest.mark.parametrize("action", ["time", "tune"])
def test_hostile_answers_are_kept_clean_and_those_behind_them_too(tmp_path: Path, action: str) -> None:
    async def hostile(text: Any, socket: ClientConnection) -> None:
        head = said(text)
        if head["type"] == "ask":
            answer = HOSTILE.get(head["fields"].get("kind"), '{"fine": true}')
            await socket.send(f'{{"type": "answer", "id": {head["id"]}, "answer": {answer}}}')

    async def tried(root: str) -> None:
        async with joined(root, "h", hostile), drive(root, "h") as socket:
            await socket.recv()
            for number, kind in enumerate([*HOSTILE, "fine"]):
                text = (await question(socket, number, action, kind=kind))[-1]
                assert text["type"] == "answer"

    def kept(root: str) -> None:
        rows = json.loads(asked(root, "results"), parse_constant=pytest.fail)
        assert len(rows) == len(HOSTILE) + 1
        assert rows[0]["value"] == {"fine": True}
        assert {"median": None, "worst": None, "least": None} in [row["value"] for row in rows]
        asked(root, "tunings")

    database = f"sqlite:///{tmp_path / 'kept.sqlite'}"
    with running_lab(tmp_path / "1", lab_database=database) as root:
        asyncio.run(tried(root))
        kept(root)
    with running_lab(tmp_path / "2", lab_database=database) as root:  # after a restart
        kept(root)


def test_rows_with_nan_of_an_older_server_are_read(tmp_path: Path) -> None:
    with running_lab(tmp_path) as root:
        store = Store(f"sqlite:///{tmp_path / 'lab.sqlite'}")
        with store.engine.begin() as connection:
            value = '{"ms": NaN}'
            row = f"1, '2026-01-01 00:00:00', 'd', '{{}}', 'time', 'm', 'b', '{value}'"
            connection.exec_driver_sql(f"insert into lab_results values ({row})")
        store.close()
        assert json.loads(asked(root, "results"))[0]["value"] == {"ms": None}


def test_a_failure_that_nobody_foresaw_costs_one_answer_only(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("sqlite://")
    keeper, kept = Keeper(store), store.add_result
    job, device = Job(None, 1, "time", {}), Device("d", None, {})  # type: ignore[arg-type]

    def failing(*given: Any) -> None:
        if given[-1] == {"bad": 1}:
            raise TypeError("nobody foresaw this")
        kept(*given)

    monkeypatch.setattr(store, "add_result", failing)

    async def tried() -> None:
        for answer in ({"bad": 1}, {"good": 1}):
            keeper.record(device, job, answer)
        await keeper.done()

    asyncio.run(tried())
    assert [row["value"] for row in store.results()] == [{"good": 1}]


def test_a_device_cannot_say_megabytes_about_itself(tmp_path: Path) -> None:
    async def tried(root: str) -> None:
        async with connect(socket_of(root, "join?name=long"), subprotocols=PROTOCOLS) as socket:
            await socket.send(json.dumps({"type": "hello", "about": {"browser": "x" * 1_000_000}}))
            told = said(await socket.recv())
            assert (told["code"], "32768 fit" in told["message"]) == ("protocol", True)

    with running_lab(tmp_path) as root:
        asyncio.run(tried(root))
        assert json.loads(asked(root, "devices")) == []


def test_frames_are_the_same_when_they_come_back() -> None:
    frame = Frame({"type": "ask", "id": 1, "buffers": [3, 0, 2]}, b"abcde")
    assert read(frame.written()) == frame
    assert read(message("stop").written()) == message("stop")
    with pytest.raises(FrameError, match="5 bytes and have 4"):
        read(Frame({"type": "ask", "buffers": [3, 0, 2]}, b"abcd").written())


# ----- the databases


def told(store: Store) -> None:
    """The same story for each database."""
    about = {"browser": "x", "name": "pixel ✓"}
    facts = {"action": "time", "model": "m", "backend": "wasm"}
    for number in range(3):
        store.add_result("pixel", about, facts, {"times": [number, 0.5]})
    store.add_result("pixel", about, facts, {"text": "x" * 300_000})
    rows = store.results(2)
    assert [row["value"] for row in rows] == [{"too_long": True}, {"times": [2, 0.5]}]
    assert rows[1]["about"] == about
    plan = {**LINE, "plan": "p"}
    first = "".join(json.dumps(row) + "\n" for row in (LINE, {**LINE, "key": "k2"}, plan))
    assert store.add_tunings("pixel", first) == 3
    assert store.add_tunings("other", json.dumps({**LINE, "choice": "better"})) == 1  # in place of the first
    assert store.add_tunings("other", json.dumps({**LINE, "adapter": "another"})) == 1
    lines = [json.loads(line) for line in store.tunings().splitlines()]
    assert [(row["adapter"], row["key"], row["choice"]) for row in lines if "plan" not in row] == [
        ("a", "k2", "c"), ("a", "k", "better"), ("another", "k", "c"),
    ]  # fmt: skip
    for bad in ("{", "[]", "{}", json.dumps({"key": "k"})):
        with pytest.raises(StoreError, match="tuning log"):
            store.add_tunings("pixel", bad)
    assert len(store.tunings().splitlines()) == 4


def test_sqlite_keeps_results_and_tunings(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'lab.sqlite'}"
    store = Store(address)
    told(store)
    store.close()
    again = Store(address)
    assert len(again.results()) == 4
    again.close()
    for wrong in ("nothing", "nowhere://x", f"sqlite:///{tmp_path}/no/folder.sqlite"):
        with pytest.raises(StoreError, match="cannot be opened"):
            Store(wrong)


def test_a_database_in_memory_is_the_same_for_all_threads() -> None:
    store = Store("sqlite://")
    with ThreadPoolExecutor(4) as threads:
        rows = [
            threads.submit(store.add_result, "d", {}, {"action": "run", "model": "m", "backend": "b"}, i)
            for i in range(20)
        ]
        assert [row.result() for row in rows] == [None] * 20
        assert sorted(row["value"] for row in threads.submit(store.results).result()) == [*range(20)]


def test_a_tuning_of_a_device_is_kept_and_exported(lab: str) -> None:
    async def tuned() -> None:
        async with joined(lab, "gpu", echo), drive(lab, "gpu") as socket:
            await socket.recv()
            for choice in ("first", "second"):
                await question(socket, 1, "tune", choice=choice)

    asyncio.run(tuned())
    assert [json.loads(line)["choice"] for line in asked(lab, "tunings").splitlines()] == ["second"]


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Postgres]:
    server = Postgres(tmp_path)
    yield server
    server.stop()


def test_postgresql_keeps_results_and_tunings(postgres: Postgres) -> None:
    store = Store(postgres.address)
    told(store)
    store.close()
