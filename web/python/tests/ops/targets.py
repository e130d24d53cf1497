"""The backends that ring 1 runs on, each with the reason when it cannot."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

import pytest

from webinfer.errors import WebinferError
from webinfer.host.native import NativeHost


@dataclass(frozen=True)
class Target:
    """A backend and the build options that tests use."""

    backend: str
    options: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return "-".join([self.backend, *(str(value) for _, value in self.options)])

    def demand(self) -> None:
        """Skips the test, or fails it where WEBINFER_CI promises every backend, if the backend cannot run."""
        missing = missing_reason(self)
        if missing and os.environ.get("WEBINFER_CI") == "1":
            pytest.fail(missing)
        if missing:
            pytest.skip(missing)


TARGETS = (
    Target("wasm", (("isa", "scalar"),)),
    Target("wasm", (("isa", "simd128"),)),
    Target("wasm", (("isa", "relaxed"),)),
    Target("webgpu"),
)
BUILDS = tuple(target for target in TARGETS if target.backend == "wasm")


@cache
def missing_reason(target: Target) -> str:
    """Why the backend cannot run here, or an empty text."""
    from tests.ops.case_graphs import run

    host = NativeHost()
    try:
        if target.backend == "wasm":
            run(host.kernels(str(dict(target.options)["isa"]))).close()
        else:
            run(host.gpu())
    except (WebinferError, ImportError) as error:
        return f"{target.backend}: {error}"
    return ""


def describe(target: Target) -> str:
    """One line for the report's header."""
    missing = missing_reason(target)
    if missing:
        return f"{target}: not here ({missing})"
    if target.backend == "webgpu":
        from tests.ops.case_graphs import run

        return f"{target}: {getattr(run(NativeHost().gpu()), 'name', 'adapter')}"
    return f"{target}: ready"
