"""Sessions that travel to other processes: what they were loaded from and how, and the models that a process has open.

A pickled session is its load arguments and the hash of the model's content, some hundred bytes, or the model itself
where that was loaded from bytes. Where it is unpickled the model is loaded, once a process: all pickles of the same
content and arguments share one session there, and the pages of a large file are shared between processes.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Generic, Protocol, TypeVar

from webinfer.errors import InputError, IntegrityError
from webinfer.graph.made import MadeGraph
from webinfer.host import current
from webinfer.lazy_dataclass import dataclass
from webinfer.session.plan_cache import WithPostprocessing

KEPT = 4  # models that a process keeps open for pickles to come, the ones used last


class Closable(Protocol):
    """What the cache holds."""

    def close(self) -> None:
        """Frees it."""


C = TypeVar("C", bound=Closable)


class LoadRecipe:
    """What a session was loaded from: source and options of `load`, and the bytes of the model's files."""

    def __init__(
        self, name: str, source: Any, options: Mapping[str, Any], signature: str | None, parts: Sequence[memoryview],
        reopen: Callable[[SealedRecipe], Any],
    ) -> None:  # fmt: skip
        """`reopen` gives the session of a recipe that was unpickled."""
        self.name, self.source, self.options, self.reopen = name, source, {**options, "signature": signature}, reopen
        self._parts, self._sha256 = parts, ""

    def sealed(self) -> SealedRecipe:
        """What is pickled.

        Raises:  InputError naming what cannot be sent to another process
        """
        source = self.source
        if isinstance(source, MadeGraph):
            raise InputError(
                f"a session of the GraphBuilder {self.name!r} cannot be pickled, as its operators are code: compile it "
                "with webinfer.package.compile_model and load the bytes"
            )
        if isinstance(source, WithPostprocessing):
            raise InputError(f"the session {self.name!r} cannot be pickled by itself, as it is a task's: pickle that")
        if isinstance(source, Mapping):
            source = {name: bytes(data) for name, data in source.items()}
        elif not isinstance(source, str | PurePath):
            source = bytes(source)
        return SealedRecipe(self.name, absolute(source), portable_options(self.options), self.sha256())

    def sha256(self) -> str:
        """The hash of the model's files, each with its length before it."""
        if not self._sha256:
            digest = hashlib.sha256()
            for part in self._parts:
                digest.update(len(part).to_bytes(8, "little"))
                digest.update(part)
            self._sha256 = digest.hexdigest()
        return self._sha256


@dataclass(frozen=True, slots=True)
class SealedRecipe:
    """A pickled session: what `load` is given where it is unpickled, and the hash of the content that is expected."""

    name: str
    source: Any
    options: Mapping[str, Any]
    sha256: str

    @property
    def key(self) -> str:
        """Equal for pickles that share a session."""
        return self.sha256 + key_of(self.options)


def key_of(value: Any) -> str:
    """Equal for things whose pickles are."""
    import pickle  # which no page does

    return hashlib.sha256(pickle.dumps(value)).hexdigest()


def check_content(name: str, found: str, wanted: str) -> None:
    """Compares the hash of a model that was loaded with the one that was pickled.

    Raises:  IntegrityError
    """
    if found != wanted:
        raise IntegrityError(
            f"the model {name!r} is not the one that was pickled: its content has the SHA-256 {found[:16]}…, needs "
            f"{wanted[:16]}…; give each machine the same file"
        )


def absolute(source: Any) -> Any:
    """A model's source as other processes of this machine find it: a path that is there from the root on."""
    text = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    return os.path.abspath(text) if text and os.path.exists(text) else source


def portable_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a pickle has, in order: not `progress`, nor this process's host.

    Raises:  InputError if the host is another one
    """
    if options.get("host") not in (None, current()):
        raise InputError("a session with a host of its own cannot be pickled: load it in each process")
    return {name: options[name] for name in sorted(options) if name not in ("progress", "host")}


class OpenModels(Generic[C]):
    """The sessions or tasks that were unpickled in this process; the last few stay open for pickles to come.

    One that is put out stays open for who has it. Threads that want the same one wait for the first to open it.
    """

    def __init__(self, is_closed: Callable[[C], bool]) -> None:
        self._is_closed, self._mutex = is_closed, threading.Lock()
        self._found: OrderedDict[str, C] = OrderedDict()
        self._opening: dict[str, threading.Lock] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._mutex, self._opening = threading.Lock(), {}

    def get(self, key: str, open_one: Callable[[], C]) -> C:
        """The one that is open under this key, else a new one."""
        with self._mutex:
            opening = self._opening.setdefault(key, threading.Lock())
        with opening:
            found = self._found.get(key)
            if found is None or self._is_closed(found):
                found = open_one()
            with self._mutex:
                self._found[key] = found
                self._found.move_to_end(key)
                while len(self._found) > KEPT:
                    del self._opening[self._found.popitem(last=False)[0]]
        return found
