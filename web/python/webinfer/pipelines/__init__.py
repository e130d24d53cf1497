"""Tasks on files: what `pipeline(…)("photo.jpg")` reads, and results that print, plot, save and convert themselves.

`answers` runs a task on one or many sources, `sources` finds and reads these, `results` is what comes back, `drawing`
draws each kind of result, `names` has the names of tasks elsewhere. Loaded at the first call.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webinfer.pipelines.answers import answered, streamed
    from webinfer.pipelines.results import Batch, Results

__all__ = ["Batch", "Results", "answered", "streamed"]
_HOMES = {"Batch": "results", "Results": "results", "answered": "answers", "streamed": "answers"}


def __getattr__(name: str) -> Any:
    """Public names are imported on first use: who reads rows of numbers does without tasks."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"webinfer.pipelines.{_HOMES[name]}"), name)
