"""Python's own modules whose code comes with the rest of its runtime (build_scripts/site/runtime_split.py).

Pages bring the rest when nobody waits for it. Who imports one of these before waits until it is there: an import can
fail, where a call of a function that is missing would end Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

from pyodide.ffi import JsException

from webinfer.errors import BackendUnavailableError

RARE = frozenset(
    """
    _bz2 _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _lzma _multibytecodec _sqlite3 _zstd
    xxsubtype
    """.split()
)
TESTS = ("_test", "_xxtest")  # what the names of modules begin with that test Python itself


class RareModules:
    """Asks for the rest of the runtime before a module is imported that needs it; finds none itself."""

    def __init__(self, bring_rest: Callable[[], None]) -> None:
        self._bring_rest = bring_rest

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """None.

        Raises:  BackendUnavailableError if the module needs the rest of the runtime and that cannot be fetched
        """
        if name in RARE or name.startswith(TESTS):
            try:
                self._bring_rest()
            except JsException as error:
                raise BackendUnavailableError(f"cannot import {name}: {error}") from error
        return None


def find_rare_modules(bring_rest: Callable[[], None]) -> None:
    """Lets imports wait for the rest of the runtime."""
    sys.meta_path.insert(0, RareModules(bring_rest))
