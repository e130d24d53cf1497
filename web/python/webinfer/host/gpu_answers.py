"""What the JavaScript of web/static/gpu_*.js answers, and the typed errors that its failures become."""

from __future__ import annotations

from typing import Any, NoReturn

from pyodide.ffi import JsException, create_proxy

from webinfer.errors import DeviceLostError, GpuError, OutOfMemoryError, WebinferError
from webinfer.host.immediate import ImmediateFuture


def text_of(error: JsException) -> str:
    """What a JavaScript error says."""
    return str(getattr(error, "message", error))


def raise_typed(error: JsException, what: str, adapter: str) -> NoReturn:
    """Raises the typed error that belongs to a JavaScript error's name."""
    raise _typed(str(getattr(error, "name", "")), text_of(error), what, adapter) from error


def _typed(kind: str, text: str, what: str, adapter: str) -> WebinferError:
    """The typed error of a kind that the JavaScript side names."""
    if kind == "DeviceLost":
        return DeviceLostError(f"{what}: GPU {adapter} was lost ({text}); run again to restore the session")
    if kind == "OutOfMemory":
        return OutOfMemoryError(f"{what}: GPU {adapter} is out of memory: {text}")
    return GpuError(f"{what} on {adapter}: {text}")


class Answers:
    """What JavaScript answers by calls with a ticket: awaiting a promise costs Python a turn of its event loop more."""

    def __init__(self, adapter: str) -> None:
        self._adapter = adapter
        self._pending: dict[int, ImmediateFuture] = {}
        self._tickets = 0
        self._closing = False
        self.arrived = create_proxy(self._resolve)

    def ticket(self) -> int:
        """A number for the next question."""
        self._tickets += 1
        return self._tickets

    def wait(self, ticket: int) -> ImmediateFuture:
        """The answer to a question that JavaScript has accepted: (bytes or None, kind of error or "", message)."""
        answer = self._pending[ticket] = ImmediateFuture()
        return answer

    async def of(self, what: str, question: Any, *given: Any) -> Any:
        """The bytes that answer `question(ticket, arrived, *given)`, which never answers before it returns.

        Raises:  DeviceLostError; GpuError; OutOfMemoryError
        """
        ticket = self.ticket()
        try:
            question(ticket, self.arrived, *given)
        except JsException as error:
            raise_typed(error, what, self._adapter)
        return self.checked(await self.wait(ticket), what)

    def checked(self, answer: tuple[Any, str, str], what: str) -> Any:
        """The bytes of an answer, or the error that it is raised."""
        data, kind, message = answer
        if kind:
            raise _typed(kind, message, what, self._adapter)
        return data

    def _resolve(self, ticket: int, data: Any = None, kind: str = "", message: str = "") -> None:
        answer = self._pending.pop(ticket, None)
        if answer is not None and not answer.done():
            answer.set_result((data.to_memoryview() if data is not None else None, kind, message))
        if self._closing and not self._pending:
            self.arrived.destroy()

    def close(self) -> None:
        """Answers that are on their way still arrive; no more are asked for."""
        self._closing = True
        if not self._pending:
            self.arrived.destroy()
