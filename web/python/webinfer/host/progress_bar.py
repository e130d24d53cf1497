"""Progress as people know it: tqdm's bar where tqdm is installed, else a line of its form on standard error.

Downloads, folders and batches show one by themselves in a terminal and in a notebook, once they take a moment.
WEBINFER_PROGRESS=off hides them, =on shows them elsewhere too.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from webinfer.closing import Closing
from webinfer.host.interface import Progress, ProgressEvent

WAIT_S = 0.5  # before a bar is shown by itself: what takes less needs none
SHOWN_S = 0.1  # between two states of the line
BAR = 10  # characters
BLOCKS = " ▏▎▍▌▋▊▉█"  # eighths of a character
UNITS = ("", "k", "M", "G", "T")


class ProgressBar(Closing):
    """A `progress` that draws what it is told; a bar for each stage that follows another one."""

    def __init__(self, name: str = "", wait_s: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        """`name` stands before the bar, in place of the stage; nothing is drawn in the first `wait_s` seconds."""
        self._name, self._wait_s, self._clock = name, wait_s, clock
        self._stage, self._begin, self._from, self._bar = "", clock(), 0, None
        self._done = True

    def __call__(self, event: ProgressEvent) -> None:
        if event.stage != self._stage or (self._done and event.done < event.total):
            self.close()
            self._stage, self._begin, self._from, self._done = event.stage, self._clock(), event.done, False
        if self._done:
            return
        if self._bar is None and self._clock() - self._begin >= self._wait_s:
            self._bar = _opened(self._name or event.stage, event, self._from, self._begin, self._clock)
        if self._bar is not None:
            self._bar.total = event.total or None
            self._bar.update(event.done - self._bar.n)
        self._done = bool(event.total) and event.done >= event.total
        if self._done:
            self.close()

    def close(self) -> None:
        """Ends the line of the bar, which stays."""
        if self._bar is not None:
            self._bar.refresh()
            self._bar.close()
        self._bar = None


def is_shown() -> bool:
    """Whether progress is drawn: in a terminal or a notebook, unless WEBINFER_PROGRESS says otherwise."""
    said = os.environ.get("WEBINFER_PROGRESS", "").lower()
    if said:
        return said not in ("off", "0", "false", "no")
    shell = sys.modules["IPython"].get_ipython() if hasattr(sys.modules.get("IPython"), "get_ipython") else None
    return hasattr(shell, "kernel") or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def shown(progress: Progress | None, name: str, wait_s: float = WAIT_S) -> Iterator[Progress | None]:
    """The caller's `progress`; without one a bar of this name, in a terminal or a notebook."""
    if progress is not None or not is_shown():
        yield progress
        return
    with ProgressBar(name, wait_s) as bar:
        yield bar


def _opened(name: str, event: ProgressEvent, begun: int, begin: float, clock: Callable[[], float]) -> Any:
    """tqdm's bar, or a line like it."""
    options: dict[str, Any] = {"total": event.total or None, "desc": name, "initial": begun}
    options |= {"unit": "B", "unit_scale": True} if event.unit == "bytes" else {"unit": f" {event.unit}"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a notebook lacks ipywidgets: a line of text does
            from tqdm.auto import tqdm

            return tqdm(**options)
    except ImportError:
        return _Line(**options, begin=begin, clock=clock)


class _Line:
    """What webinfer uses of tqdm's bar."""

    def __init__(
        self, total: int | None, desc: str, initial: int, unit: str, begin: float, clock: Callable[[], float],
        unit_scale: bool = False,
    ) -> None:  # fmt: skip
        self.n, self.total, self._initial = initial, total, initial
        self._desc, self._unit, self._scale = desc, unit, unit_scale
        self._begin, self._clock, self._shown, self._wide = begin, clock, -SHOWN_S, 0

    def update(self, n: int) -> None:
        """Counts further, and draws the line anew if that was some time ago."""
        self.n += n
        if self._clock() - self._shown >= SHOWN_S:
            self.refresh()

    def refresh(self) -> None:
        """Draws the line."""
        self._shown = self._clock()
        text = self.text(max(self._shown - self._begin, 1e-9))
        self._wide = max(self._wide, len(text))
        print(f"\r{text:<{self._wide}}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leaves the line as it is."""
        print(file=sys.stderr, flush=True)

    def text(self, seconds: float) -> str:
        """The line after so many seconds."""
        rate = (self.n - self._initial) / seconds
        speed = f"{self._number(rate)}{self._unit}/s" if rate else f"?{self._unit}/s"
        if not self.total:
            return f"{self._desc}: {self._number(self.n)}{self._unit} [{_clock_time(seconds)}, {speed}]"
        part = min(self.n / self.total, 1.0)
        eighths = int(part * BAR * 8)
        bar = BLOCKS[8] * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")
        left = _clock_time((self.total - self.n) / rate) if rate else "?"
        counts = f"{self._number(self.n)}/{self._number(self.total)}"
        return f"{self._desc}: {part:4.0%}|{bar:<{BAR}}| {counts} [{_clock_time(seconds)}<{left}, {speed}]"

    def _number(self, value: float) -> str:
        if not self._scale:
            return f"{value:.2f}" if isinstance(value, float) else str(value)
        step = 0
        while abs(value) >= 999.5 and step + 1 < len(UNITS):
            value, step = value / 1000, step + 1
        digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
        return f"{value:.{digits}f}{UNITS[step]}" if step or isinstance(value, float) else str(value)


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
