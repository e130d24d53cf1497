"""The Python end of the engine's web worker: messages in, JSON messages out. Knows tasks by name only.

One call per message. Answers are JSON texts, so that no proxy crosses to JavaScript but those of numbers in
bulk, and nothing else has to be freed there. Exceptions become `error` messages; JavaScript sees one only
when the interpreter itself has died. The messages are defined in messages.toml.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from webinfer.backends.base import GpuExecutor, TunableExecutor
from webinfer.backends.registry import fallback_of
from webinfer.errors import WebinferError
from webinfer.flags import debug, debug_level, set_debug_level
from webinfer.host import current
from webinfer.host.interface import ProgressEvent
from webinfer.importers.formats import model_names
from webinfer.models.registry import MODELS
from webinfer.page import chat_controller
from webinfer.page.json_results import plain
from webinfer.page.messages import FROM_ENGINE, VERSION
from webinfer.page.model_controller import ModelController
from webinfer.page.task_inputs import NAMES, picture_size, taken
from webinfer.page.user_code import UserCode
from webinfer.session.session import Session
from webinfer.tasks import task_class
from webinfer.tasks.base import Task

FOLLOWING = {"picture": "detect_for_video", "audio": "detect_live"}  # methods of tasks that follow what they are given
BAR_STEPS = 50  # a progress bar shows no more
MODEL_FOLDER = "models/"  # of logical names of files


@runtime_checkable
class ServedHost(Protocol):
    """A host that gets its files from a site."""

    def configure(self, assets: Mapping[str, str]) -> None:
        """Takes over the site's manifest."""


class EngineWorker:
    """Answers the messages of one page; `answer` takes each answer as JSON text, and behind it the numbers in bulk."""

    def __init__(self, answer: Callable[..., None]) -> None:
        self._answer = answer
        self._streaming = False  # whether what was given last goes on
        self._task: Task[Any] | None = None
        self._task_name = self._model = ""
        self._files: Mapping[str, Any] = {}  # of the user's, that the task was made of
        self._notice: dict[str, str] | None = None
        self._reported: dict[str, int] = {}  # stage -> the last progress told
        self._settling: asyncio.Future[None] | None = None
        self._controller, self._asked = ModelController(self._step), 0
        self._code = UserCode(self._send)
        self._chat = chat_controller.ChatController(
            self._step, lambda text: self._send("piece", id=self._asked, text=text)
        )

    async def start(self, task: str, model: str, backend: str, options: str, debug: int, assets: str) -> None:
        """Loads the model of a task; answers with `progress` and `ready`, without a task or a model with `started`.

        `assets` is a JSON object of logical names and URLs, `options` one of options of the task's `create`.
        """
        set_debug_level(debug)
        urls = _configured(assets)
        published = model_names(name for name in urls if name.startswith(MODEL_FOLDER))
        known = sorted({*MODELS, *published})
        if model and model not in known:
            text = f"This site has no model named {model!r}. Use one of these as ?model=: "
            self._send("error", code="model-unknown", message=text + ", ".join(known), fatal=True)
            return
        self._task_name = task
        if task and model:  # a page without a task opens the model by itself
            await self.select(backend, model, options)
        else:
            self._send("started", capabilities=_capabilities())

    async def select(
        self, backend: str, model: str, options: str, assets: str = "{}", files: Mapping[str, Any] | None = None
    ) -> None:
        """Runs this model on this backend with these options from now on; answers `ready`. `assets` are more files.

        `files` are the user's, as bytes by the name of the task's option; a `model` among them is the one that runs.

        What cannot run leaves the one before at work, and both an error and `ready` say so.
        """
        _configured(assets)
        try:
            given = {
                "model": model,
                **json.loads(options),
                **{name: bytes(data) for name, data in (files or {}).items()},
            }
            create: Any = task_class(self._task_name).create
            fresh = await create(backend=_with_fallback(backend), progress=self._progress, **given)
        except Exception as error:
            self._error(error, fatal=self._task is None and not files)
            if self._task is None:
                if files:
                    self._send("started", capabilities=_capabilities())  # and waits for another file
                return
        else:
            if self._task is not None:
                self._task.close()
            self._task, self._model, self._files = fresh, model, files or {}
            self._notice = _notice(backend, fresh.session)
            if fresh.session.autotune_pending:
                self._settling = asyncio.ensure_future(self._settle(fresh))
        self._ready()

    async def _settle(self, task: Task[Any]) -> None:
        """Answers `settled` when "auto" has measured what the task runs on."""
        await task.session.autotune_done()
        if task is self._task:
            self._send("settled", **self._in_use(task.session))

    async def detect(self, number: int, given: Any, live: bool, width: int = 0, height: int = 0) -> None:
        """Runs the task on what the page gives it (page.given); answers `result` or `error` with its number.

        What is `live`, a video or a recording that goes on, is followed by tasks that can. `width` and `height` are
        those of the user's file where the page gives a smaller copy of it: results are in pixels of the file then.
        """
        try:
            task: Any = self._live()
            follow = getattr(task, FOLLOWING.get(task.takes, ""), None) if live else None
            if follow is not None and not self._streaming:
                task.reset()
            self._streaming = live
            found = await (follow or task.run)(taken(given, task.takes))
            image = picture_size(given, task.takes)
            if width and image is not None:
                from webinfer.page.file_pixels import in_file_pixels

                found = in_file_pixels(found, width / image["width"], height / image["height"])
                image = {"width": width, "height": height}
            arrays: list[memoryview] = []
            values, beside = plain(found, arrays), plain(task.beside, arrays)
            self._send(
                "result",
                *arrays,
                id=number,
                backend=task.session.backend,
                reason=task.session.choice,
                image=image,
                found=values,
                beside=beside,
                times=dict(task.times),
            )
        except Exception as error:
            self._error(error, id=number)

    async def painter(self) -> Any:
        """What paints the frames of a video as their masks say (MaskPainter of gpu_mask.js); None where nothing can."""
        make = getattr(self._task, "painter", None)
        if make is None:
            return None
        try:
            return (await make()).handle
        except WebinferError as error:  # masks are read back then, as of every picture
            debug(1, f"frames are not painted on the GPU: {error}")
            return None

    def runs_on(self) -> str:
        """JSON of the backend that the task runs on, and why."""
        session = self._live().session
        return json.dumps({"backend": session.backend, "reason": session.choice})

    async def warm_up(self, image: Any) -> None:
        """Runs on a platform image and answers nothing."""
        if self._task is not None and self._task.takes == "picture":
            await self._task.run(image)

    def plan(self) -> None:
        """Answers `plan`: a table of the session's steps."""
        try:
            report = self._live().session.plan()
            columns = [field.name for field in dataclasses.fields(report.rows[0])] if report.rows else []
            rows = [[getattr(row, column) for column in columns] for row in report.rows]
            summary = f"{report.model} on {report.backend}: {len(rows)} steps. {report.choice}"
            self._send("plan", columns=columns, rows=rows, summary=summary)
        except Exception as error:
            self._error(error)

    async def profile(self) -> None:
        """Measures the session; answers `profiling` while it does and `profile` at the end."""
        try:
            session = self._live().session
            report = await session.profile(
                progress=lambda event: self._send("profiling", done=event.done, total=event.total)
            )
            self._send("profile", report=json.loads(report.json()), svg=report.svg())
        except Exception as error:
            self._error(error)

    async def tune(self, budget_ms: float) -> None:
        """Times kernels on this device; answers `tuning` while it does and `tuned` at the end."""
        try:
            report = await self._live().session.tune(budget_ms, self._tuning)
            fields = dataclasses.asdict(report.verdict) | {"model": self._model}
            self._send(
                "tuned", gain=report.gain, timed=report.timed, known=report.known, shapes=report.shapes, **fields
            )
        except Exception as error:
            self._error(error)

    def _tuning(self, event: ProgressEvent) -> None:
        if event.stage == "tune":
            self._send("tuning", done=event.done, total=event.total)

    async def export_tuning(self) -> None:
        """Answers `tuningLog`: what is known of this device, as JSON lines."""
        try:
            self._send("tuningLog", text=await self._live().session.export_tuning())
        except Exception as error:
            self._error(error)

    async def import_tuning(self, text: str) -> None:
        """Takes over lines of a log; answers `tuningImported`."""
        try:
            taken, skipped = await self._live().session.import_tuning(text)
            self._send("tuningImported", taken=taken, skipped=skipped)
        except Exception as error:
            self._error(error)

    async def run_code(self, code: str, given: Any = None) -> None:
        """Runs a user's Python on what the page shows; answers `printed` and `shown` meanwhile and `ran` at the end."""
        clock, task = current().now_ms, self._task
        start, takes = clock(), task.takes if task else "picture"
        own = {name: bytes(data) for name, data in self._files.items()}  # as `create` of the task takes them
        shown = None if given is None else {NAMES[takes]: taken(given, takes), **own}
        size = None if given is None else picture_size(given, takes)
        problem = await self._code.run(code, shown, size, task.result if task else None)
        self._send("ran", ms=clock() - start, problem=problem)

    async def ask(self, number: int, action: str, fields: Mapping[str, Any], assets: str = "{}") -> None:
        """An action of model_controller or chat_controller: sends `step` and `piece` while it runs, then `answer`.

        `assets` are more files, as in `select`.
        """
        _configured(assets)
        self._asked = number
        try:
            controller = self._chat if action in chat_controller.ACTIONS else self._controller
            answer, buffers = await controller.answer(action, fields)
            self._send("answer", *buffers, id=number, answer=answer, buffers=[])
        except Exception as error:
            self._error(error, id=number)

    def stop(self) -> None:
        """Ends what was asked for at its next step."""
        self._controller.stop()
        self._chat.stop()

    def _step(self, event: ProgressEvent) -> None:
        self._send("step", id=self._asked, stage=event.stage, done=event.done, total=event.total)

    def close(self) -> None:
        """Frees the task and its model, and the page's own."""
        self._controller.close()
        self._chat.close()
        self._code.close()
        if self._task is not None:
            self._task.close()
            self._task = None

    def _live(self) -> Task[Any]:
        if self._task is None:
            raise RuntimeError("no model is loaded")
        return self._task

    def _ready(self) -> None:
        task = self._live()
        self._send("ready", notice=self._notice, result=dataclasses.asdict(task.result), **self._in_use(task.session))

    def _in_use(self, session: Session) -> dict[str, Any]:
        overlaps, tunable = (isinstance(session.executor, one) for one in (GpuExecutor, TunableExecutor))
        told = {"overlaps": overlaps, "tunable": tunable, "capabilities": _capabilities()}
        return {"backend": session.backend, "reason": session.choice, **told}

    def _progress(self, event: ProgressEvent) -> None:
        before = self._reported.get(event.stage, -1)
        if before <= event.done < min(event.total, before + event.total // BAR_STEPS):
            return
        self._reported[event.stage] = event.done
        self._send("progress", stage=event.stage, done=event.done, total=event.total, unit=event.unit)

    def _error(self, error: Exception, **fields: Any) -> None:
        code = error.code if isinstance(error, WebinferError) else "internal"
        message = str(error) if isinstance(error, WebinferError) else f"{type(error).__name__}: {error}"
        if code == "internal" or debug_level() >= 1:
            traceback.print_exception(error)
        self._send("error", code=code, message=message, **fields)

    def _send(self, kind: str, *buffers: memoryview, **fields: Any) -> None:
        declared = FROM_ENGINE[kind]
        needed = {name for name, rule in declared.items() if not rule.endswith("?")}
        assert needed <= {*fields} <= {*declared}, f"{kind} with {', '.join(fields)}"
        self._answer(json.dumps({"v": VERSION, "type": kind, **fields}), *buffers)


def _with_fallback(backend: str) -> str | list[str]:
    """The backend, and behind it who takes its place where it cannot run: a page without an answer helps nobody."""
    other = fallback_of(backend)
    return backend if other == backend else [backend, other]


def _notice(asked: str, session: Session) -> dict[str, str] | None:
    """What to tell the user when another backend runs than the one asked for."""
    if asked in ("auto", session.backend):
        return None
    return {"code": "backend-unavailable", "message": f"Running on {session.choice}"}


def _configured(assets: str) -> dict[str, str]:
    """The URLs of files by logical name, which the host knows from now on; from a JSON object."""
    urls: dict[str, str] = json.loads(assets)
    host = current()
    if isinstance(host, ServedHost):
        host.configure(urls)
    return urls


def _capabilities() -> list[dict[str, Any]]:
    return [dataclasses.asdict(capability) for capability in current().capabilities()]
