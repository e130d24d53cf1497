"""What all tasks share: what goes in, what they find, how results are shown; and for pictures the way between the two.

A task is one file: a class below `Task` that names itself, says what it takes, runs on it, and says how results are
shown (`ResultSchema`). One on pictures is a class below `PictureTask`: it says what its model wants to see
(`InputSpec`) and how outputs become results (`decode`).
"""

from __future__ import annotations

import asyncio
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, ClassVar, Generic, Self, TypeVar

from webinfer.backends.base import GpuExecutor
from webinfer.closing import Closing
from webinfer.dtypes import DType
from webinfer.errors import InputError, IntegrityError
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.registry import known_model
from webinfer.session.loading import fetched
from webinfer.session.loop_lock import LoopLock, LoopLocked, one_loop_at_a_time
from webinfer.session.pickling import OpenModels, absolute, check_content, key_of, portable_options
from webinfer.session.session import OPEN, Session
from webinfer.tasks.crop import Crop, InputSpec, Region
from webinfer.tasks.image import Picture
from webinfer.tasks.picture_input import PictureFeeder
from webinfer.tensor import Tensor

Found = TypeVar("Found")
Keypoint = tuple[float, float]  # x, y
Size = tuple[int, int]  # width and height of an image, pixels
ANSWERS = "webinfer.pipelines"  # of a room above: imported at the first call
NO_SIZE = (1, 1)  # of results that came of no image


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels of the image; it may reach past the image's edge."""

    left: float
    top: float
    width: float
    height: float

    def normalized(self, size: Size) -> Box:
        """The box relative to an image of this width and height: 0..1 inside the image."""
        width, height = size
        return Box(self.left / width, self.top / height, self.width / width, self.height / height)


class Thing:
    """What results that have a place in an image share: their dataclasses have `box`, `id` and `image_size`.

    `id` is that of a thing in a video, the same from frame to frame (`tasks.tracking`); None in a picture. `image_size`
    are width and height of the image in pixels.
    """

    __slots__ = ()
    box: Any
    id: Any
    image_size: Any

    @property
    def normalized_box(self) -> Box:
        """The box in parts of the image's width and height, as MediaPipe's relative bounding boxes are."""
        box: Box = self.box
        return box.normalized(self.image_size)


class PixelMap:
    """What masks share: their dataclasses have `width`, `height` and `values`."""

    __slots__ = ()
    width: Any
    height: Any
    values: Any

    def array(self, name: str = "values") -> Any:
        """A field of the mask as a NumPy array [height, width] over the same memory; NumPy must be installed."""
        found: memoryview = getattr(self, name)
        dtype = DType.FLOAT32 if found.format == "f" else DType.UINT8
        return Tensor(found, (self.height, self.width), dtype).numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.array()
        return array.astype(dtype) if dtype is not None and array.dtype != dtype else array.copy() if copy else array


def placed(found: Any, size: Size) -> Any:
    """Something found, which knows the size of its image if it is a thing with a place in it."""
    return replace(found, image_size=size) if isinstance(found, Thing) else found  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class Detection:
    """One detection in coordinates of the model's input, 0..1: box corners, score, keypoints."""

    left: float
    top: float
    right: float
    bottom: float
    score: float
    keypoints: tuple[Keypoint, ...]

    def box(self, crop: Crop) -> Box:
        """The box in pixels of the image that was cropped: the upright one around it where the crop is turned."""
        region = crop.region
        cos, sin = abs(math.cos(region.rotation)), abs(math.sin(region.rotation))
        across, down = (self.right - self.left) * region.width, (self.bottom - self.top) * region.height
        width, height = cos * across + sin * down, sin * across + cos * down
        x, y = crop.to_image((self.left + self.right) / 2, (self.top + self.bottom) / 2)
        return Box(x - width / 2, y - height / 2, width, height)


@dataclass(frozen=True, slots=True)
class ResultField:
    """A field of each thing found: its name, its unit, and its kind, which says how it is shown.

    Kinds are "box", "number", "text", "label" (a model's name of a class), "points" (places by name), "landmarks"
    (`tasks.landmarks.Landmarks`) and "mask".
    """

    name: str
    kind: str
    unit: str
    lines: tuple[tuple[int, ...], ...] = ()  # of landmarks: chains of indices that are drawn as lines
    names: tuple[str, ...] = ()  # of a mask of numbers: what 1, 2, … stand for


@dataclass(frozen=True, slots=True)
class ResultSchema:
    """How a page shows what a task found: web/static/results/<kind>.js draws it.

    `name` is the field of the page's machine-readable result and the id of its list.
    """

    kind: str
    name: str
    title: str  # before the number of things found
    label: str  # of each thing, before its number
    fields: tuple[ResultField, ...]


class Task(Closing, LoopLocked, ABC, Generic[Found]):
    """Something in, a list of what is in it out. Subclasses declare `name`, `takes` and `result`, and implement `run`.

    `times` has the milliseconds of the last run: prepare_ms, infer_ms, decode_ms.
    """

    name: ClassVar[str]  # by which pages and `models.registry` know the task
    takes: ClassVar[str]  # what `run` is given: "picture", "audio", "text" or "bytes"
    result: ClassVar[ResultSchema]
    reads_several: ClassVar[bool] = False  # whether a list of texts is one run
    extension: ClassVar[str] = ""  # of the plans of its models (session.plan_cache)

    recipe: TaskRecipe | None = None  # what it was created from

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        one_loop_at_a_time(cls)
        if isinstance(create := cls.__dict__.get("create"), classmethod):
            cls.create = classmethod(_with_recipe(create.__func__))  # type: ignore[method-assign, assignment]

    def __init__(self, session: Session) -> None:
        OPEN.add(self)
        self.session, self.loop_lock = session, LoopLock()
        self.times = {"prepare_ms": 0.0, "infer_ms": 0.0, "decode_ms": 0.0}

    @classmethod
    @abstractmethod
    async def create(
        cls, model: Any, *, backend: str | Sequence[str] = "auto", progress: Progress | None = None
    ) -> Self:
        """The task with a model, ready: its first run takes as long as the next."""

    @abstractmethod
    async def run(self, given: Any, /) -> list[Found]:
        """What is found in what is given, of the kind that the task `takes`."""

    async def __call__(self, source: Any, /, **options: Any) -> Any:
        """`Results` of a path, an address, bytes, an image or an array; of a list, a folder or a pattern a `Batch`.

        They print, plot, save and convert themselves (webinfer.pipelines.results). `options` are those of `run`, and
        `progress`, which is called with a `ProgressEvent` after each of several; a terminal or a notebook shows a bar.

        Raises:  InputError if the source names nothing that the task takes; what `run` raises
        """
        return await import_module(ANSWERS).answered(self, source, options)

    def stream(self, source: Any, /, **options: Any) -> AsyncIterator[Any]:
        """`Results` of each frame of a video file or camera, each picture of an iterable, or each of several sources.

        A camera is its number, or a text such as "camera:0".

        Raises:  as a call; InputError if nothing that reads videos or cameras is installed
        """
        found: AsyncIterator[Any] = import_module(ANSWERS).streamed(self, source, options)
        return found

    @property
    def beside(self) -> dict[str, Any]:
        """What the last run told beside what it found, by name: a page draws it with the results."""
        return {}

    def _took(self, start: float, prepared: float, inferred: float) -> dict[str, float]:
        """Sets `times` from the clock at the start of a run, after what comes before the model, and after it."""
        end = self.session.host.now_ms()
        self.times = {"prepare_ms": prepared - start, "infer_ms": inferred - prepared, "decode_ms": end - inferred}
        return self.times

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        self.session.close()

    def __reduce__(self) -> Any:
        """What it was created from, which other processes create once."""
        if self.recipe is None:
            return super().__reduce__()
        return reopened, (self.recipe.sealed(), self.session.recipe.sha256() if self.session.recipe else "")


@dataclass(frozen=True, slots=True)
class TaskRecipe:
    """What a task was created from: its class, and the arguments of `create`."""

    kind: type[Task[Any]]
    given: tuple[Any, ...]
    options: Mapping[str, Any]

    def sealed(self) -> TaskRecipe:
        """The same for another process of this machine.

        Raises:  InputError if it has a host of its own
        """
        return TaskRecipe(self.kind, tuple(map(absolute, self.given)), portable_options(self.options))


def _with_recipe(create: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A task's `create`, which notes its arguments in the task, so that it can be pickled."""

    @functools.wraps(create)
    async def created(cls: type[Task[Any]], *given: Any, **options: Any) -> Any:
        task = await create(cls, *given, **options)
        task.recipe = TaskRecipe(cls, given, options)
        return task

    return created


def reopened(recipe: TaskRecipe, sha256: str) -> Task[Any]:
    """The task of a recipe that was unpickled: one for all pickles of its kind in this process.

    Raises:  IntegrityError if its model has another content than `sha256`; what its `create` raises
    """

    async def opening() -> Task[Any]:
        task = await recipe.kind.create(*recipe.given, **recipe.options)
        try:
            if sha256 and task.session.recipe is not None:
                check_content(task.session.name, task.session.recipe.sha256(), sha256)
        except IntegrityError:
            task.close()
            raise
        return task

    def open_one() -> Task[Any]:
        task: Task[Any] = current().wait(opening())
        return task

    return UNPICKLED.get(sha256 + key_of(recipe), open_one)


UNPICKLED: OpenModels[Task[Any]] = OpenModels(lambda task: task.session.closed)


class PictureTask(Task[Found]):
    """A picture in, a list of what is in it out. Subclasses declare `name` and `result`, and implement `decode`."""

    takes = "picture"

    def __init__(self, session: Session, spec: InputSpec, feeder: PictureFeeder) -> None:
        super().__init__(session)
        self.spec, self._feeder = spec, feeder

    @property
    def straight(self) -> bool:
        """Whether pictures go to the GPU as they are where that is possible, not through memory."""
        return self._feeder.straight

    @straight.setter
    def straight(self, value: bool) -> None:
        self._feeder.straight = value

    async def read(self, image: Any) -> Any:
        """The image as it is run on, for who runs on several of its parts: it is read once.

        Raises:  InputError if it is none or has no pixels
        """
        return await self._feeder.read(image, self.spec)

    def more_inputs(self, crop: Crop) -> Mapping[str, Any]:
        """The model's inputs besides the picture, for a crop of it."""
        return {}

    @abstractmethod
    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[Found]:
        """What the model's outputs mean, in pixels of the image."""

    async def run(self, image: Any, region: Region | None = None) -> list[Found]:
        """What is found in a region of an image; None: in all of it.

        `image` is anything `webinfer.tasks.image.read_image` takes: a Pillow image, an H x W x 3 or
        H x W x 4 array of uint8, or in the browser ImageData, ImageBitmap, VideoFrame or a canvas.

        Raises:  InputError if it is none of these or has no pixels; what `Session.run` raises
        """
        return (await self._looked(image, region))[0]

    async def _looked(self, image: Any, region: Region | None) -> tuple[list[Found], dict[str, float]]:
        """As `run`, and its times."""
        clock = self.session.host.now_ms
        start = clock()
        outputs, crop, prepare_ms = await self._feeder.run(image, region, self.spec, self.more_inputs)
        inferred = clock()
        found = [placed(one, crop.image_size) for one in await self.decode(outputs, crop)]
        return found, self._took(start, start + prepare_ms, inferred)

    async def together(self, picture: Any, *runs: Callable[[], Awaitable[Any]]) -> list[Any]:
        """What runs on parts of a picture return that was `read`; on a GPU they are begun together.

        One after the other where a processor computes, and where pixels come by way of memory.
        """
        if len(runs) < 2 or isinstance(picture, Picture) or not isinstance(self.session.executor, GpuExecutor):
            return [await begin() for begin in runs]
        ended = await asyncio.gather(*(begin() for begin in runs), return_exceptions=True)
        for one in ended:
            if isinstance(one, BaseException):
                raise one
        return ended

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        super().close()
        self._feeder.close()


async def files_beside(model: Any, host: Host, needed: str) -> list[bytes]:
    """The files that a task reads beside a known model, such as its labels.

    Raises:  InputError that says what is `needed` beside any other model; IntegrityError; what `locate_model` raises
    """
    known = known_model(model)
    if known is None:
        raise InputError(f"this model is not one that webinfer knows; give {needed} with it")
    found = []
    for file, sha256 in known.beside:
        data, _ = await fetched(file, host.asset(f"models/{file}"), (sha256,), host)
        found.append(bytes(data))
    return found
