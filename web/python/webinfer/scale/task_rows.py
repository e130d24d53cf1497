"""Tasks on rows: what a predictor of a task opens, and how that runs."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webinfer.errors import InputError
from webinfer.host import wait_here
from webinfer.models.registry import MODELS
from webinfer.pipelines.results import Results
from webinfer.scale.columns import ITEM, optional
from webinfer.scale.pool import Row, Runner, check_unopened
from webinfer.scale.rows import picture_source
from webinfer.session.waiting import run_sync
from webinfer.tasks import GIVEN_MODEL_TASKS, TASKS, pipeline
from webinfer.tasks.base import Task
from webinfer.tasks.names import task_name
from webinfer.tasks.task_pipeline import Pipeline

RESULTS = "results"  # the column of what a task found


def task_source(model: Any, task: str | None, options: Mapping[str, Any]) -> TaskSource | None:
    """The task that is meant: an open one, `task` with this model, or the one of this name; None for a model.

    Raises:  InputError
    """
    if isinstance(model, Task):
        check_unopened(model, task, options)
        if model.recipe is None:
            raise InputError(f"the task {model.name!r} was not created by `create`, so it cannot be opened elsewhere")
        return TaskSource(_Created(model.recipe), model.name, model)
    if isinstance(model, Pipeline):
        check_unopened(model, task, options)
        return TaskSource(model.opener, model.name)
    if task is not None:
        return TaskSource(pipeline(task, model, **options).opener, task)
    if (named := _task_named(model)) is not None:
        return TaskSource(pipeline(named, None, **options).opener, named)
    return None


def _task_named(model: Any) -> str | None:
    """The task of this name; None for models: known ones, and files that are there."""
    if not isinstance(model, str) or model in MODELS or os.path.exists(model) or "://" in model:
        return None
    try:
        return task_name(model, (*TASKS, *GIVEN_MODEL_TASKS))
    except InputError:
        return None


class _Created:
    """Creates a task as another one was; pickled as that is."""

    def __init__(self, recipe: Any) -> None:
        self._recipe = recipe.sealed()

    def __call__(self) -> Any:
        return self._recipe.kind.create(*self._recipe.given, **self._recipe.options)


class TaskSource:
    """A task, by what creates it."""

    is_local = True

    def __init__(self, create: Callable[..., Any], name: str, given: Task[Any] | None = None) -> None:
        self._create, self.name, self._given = create, name, given

    def identity(self) -> Any:
        """What creates it."""
        return self._create

    def open(self, number: int, pixels: tuple[float, float], run_options: Mapping[str, Any]) -> Runner:
        """The task that was given, or one like it."""
        task = self._given if number == 0 and self._given is not None else run_sync(_awaited(self._create()))
        return TaskRunner(task, run_options)


async def _awaited(work: Any) -> Any:
    return await work


class TaskRunner:
    """A task on rows: one a run; what it finds is one column of JSON."""

    def __init__(self, task: Task[Any], options: Mapping[str, Any]) -> None:
        self._task, self._options = task, dict(options)

    @property
    def outputs(self) -> Sequence[str]:
        """One: what was found."""
        return (RESULTS,)

    def columns(self, names: Sequence[str], wanted: Mapping[str, str] | str | None) -> dict[str, str]:
        """The one column that is read."""
        if isinstance(wanted, Mapping):
            wanted = next(iter(wanted.values()), None)
        found = wanted or (names[0] if len(names) == 1 else None)
        if found is None or found not in names:
            raise InputError(
                f"{self._task.name} takes a {self._task.takes}, the batch has the columns {', '.join(names)}; "
                f"say which one with columns='name', not {wanted!r}"
            )
        return {ITEM: found}

    def prepared(self, values: Mapping[str, Any]) -> Any:
        """The source: a picture is decoded here, beside inference."""
        value = picture_source(values[ITEM])
        if value is None:
            raise InputError(f"{self._task.name} has no {self._task.takes} in this row")
        if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:  # a text of NumPy
            value = value.item()
        if self._task.takes != "picture" or not isinstance(value, str | bytes):
            return value
        return _decoded(value)

    def size_class(self, row: Any) -> Any:
        """None: a run has one row."""
        return None

    def run(self, rows: Sequence[Any]) -> list[Row]:
        """What the task finds, as the JSON of its results alone."""
        found = [wait_here(self._task(row, **self._options)) for row in rows]
        return [{RESULTS: json.dumps(_plain(one), ensure_ascii=False)} for one in found]

    def close(self) -> None:
        """Frees the task."""
        self._task.close()


def _plain(found: Any) -> Any:
    return found.to_dict()["results"] if isinstance(found, Results) else [_plain(one) for one in found]


def _decoded(value: Any) -> Any:
    """An image of Pillow that is in memory; where Pillow is not there, or cannot, the task reads it and says why."""
    try:
        image = optional("PIL.Image", "decoding").open(io.BytesIO(value) if isinstance(value, bytes) else value)
        image.load()
    except (InputError, OSError, ValueError, SyntaxError):
        return value
    return image
