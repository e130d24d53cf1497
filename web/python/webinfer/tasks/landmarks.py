"""Landmarks: what tasks share that find things with one model and their points with a second.

The second model's points become pixels of the picture within its plan: the crop's map is an input of it.
"""

from __future__ import annotations

import array
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self, TypeVar, overload

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import PictureInput
from webinfer.session.loading import load
from webinfer.session.options import threshold, whole_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import Box, PictureTask, ResultField, ResultSchema, Size, Thing
from webinfer.tasks.crop import Border, Crop, InputSpec, Region
from webinfer.tasks.finder import RegionFinder
from webinfer.tasks.picture_input import PictureFeeder, closed_on_error
from webinfer.tasks.regions import RegionRule, overlap
from webinfer.tasks.smoothing import ON_SCREEN, Cutoff, Smoothing, SmoothTrack
from webinfer.tasks.ssd import SsdFamily
from webinfer.tasks.tracking import Tracker, frame_time
from webinfer.tensor import Tensor

Found = TypeVar("Found")
MOST = 16  # things in one picture that may be asked for
SAME = 0.5  # overlap from which two regions show one thing
TWICE = 0.75  # overlap from which two boxes of landmarks are those of one thing
LANDMARKS, SCORE, WORLD = "landmarks", "score", "world"
TURN, SHIFT, ROTATION = "turn", "shift", "rotation"


@dataclass(frozen=True, slots=True)
class Landmark:
    """One point: x and y in pixels of the image, z in pixels towards the back, or all three in metres.

    `visibility` and `presence` are 0..1, and 1 if the model does not provide them.
    """

    x: float
    y: float
    z: float
    visibility: float = 1.0
    presence: float = 1.0


class Landmarks(Sequence[Landmark]):
    """Points in the model's order; `xyz` are their numbers, three a point, `confidences` two or none."""

    def __init__(self, xyz: Sequence[float], confidences: Sequence[float] = ()) -> None:
        self.xyz = floats(xyz)
        self.confidences = confidences  # visibility and presence of each, or none

    def __len__(self) -> int:
        return len(self.xyz) // 3

    @overload
    def __getitem__(self, index: int) -> Landmark: ...
    @overload
    def __getitem__(self, index: slice) -> list[Landmark]: ...
    def __getitem__(self, index: int | slice) -> Landmark | list[Landmark]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        return Landmark(*self.xyz[3 * i : 3 * i + 3], *self.confidences[2 * i : 2 * i + 2])

    def __iter__(self) -> Iterator[Landmark]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} landmarks>"

    @property
    def box(self) -> Box:
        """The axis-aligned box around them."""
        across, down = self.xyz[0::3], self.xyz[1::3]
        left, top = min(across), min(down)
        return Box(left, top, max(across) - left, max(down) - top)

    def normalized(self, size: Size) -> Landmarks:
        """The landmarks relative to an image of this width and height; z relative to the width."""
        (width, height), xyz = size, array.array("f", self.xyz)
        for axis, side in enumerate((width, height, width)):
            xyz[axis::3] = array.array("f", (n / side for n in self.xyz[axis::3]))
        return Landmarks(xyz, self.confidences)

    def points(self, indices: Sequence[int] | None = None) -> list[tuple[float, float]]:
        """x and y of these landmarks, of all if none are named."""
        across, down = self.xyz[0::3], self.xyz[1::3]
        return list(zip(across, down, strict=True)) if indices is None else [(across[i], down[i]) for i in indices]


class LandmarkThing(Thing):
    """What results with landmarks share."""

    __slots__ = ()
    landmarks: Any

    @property
    def normalized_landmarks(self) -> Landmarks:
        """The landmarks in parts of the image's width and height, z in parts of its width, as MediaPipe's are."""
        landmarks: Landmarks = self.landmarks
        return landmarks.normalized(self.image_size)


@dataclass(frozen=True, slots=True)
class LandmarkModel:
    """Models of one kind: the picture they want, and how their outputs become landmarks.

    `sizes` are those of the outputs in elements; `read` puts nodes behind them and returns LANDMARKS [points, 3] in
    pixels of the input and SCORE, a probability, beside more outputs by name.
    """

    title: str
    input: PictureInput
    sizes: tuple[int, ...]
    read: Callable[[GraphBuilder, Sequence[Value]], Mapping[str, Value]]
    extension: str = ""  # of the name under which plans are stored, where `read` is not the only one for the model


def with_landmarks(model: Any, kinds: Sequence[LandmarkModel]) -> WithPostprocessing:
    """The model with landmarks in pixels of the picture as outputs, and with the crop's map as more inputs."""

    def extend(graph: Graph) -> None:
        sizes = tuple(value.type.size for value in graph.outputs)
        shape = graph.inputs[0].type.shape
        kind = next((k for k in kinds if k.sizes == sizes and shape == _shape(k.input)), None)
        if kind is None:
            known = "; ".join(f"input {_shape(k.input)}, outputs of {k.sizes} numbers" for k in kinds)
            raise ModelFormatError(
                f"{graph.name!r} is not a {kinds[0].title}: input {shape}, outputs of {sizes} numbers; "
                f"known are {known}"
            )
        builder = GraphBuilder(graph.name)
        found = dict(kind.read(builder, graph.outputs))
        turn, shift = builder.input(TURN, (3, 3)), builder.input(SHIFT, (1, 3))
        found[LANDMARKS] = builder.node("add", builder.node("matmul", found[LANDMARKS], turn), shift)
        for name, value in found.items():
            builder.output(value, name)
        builder.extend(graph)

    return WithPostprocessing(model, LANDMARKS + kinds[0].extension, extend)


def rotated(builder: GraphBuilder, world: Value, points: int) -> Value:
    """Points in metres [points, 3], turned as the crop was."""
    rotation = builder.input(ROTATION, (3, 3))
    turned: Value = builder.node("matmul", builder.node("reshape", world, shape=(points, 3)), rotation)
    return turned


def crop_map(crop: Crop) -> dict[str, array.array[float]]:
    """What models take of a crop: TURN and SHIFT bring a point of the model's input to the picture, both in pixels;
    ROTATION turns a point in metres as the crop is turned."""
    r = crop.region
    cos, sin = math.cos(r.rotation), math.sin(r.rotation)
    across, down = r.width / crop.width, r.height / crop.height
    x, y = crop.to_image(0.0, 0.0)
    maps = {
        TURN: (cos * across, sin * across, 0, -sin * down, cos * down, 0, 0, 0, across),
        SHIFT: (x, y, 0),
        ROTATION: (cos, sin, 0, -sin, cos, 0, 0, 0, 1),
    }
    return {name: array.array("f", numbers) for name, numbers in maps.items()}


def crop_inputs(session: Session, crop: Crop) -> dict[str, Any]:
    """What a model whose first input is the picture asks of the crop's map."""
    maps = crop_map(crop)
    return {info.name: maps[info.name] for info in session.inputs[1:]}


def landmarks_schema(
    name: str, title: str, label: str, *more: ResultField, lines: Sequence[Sequence[int]]
) -> ResultSchema:
    """How things with landmarks are shown; `more` are fields besides box, score and landmarks."""
    fields = ResultField("box", "box", "px"), ResultField("score", "number", "0..1")
    points = ResultField("landmarks", "landmarks", "px", tuple(map(tuple, lines)))
    return ResultSchema("landmarks", name, title, label, (*fields, *more, points))


def floats(numbers: Sequence[float]) -> array.array[float]:
    """A copy of numbers as float32; of a view of float32 it is made at once."""
    if isinstance(numbers, memoryview) and numbers.format == "f":
        return array.array("f", numbers.tobytes())
    return array.array("f", numbers)


def confidences(
    detection: float | None, presence: float | None, detection_too: float | None, tracking: float | None
) -> tuple[float, float]:
    """The minimum scores of detections and of landmarks, each given by one of its names.

    Raises:  InputError for one out of range, or given twice
    """
    found = {"min_detection_score": detection, "min_detection_confidence": detection_too}
    return threshold(found, 0.5), threshold({"min_presence_score": presence, "min_tracking_confidence": tracking}, 0.5)


def _same(one: Any, other: Any, least: float = TWICE) -> bool:
    """Whether two things that were found are one: their boxes overlap by that much."""
    first, second = (
        Region(b.left + b.width / 2, b.top + b.height / 2, b.width, b.height) for b in (one.box, other.box)
    )
    return overlap(first, second) >= least


def _shape(picture: PictureInput) -> tuple[int, ...]:
    return (1, picture.height, picture.width, 3)


class LandmarkTask(PictureTask[Found]):
    """Finds regions with one model, landmarks in each with another."""

    family: ClassVar[SsdFamily]
    rule: ClassVar[RegionRule]
    kinds: ClassVar[tuple[LandmarkModel, ...]]
    extension = LANDMARKS
    border: ClassVar[Border] = Border.EDGE
    default_model: ClassVar[str]
    default_detector: ClassVar[str]
    smooths: ClassVar[Mapping[str, Cutoff]] = {"landmarks": ON_SCREEN}  # fields of what is found
    steady: ClassVar[bool] = False  # whether things are followed by what is smooth

    _finder: RegionFinder | None = None
    _frame: tuple[float, Size | None]  # time and size of the last frame of a video

    def __init__(self, session: Session, spec: InputSpec, feeder: PictureFeeder) -> None:
        super().__init__(session, spec, feeder)
        self._tracked = list[tuple[Region, SmoothTrack]]()
        self._smoothing, self.smooth = Smoothing(session.host, self.smooths), True
        self._tracker, self._frame = Tracker(), (-math.inf, None)
        self.most, self.min_score = 1, 0.5

    @classmethod
    async def create(
        cls,
        model: Any = None,
        *,
        detector: Any = None,
        backend: str | Sequence[str] = "auto",
        most: int = 1,
        min_detection_score: float | None = None,
        min_presence_score: float | None = None,
        min_detection_confidence: float | None = None,
        min_tracking_confidence: float | None = None,
        smooth: bool = True,
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> Self:
        """A task that is ready. `model` and `detector` are known names, bytes, paths or URLs.

        `most` is how many things are looked for, best first; a thing whose score is less than `min_detection_score`
        is not looked at, one whose landmarks score less than `min_presence_score` is not told. `smooth` takes the
        trembling out of videos, not out of pictures. Both thresholds are 0.5 where they are not given;
        `min_detection_confidence` and `min_tracking_confidence` are MediaPipe's names for them.

        Raises:  InputError for an option out of range; what `webinfer.load` raises; ModelFormatError if a model is not
                 of the task's kind
        """
        most = whole_number("most", most, 1, MOST)
        least_found, least_told = confidences(
            min_detection_score, min_presence_score, min_detection_confidence, min_tracking_confidence
        )
        host = host or current()
        task = await cls.opened(model, backend=backend, progress=progress, host=host)
        with closed_on_error(task.session):
            found = cls.default_detector if detector is None else detector
            task._finder = finder = await RegionFinder.create(
                found, cls.family, cls.rule, backend=task.session.same_backend, progress=progress, host=host,
                beside=task.session,
            )  # fmt: skip
        task.most, task.min_score, finder.min_score, task.smooth = most, least_told, least_found, bool(smooth)
        return task

    @classmethod
    async def opened(
        cls, model: Any = None, *, backend: str | Sequence[str], progress: Progress | None, host: Host,
        beside: Session | None = None,
    ) -> Self:  # fmt: skip
        """A task without a detector, which runs on regions that the caller provides.

        Its plan may lie in the memory of the session `beside`.

        Raises:  what `webinfer.load` raises; ModelFormatError if the model is not of the task's kind
        """
        source = replace(
            with_landmarks(cls.default_model if model is None else model, cls.kinds), shared_memory_with=beside
        )
        session = await load(source, backend=backend, progress=progress, host=host)
        with closed_on_error(session):
            size = session.inputs[0].shape
            kind = next(k for k in cls.kinds if _shape(k.input) == size)
            spec, feeder = InputSpec.of_mediapipe(kind.input, border=cls.border), await PictureFeeder.create(session)
            await session.warmup()
        return cls(session, spec, feeder)

    def more_inputs(self, crop: Crop) -> Mapping[str, Any]:
        """What the model asks of the crop's map."""
        return crop_inputs(self.session, crop)

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[Found]:
        """The thing in the model's outputs, if there is one."""
        score = float(outputs[SCORE].flat()[0])
        return [self.thing(outputs, score)] if score >= self.min_score else []

    @abstractmethod
    def thing(self, outputs: Mapping[str, Tensor], score: float) -> Found:
        """What the model's outputs say of a thing that is there with this probability."""

    @abstractmethod
    def following(self, found: Found) -> Region:
        """Where the next frame is looked at for a thing of this one."""

    def extent(self, found: Any) -> float:
        """How large a thing is, in pixels: movements are fast or slow by that."""
        return (found.box.width + found.box.height) / 2  # type: ignore[no-any-return]

    async def run(self, image: Any, region: Region | None = None) -> list[Found]:
        """As `detect`; in a region of the image the detector is not asked."""
        picture = await self.read(image)
        regions, detector_ms = ([region], 0.0) if region else await self._searched(picture)
        each = await self._landmarks(picture, regions[: self.most])
        self.times["infer_ms"] += detector_ms
        return [one for found in each for one in found]

    async def detect(self, image: Any) -> list[Found]:
        """What is found in an image, best first. It has nothing to do with the image before.

        `image` is anything `webinfer.tasks.image.read_image` takes.

        Raises:  InputError if it is none of these or has no pixels
        """
        return await self.run(image)

    async def detect_for_video(self, frame: Any, time_ms: float | None = None) -> list[Found]:
        """What is found in the next frame of a video, which shows this time in milliseconds; None: now.

        A thing is followed without the detector while it is there, and keeps its `id`. Its landmarks are smooth, if the
        task makes them so. Where time goes back or the frames' size changes, all begins anew with this frame.

        Raises:  as `detect`; InputError if the time is not a number
        """
        picture, now = await self.read(frame), frame_time(time_ms, self.session.host.now_ms())
        self._begin_frame(now, self._feeder.size(picture, self.spec))
        each = await self._followed(picture, self._tracked[: self.most])
        found, self._tracked = list[Found](), []
        for one, track in each:
            smooth = await track.smoothed(one, now, self.extent(one)) if self.smooth else one
            self._tracked.append((self.following(smooth if self.steady else one), track))
            found.append(smooth)
        ids = self._tracker.ids([one.box for one in found], now)  # type: ignore[attr-defined]
        return [replace(one, id=number) for one, number in zip(found, ids, strict=True)]  # type: ignore[type-var]

    def _begin_frame(self, now: float, size: Size | None) -> None:
        """Forgets what was followed if this frame cannot come behind the last."""
        last, last_size = self._frame
        if last_size is not None and size != last_size:
            self.reset()
        elif now < last:
            self._tracked = []
        self._frame = now, size

    async def _followed(
        self, picture: Any, tracked: Sequence[tuple[Region, SmoothTrack]]
    ) -> list[tuple[Found, SmoothTrack]]:
        """The things of a frame: those that are tracked, and new ones where there may be more or one is lost."""
        known = partial(self._landmarks, picture, [region for region, _ in tracked])
        fresh: list[Region] | None = None
        if len(tracked) < self.most:
            each, (fresh, detector_ms) = await self.together(picture, known, partial(self._searched, picture))
        else:
            each, detector_ms = await known(), 0.0
        times = self.times
        alive = [(one, *row) for found, row in zip(each, tracked, strict=True) for one in found]
        alive = [row for at, row in enumerate(alive) if not any(_same(row[0], other[0]) for other in alive[:at])]
        if fresh is None and len(alive) < self.most:
            fresh, detector_ms = await self._searched(picture)
        new = [region for region in fresh or [] if all(overlap(region, old) < SAME for _, old, _ in alive)]
        new = new[: self.most - len(alive)]
        told = [(one, track) for one, _, track in alive]
        for found in await self._landmarks(picture, new):
            fresh_ones = [one for one in found if not any(_same(one, other, SAME) for other, _ in told)]
            told += [(one, SmoothTrack(self._smoothing)) for one in fresh_ones]
        self.times = {name: ms + self.times[name] for name, ms in times.items()}
        self.times["infer_ms"] += detector_ms
        return told

    def reset(self) -> None:
        """Forgets the things of the frame before."""
        self._tracked, self._frame = [], (-math.inf, None)
        self._tracker.reset()

    async def _searched(self, picture: Any) -> tuple[list[Region], float]:
        """Where the detector sees things, and the milliseconds that it took."""
        start = self.session.host.now_ms()
        regions = await self._finder.regions(picture) if self._finder else []
        return regions, self.session.host.now_ms() - start

    async def _landmarks(self, picture: Any, regions: Sequence[Region]) -> list[list[Found]]:
        """What is found in each region. The time is that of all: on a GPU they are looked at side by side."""
        start = self.session.host.now_ms()
        looked = await self.together(picture, *(partial(self._looked, picture, region) for region in regions))
        spent = {name: sum(times[name] for _, times in looked) for name in ("prepare_ms", "decode_ms")}
        inferred = self.session.host.now_ms() - start - sum(spent.values())
        self.times = {**spent, "infer_ms": max(0.0, inferred) if regions else 0.0}
        return [found for found, _ in looked]

    def close(self) -> None:
        """Frees both models and the kernels' memory; a second call does nothing."""
        super().close()
        self._smoothing.close()
        if self._finder:
            self._finder.close()
