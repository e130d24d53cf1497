"""Ray Data: `ds.map_batches` with actors that hold a predictor's model."""

from __future__ import annotations

from typing import Any

from webinfer.scale.predictor import Predictor


class PredictorActor:
    """What each actor runs: it opens the model when it starts, so that the first batch does not wait."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        predictor.open()

    def __call__(self, batch: Any) -> Any:
        return self._predictor(batch)


def predict(dataset: Any, predictor: Predictor, *, concurrency: Any = 1, **options: Any) -> Any:
    """The dataset with results, computed by so many actors, or by a range of numbers of them.

    `options` are those of `Dataset.map_batches`: `num_cpus`, `num_gpus`, `batch_size`, … Ray sets OMP_NUM_THREADS to
    an actor's `num_cpus`, and a session takes as many threads.
    """
    options = {"batch_size": predictor.batch_size, "batch_format": "numpy"} | options
    return dataset.map_batches(
        PredictorActor, fn_constructor_args=(predictor,), concurrency=concurrency, zero_copy_batch=True, **options
    )
