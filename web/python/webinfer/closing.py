"""What holds memory or a device until it is closed, and can be used in a `with` block."""

from __future__ import annotations

from abc import abstractmethod
from types import TracebackType
from typing import Self


class Closing:
    """Is closed at the end of its `with` block, whatever happened in it."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Frees what is held; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
