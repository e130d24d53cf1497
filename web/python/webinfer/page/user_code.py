"""Python that a page's user writes: run beside the page's task, with names, output and sessions of its own."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import linecache
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any

from webinfer.authoring.registration import unregister_operator
from webinfer.errors import InputError
from webinfer.ops.custom import CUSTOM
from webinfer.page.json_results import plain
from webinfer.session.session import OPEN
from webinfer.tasks import TASKS
from webinfer.tasks.base import ResultSchema
from webinfer.tensor import Tensor

FILE = "your code"  # what tracebacks call it
MOST = 100_000  # characters of output that a run may have
LEAST = 50  # that one piece of it counts for
PIECE = 4096  # characters that wait for the end of their line
FIRST = 8  # numbers of an array that are shown


class UserCode:
    """Runs Python; `tell` is given what it prints (`printed`) and draws (`shown`), as messages with buffers."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._made: set[Any] = set()
        self._operators: set[str] = set()

    async def run(
        self,
        code: str,
        given: Mapping[str, Any] | None = None,
        size: Mapping[str, int] | None = None,
        usual: ResultSchema | None = None,
    ) -> dict[str, Any] | None:
        """Runs the code, which may await, with what the page shows by its name, a picture of this size or anything
        else; `usual` is how nothing found is shown.

        What ended it comes back as its text and its line (None where it has none); None if it ran to its end. What the
        run before made is closed first.
        """
        self.close()
        there, operators, output = set(OPEN), set(CUSTOM), _Output(self._tell)
        linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)

        def show(found: Any) -> None:
            """Draws what a task found over what the page shows, and lists it."""
            arrays: list[memoryview] = []
            things = found if isinstance(found, list | tuple) else [found]
            schema = _schema(things) if things else usual
            if schema is None or given is None:
                raise InputError("show draws what a task found; display shows anything else as text")
            values = plain(things, arrays)  # which fills `arrays`
            self._tell("shown", *arrays, result=dataclasses.asdict(schema), image=size, found=values)

        names = {"__name__": "__main__", "picture": None, **(given or {}), "show": show, "display": display}
        try:
            with redirect_stdout(output), redirect_stderr(output):
                await _execute(code, names)
        except BaseException as error:  # SystemExit and KeyboardInterrupt end the code, not the page's engine
            return _problem(error)
        finally:
            output.flush()
            self._made, self._operators = set(OPEN) - there, set(CUSTOM) - operators
        return None

    def close(self) -> None:
        """Closes the sessions and tasks of the last run and forgets its operators."""
        for one in self._made:
            with suppress(Exception):
                one.close()
        for name in self._operators:
            unregister_operator(name, missing_ok=True)
        self._made, self._operators = set(), set()


class _Output(io.TextIOBase):
    """Passes text on when a line ends; what is too much is left out, and that is said."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell, self._rest, self._left = tell, "", MOST

    def write(self, text: str) -> int:
        self._rest += text
        if "\n" in text or len(self._rest) > PIECE:
            self.flush()
        return len(text)

    def flush(self) -> None:
        text, self._rest = self._rest[: max(0, self._left)], ""
        if not text:
            return
        self._left -= max(len(text), LEAST)
        self._tell("printed", text=text if self._left > 0 else f"{text}\n… what is printed from here on is left out\n")


async def _execute(code: str, names: dict[str, Any]) -> None:
    """Runs statements; the value of a last one that is an expression is displayed, if it has one."""
    tree = ast.parse(code, FILE)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    await _evaluated(tree, "exec", names)
    if isinstance(last, ast.Expr):
        value = await _evaluated(ast.Expression(last.value), "eval", names)
        if value is not None:
            display(value)


async def _evaluated(tree: ast.Module | ast.Expression, mode: str, names: dict[str, Any]) -> Any:
    compiled = compile(tree, FILE, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    value = eval(compiled, names)
    return await value if compiled.co_flags & inspect.CO_COROUTINE else value


def _problem(error: BaseException) -> dict[str, Any]:
    """What to say of an error: the lines of the user's code that led to it, and itself; and the last of these lines."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    line = frames[-1].lineno if frames else None
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line = error.lineno
    return {"text": "".join(traceback.format_list(frames) + traceback.format_exception_only(error)), "line": line}


def _schema(things: list[Any] | tuple[Any, ...]) -> ResultSchema | None:
    """How these are shown, if they are all what one task finds."""
    kinds = {type(one) for one in things}
    bases: Any = ((task, task.__orig_bases__[0]) for task in TASKS.values())  # type: ignore[attr-defined]
    fitting = [task.result for task, base in bases if kinds <= {*base.__args__}]
    return max(fitting, key=lambda schema: _told(schema, things), default=None)


def _told(schema: ResultSchema, things: list[Any] | tuple[Any, ...]) -> int:
    """How many fields have something to tell, less those that have nothing: tasks may find things of one type."""
    values = [getattr(one, field.name, None) for one in things for field in schema.fields]
    return sum(-1 if value in (None, "") else 1 for value in values)


def display(*values: Any) -> None:
    """Prints values: lists and mappings an entry a line, arrays as type, shape, range and first numbers."""
    for value in values:
        print(_text(value))


def _text(value: Any) -> str:
    if isinstance(value, str | float):
        return value if isinstance(value, str) else f"{value:.6g}"
    if isinstance(value, Mapping):
        return "\n".join(f"{name}: {_text(one)}" for name, one in value.items())
    if isinstance(value, list | tuple) and not all(isinstance(one, int | float) for one in value):
        return "\n".join(map(_text, value))
    with suppress(TypeError, BufferError):
        return _summary(value)
    return repr(value)


def _summary(value: Any) -> str:
    """An array in a line."""
    view = memoryview(value.flat() if isinstance(value, Tensor) else value)
    shape, kind = getattr(value, "shape", view.shape) or (), getattr(value, "dtype", view.format)
    numbers = value.tolist() if isinstance(value, Tensor) else view.cast("B").cast(view.format).tolist()  # type: ignore[call-overload]
    first = ", ".join(f"{one:.6g}" if isinstance(one, float) else str(one) for one in numbers[:FIRST])
    more = ", …" if len(numbers) > FIRST else ""
    span = f", {min(numbers):.6g} to {max(numbers):.6g}" if numbers else ""
    return f"{kind} {tuple(shape)}{span}: {first}{more}"
