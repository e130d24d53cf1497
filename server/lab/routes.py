"""The lab's addresses: two WebSockets, and what is here and was measured, as JSON."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, HTTPException, Request, WebSocket
from fastapi.responses import JSONResponse, PlainTextResponse

from server.lab.clean import clean_text
from server.lab.directory import Directory, Worker
from server.lab.guard import PROTOCOL, refusal_of_request, refusal_of_socket
from server.lab.hub import Device, Hub, Job, LabError, Peer
from server.lab.neighbours import KEY_HEADER, PROGRAM_HEADER, Neighbours, with_retries
from server.lab.store import Store, StoreError
from server.problems import problem
from server.settings import Settings

log = logging.getLogger("webinfer.lab")

KEPT = frozenset({"run", "time", "profile", "verify", "tune"})  # actions whose answers are kept
FRESH = {"Cache-Control": "no-store"}


def lab_routes(settings: Settings, me: Worker | None = None) -> APIRouter:
    """The routes of the lab, which share its devices and its database. One of several workers says who it is.

    Raises: StoreError if the database cannot be opened
    """
    router = APIRouter(prefix="/api/lab")
    keeper = Keeper(Store(settings.lab_database))
    neighbours = Neighbours(Directory(keeper.store, me), settings) if me is not None else None
    hub = Hub(settings, keeper.record, neighbours)
    _add_sockets(router, hub, settings)
    _add_reports(router, hub, keeper, settings)
    return router


def _add_sockets(router: APIRouter, hub: Hub, settings: Settings) -> None:
    async def come_in(socket: WebSocket) -> Peer | None:
        """Accepts a WebSocket of who may come in; the others get a problem document."""
        if status := refusal_of_socket(socket.scope, socket.headers, settings):
            await socket.send_denial_response(problem(status, socket.scope.get("request_id", "")))
            return None
        await socket.accept(PROTOCOL)
        return Peer(socket, settings)

    @router.websocket("/join")
    async def join(socket: WebSocket, name: str = "") -> None:
        if peer := await come_in(socket):
            await hub.serve_device(peer, name)

    @router.websocket("/drive")
    async def drive(socket: WebSocket, device: str = "") -> None:
        if peer := await come_in(socket):
            await _driven(hub, peer, device)


async def _driven(hub: Hub, peer: Peer, device: str) -> None:
    """Lets a program drive a device that is here or at another worker, until one of both goes."""
    socket, here = peer.socket, device in hub.devices
    where = socket.client.host if socket.client else ""
    if _of_worker(hub, socket.headers):
        where, here = socket.headers.get(PROGRAM_HEADER, where), True
    try:
        if not here and hub.neighbours is not None and await hub.neighbours.relayed(socket, device, where):
            return
    except StoreError as error:
        await peer.end(LabError("database", str(error)))
        return
    await hub.serve_program(peer, device, where)


def _add_reports(router: APIRouter, hub: Hub, keeper: "Keeper", settings: Settings) -> None:
    store = keeper.store

    def check(request: Request) -> None:
        if status := refusal_of_request(request.scope, request.headers, settings):
            raise HTTPException(status)

    @router.get("/devices")
    async def devices(request: Request) -> JSONResponse:
        check(request)
        found = [device.public() for device in hub.devices.values()]
        if hub.neighbours is not None and not _of_worker(hub, request.headers):
            try:
                found += await hub.neighbours.devices()
            except StoreError as error:
                raise HTTPException(503, str(error)) from error
        return JSONResponse(found, headers=FRESH)

    @router.get("/results")
    async def results(request: Request) -> JSONResponse:
        check(request)
        await keeper.done()
        return JSONResponse(await asyncio.to_thread(store.results), headers=FRESH)

    @router.get("/tunings")
    async def tunings(request: Request) -> PlainTextResponse:
        check(request)
        await keeper.done()
        return PlainTextResponse(await asyncio.to_thread(store.tunings), headers=FRESH)


def _of_worker(hub: Hub, headers: Mapping[str, str]) -> bool:
    return hub.neighbours is not None and hub.neighbours.speaks(headers.get(KEY_HEADER, ""))


class Keeper:
    """Writes answers to the database one after the other, while devices and programs go on.

    No answer waits for a database. One that is started anew is waited for, up to a minute; one that takes nothing costs
    what it would have kept, and a line in the log.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._last: asyncio.Task[None] | None = None

    def record(self, device: Device, job: Job, answer: dict[str, Any]) -> None:
        """Keeps an answer, behind those before it."""
        if job.action in KEPT:
            before, model = self._last, device.model
            self._last = asyncio.get_running_loop().create_task(self._kept(before, device, model, job, answer))

    async def done(self) -> None:
        """Waits until everything that was answered so far is kept."""
        if self._last is not None:
            await asyncio.wait([self._last])

    async def _kept(
        self, before: asyncio.Task[None] | None, device: Device, model: str, job: Job, answer: dict[str, Any]
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            await with_retries(lambda: asyncio.to_thread(self._write, device, model, job, answer))
        except StoreError as error:
            log.error("an answer of %r is not kept: %s", device.name, error)
        except Exception:  # whatever a device's answer leads to, the answers behind it are kept
            log.exception("an answer of %r is not kept", device.name)

    def _write(self, device: Device, model: str, job: Job, answer: dict[str, Any]) -> None:
        backend = clean_text(str(answer.get("backend") or job.fields.get("backend") or ""), 40)
        facts = {"action": job.action, "model": model, "backend": backend}
        lines = answer.get("lines")
        value = {name: found for name, found in answer.items() if name not in ("lines", "outputs", "buffers")}
        self.store.add_result(device.name, device.about, facts, value)
        if job.action == "tune" and isinstance(lines, str):
            self.store.add_tunings(device.name, lines)
