"""ONNX Runtime's settings of its log, over Python's logging: webinfer's log has the name "webinfer"."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any


def set_default_logger_severity(severity: int) -> None:
    """Sets the level of webinfer's log: 0 and 1 show everything, 2 warnings, 3 errors, 4 only fatal ones."""
    logging.getLogger("webinfer").setLevel(_level(severity))


class _Callback(logging.Handler):
    """Hands each record to a function: severity, category, log id, place in the code, text."""

    def __init__(self, function: Callable[[int, str, str, str, str], Any]) -> None:
        super().__init__()
        self.function = function

    def emit(self, record: logging.LogRecord) -> None:
        """Calls the function; what it raises ends here, as nothing may fail for the sake of its log."""
        try:
            place = f"{record.filename}:{record.lineno}"
            self.function(min(record.levelno // 10 - 1, 4), record.name, "", place, record.getMessage())
        except Exception:
            self.handleError(record)


_CALLBACKS: list[_Callback] = []


def set_default_logger_callback(callback: Any, severity: int = 2) -> None:
    """Calls a function for each record of webinfer's log from this severity on; None ends it.

    Raises:  RuntimeError if it cannot be called, or for severities other than 0 to 4
    """
    level, log = _level(severity), logging.getLogger("webinfer")
    if callback is not None and not callable(callback):
        raise RuntimeError(f"the logging callback is a {type(callback).__name__}, which cannot be called")
    while _CALLBACKS:
        log.removeHandler(_CALLBACKS.pop())
    if callback is not None:
        _CALLBACKS.append(_Callback(callback))
        log.addHandler(_CALLBACKS[0])
        log.setLevel(level)


def _level(severity: int) -> int:
    levels = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
    if not 0 <= severity < len(levels):
        raise RuntimeError(f"Invalid logging severity {severity}; needs a number from 0 to {len(levels) - 1}")
    return levels[severity]


def set_default_logger_verbosity(verbosity: int) -> None:
    """Nothing: the log has no levels below that of debugging."""
