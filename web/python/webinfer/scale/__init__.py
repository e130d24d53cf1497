"""Where one machine is not enough: a predictor that others schedule, and batch runs that survive a crash.

`predictor.Predictor` is a callable over batches of rows that can be pickled; `columns` reads and makes the batches that
engines hand around, `rows` says what a model is given for a row, `pool` holds the sessions of a process. `ray_data`,
`dask_frames` and `spark_frames` are one thin adapter each. `batch` is `webinfer batch`: `sources` are its rows, `parts`
its results, `engines` run its parts, `command` is the verb. Nothing here schedules anything itself. NumPy is
needed, all else is optional.
"""

from typing import TYPE_CHECKING

from webinfer.lazy import lazy_names

if TYPE_CHECKING:
    from webinfer.scale.batch import BatchReport, run_batch
    from webinfer.scale.predictor import Predictor

__all__ = ["BatchReport", "Predictor", "run_batch"]
__getattr__ = lazy_names(__name__, {"BatchReport": ".batch", "Predictor": ".predictor", "run_batch": ".batch"})
