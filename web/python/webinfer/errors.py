"""Every error that webinfer raises on purpose.

Each message names the object, what was found, what was needed, and what to do. After an error the
next valid call works.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

REPORT = "this is a bug of webinfer, please report it"


def named(name: str, error: Exception) -> str:
    """An error's text behind the name of what it befell, which is said once."""
    return f"{name}: {str(error).removeprefix(f'{name}: ')}"


def meant(given: str, known: Iterable[str]) -> str:
    """The end of an error about a name that nobody knows: "; did you mean 'x'?", or nothing."""
    from difflib import get_close_matches  # which nothing needs until something is wrong

    near = get_close_matches(given, list(known), 2, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


class WebinferError(Exception):
    """Base of all typed errors; `code` is stable and safe to compare."""

    code = "error"


class ModelFormatError(WebinferError):
    """The bytes are not a model, or the model breaks a rule of its format."""

    code = "model-format"


class UnsupportedOpError(WebinferError):
    """The model needs operators, types or options that webinfer lacks.

    `problems` lists all of them; `nodes` has the graph's nodes that a backend
    rejected; `operators` has the numbers of the file's operators that an importer rejected.
    """

    code = "unsupported-op"

    def __init__(self, problems: list[str], nodes: Sequence[object] = (), operators: Iterable[int] = ()) -> None:
        self.problems, self.nodes, self.operators = list(problems), list(nodes), sorted(operators)
        head = f"{len(self.problems)} thing(s) in this model are not supported:"
        super().__init__("\n  ".join([head, *self.problems]))


class ShapeError(WebinferError):
    """Shapes, types or attributes of an operator do not fit together."""

    code = "shape"


class InputError(WebinferError):
    """An input given to `run` has the wrong name, type, shape or length."""

    code = "input"


class LimitError(WebinferError):
    """Something is larger than a limit of the engine or of the device."""

    code = "limit"

    def __init__(self, what: str, found: int, limit: int, todo: str) -> None:
        self.what, self.found, self.limit = what, found, limit
        super().__init__(f"{what}: needs {found}, the limit is {limit}; {todo}")


class IntegrityError(WebinferError):
    """Data does not match its published hash."""

    code = "integrity"


class BackendUnavailableError(WebinferError):
    """A backend cannot run here; the message says why and what would help."""

    code = "backend-unavailable"


class DeviceLostError(WebinferError):
    """The GPU device was lost; the session can be restored."""

    code = "device-lost"


class GpuError(WebinferError):
    """The GPU rejected a shader, a buffer or a command."""

    code = "gpu"


class KernelError(WebinferError):
    """A WASM kernel trapped or the kernel module does not match this engine."""

    code = "kernel"


class CompilerError(WebinferError):
    """Compiling a supported model failed: a bug in webinfer. The message names the step and the node.

    With a list of backends, the next one is tried.
    """

    code = "compiler"


class IsolationError(WebinferError):
    """`strict` was set and threads were requested in a page that cannot use threads."""

    code = "isolation"


class OutOfMemoryError(WebinferError):
    """Not enough memory for the tensors."""

    code = "out-of-memory"


class ClosedError(WebinferError):
    """The session was closed."""

    code = "closed"
