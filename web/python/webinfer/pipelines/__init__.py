"""Tasks on files: what `pipeline(…)("photo.jpg")` reads, and results that print, plot, save and convert themselves.

`answers` runs a task on one or many sources, `sources` finds and reads these, `results` is what comes back, `drawing`
draws each kind of result, `names` has the names of tasks elsewhere. Loaded at the first call.
"""

from typing import TYPE_CHECKING

from webinfer.lazy import lazy_names

if TYPE_CHECKING:
    from webinfer.pipelines.answers import answered, streamed
    from webinfer.pipelines.results import Batch, Results

__all__ = ["Batch", "Results", "answered", "streamed"]
# Who reads rows of numbers does without tasks.
__getattr__ = lazy_names(
    __name__, {"Batch": ".results", "Results": ".results", "answered": ".answers", "streamed": ".answers"}
)
