"""A model with several ways to be run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from webinfer.lazy_dataclass import dataclass
from webinfer.session.state import Variables

if TYPE_CHECKING:
    from webinfer.session.session import Session


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of a model, and how a session of one is made that shares variables."""

    names: Callable[[], tuple[str, ...]]
    open: Callable[[str, Variables], Awaitable[Session]]
