"""Who is in a picture, pixel by pixel, and which of 24 parts of the body each pixel shows, with BodyPix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import Pixels
from webinfer.session.options import real_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import PictureTask, PixelMap, ResultField, ResultSchema
from webinfer.tasks.crop import Crop, InputSpec, Size, sizes
from webinfer.tasks.landmarks import crop_inputs
from webinfer.tasks.last_plan import LastPlan
from webinfer.tasks.multi_pose import POINTS, BodyPose, Poses, bodies_in, output_poses, posenet
from webinfer.tasks.picture_input import PictureFeeder
from webinfer.tasks.pixels import is_picture, opened, picture_size, pixels_of, real, take_pixels
from webinfer.tensor import Tensor

PERSON, PART, WHOSE = "person", "part", "whose"
SEGMENTS = "segments"
PARTS = (
    "left_face", "right_face", "left_upper_arm_front", "left_upper_arm_back", "right_upper_arm_front",
    "right_upper_arm_back", "left_lower_arm_front", "left_lower_arm_back", "right_lower_arm_front",
    "right_lower_arm_back", "left_hand", "right_hand", "torso_front", "torso_back", "left_upper_leg_front",
    "left_upper_leg_back", "right_upper_leg_front", "right_upper_leg_back", "left_lower_leg_front",
    "left_lower_leg_back", "right_lower_leg_front", "right_lower_leg_back", "left_foot", "right_foot",
)  # fmt: skip
FINER = 4  # a cell of the maps a side, where parts and people are told apart
LEAST = 0.2  # score of a body whose pixels are told from others'


@dataclass(frozen=True, slots=True)
class BodyMask(PixelMap):
    """Bodies in a picture, row by row and as large as it.

    `values` are probabilities 0..1 that a pixel shows a person, float32. `parts` are numbers of PARTS plus one, uint8,
    0 for the background. `people` numbers the `bodies` in the same way.
    """

    width: int
    height: int
    values: memoryview
    parts: memoryview
    people: memoryview
    bodies: list[BodyPose]


def with_segments(model: Any, pixels: Pixels) -> WithPostprocessing:
    """The model with pixels of 0..255 and the crop's map as inputs; outputs are bodies, PERSON (logits of the maps'
    cells), PART and WHOSE, numbers from 1 on cells that are FINER a side."""

    def extend(graph: Graph) -> None:
        builder, given = GraphBuilder(graph.name), [v.type.shape for v in graph.inputs]
        outputs = real(builder, graph.outputs) if len(given) == 1 and is_picture(graph.inputs[0].type) else []
        maps = {v.type.shape[3]: v for v in outputs if v.type.rank == 4}
        person, parts = maps.get(1), maps.get(len(PARTS))
        found = _bodies(builder, outputs, picture_size(graph.inputs[0].type)[0]) if person and parts else None
        if person is None or parts is None or found is None:
            raise ModelFormatError(
                f"{graph.name!r} is not BodyPix: inputs {given}, outputs {[v.type.shape for v in graph.outputs]}; "
                "needed are maps of people and of 24 parts, and PoseNet's with long offsets or decoded poses with masks"
            )
        poses, masks = found
        take_pixels(graph, pixels)
        output_poses(builder, poses)
        builder.output(person, PERSON)
        builder.output(_largest(builder, parts), PART)
        cells = builder.node("transpose", masks, perm=(0, 2, 3, 1))  # 1 at the one body whose a cell is
        builder.output(builder.node("mul", _largest(builder, cells), _any(builder, cells)), WHOSE)
        builder.extend(graph)

    return WithPostprocessing(model, f"{SEGMENTS}of{pixels}", extend)


def _bodies(builder: GraphBuilder, outputs: Sequence[Value], height: int) -> tuple[Poses, Value] | None:
    """Bodies and their masks [1, N, h, w]: as a model has decoded them, or of PoseNet's maps and long offsets."""
    decoded = [v for v in outputs if v.type.shape[2:] == (POINTS, 2)]
    if decoded:
        place = outputs.index(decoded[0])
        return Poses(*outputs[place : place + 3]), outputs[place + 4]
    offsets = [v for v in outputs if v.type.shape[3:] == (2 * POINTS,)]
    if len(offsets) != 2:
        return None
    return posenet(builder, [v for v in outputs if v is not offsets[1]], height, LEAST, offsets[1])


def _finer(builder: GraphBuilder, maps: Value) -> Value:
    size = tuple(FINER * (cells - 1) + 1 for cells in maps.type.shape[1:3])
    larger: Value = builder.node("resize_bilinear", maps, size=size, align_corners=True)
    return larger


def _largest(builder: GraphBuilder, maps: Value) -> Value:
    """Which channel is largest, counted from 1. Shapes:  [1, h, w, C] -> [1, FINER * (h - 1) + 1, .., 1]"""
    places = builder.node("arg_max", _finer(builder, maps), axis=3, keep_dims=True)
    numbers: Value = builder.node("add", builder.node("cast", places, dtype="float32"), 1.0)
    return numbers


def _any(builder: GraphBuilder, maps: Value) -> Value:
    """1 where any channel is above 0, else 0."""
    most = builder.node("reduce_max", _finer(builder, maps), axes=(3,), keep_dims=True)
    found: Value = builder.node("cast", builder.node("greater", most, 0.0), dtype="float32")
    return found


class BodySegmenter(PictureTask[BodyMask]):
    """Segments people and the parts of their bodies. Create one with `await BodySegmenter.create(model)`."""

    name = "body-segmentation"
    extension = SEGMENTS
    result = ResultSchema(
        "bodies", "masks", "Masks", "Mask",
        (
            ResultField("values", "mask", "0..1"), ResultField("parts", "mask", "", names=PARTS),
            ResultField("people", "mask", ""),
        ),
    )  # fmt: skip

    def __init__(self, session: Session, spec: InputSpec, feeder: PictureFeeder, threshold: float) -> None:
        super().__init__(session, spec, feeder)
        self._threshold = threshold
        self._scaler = LastPlan(session.host, self._larger)

    @classmethod
    async def create(
        cls,
        model: Any = "bodypix_075_512_512_quant_decoder",
        *,
        threshold: float = 0.7,
        pixels: Pixels | None = None,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> BodySegmenter:
        """Creates a segmenter. `model` is a known name, bytes, a path or a URL of a BodyPix.

        A pixel shows a person from the probability `threshold` on. `pixels` say what a float model wants for a
        picture's colours; None: as a known model does, else -1..1.

        Raises:  InputError if the threshold is not in 0..1; what `webinfer.load` raises; ModelFormatError if the model
                 is not BodyPix
        """
        threshold = real_number("threshold", threshold, high=1)
        source = with_segments(model, pixels_of(model, pixels))
        return cls(*await opened(source, True, backend, progress, host), threshold)

    async def segment(self, image: Any) -> BodyMask:
        """The bodies in an image, which is anything that `webinfer.tasks.image.read_image` accepts.

        Raises:  InputError if it is none of these or has no pixels
        """
        (mask,) = await self.run(image)
        return mask

    def more_inputs(self, crop: Crop) -> Mapping[str, Any]:
        """The crop's map."""
        return crop_inputs(self.session, crop)

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[BodyMask]:
        """The masks, as large as what was to be seen."""
        size = sizes(crop)
        large = await self._scaler.run(size, {name: outputs[name] for name in (PERSON, PART, WHOSE)})
        values, parts, people = (large[name].flat() for name in (PERSON, PART, WHOSE))
        bodies = [body for body in bodies_in(outputs) if body.score > 0]
        return [BodyMask(size[2], size[3], values, parts, people, bodies)]

    def _larger(self, size: Size) -> GraphBuilder:
        """Maps of a region that become masks of its middle."""
        wide, high, width, height = size
        builder, shapes = GraphBuilder("bodies"), {o.name: o.shape for o in self.session.outputs}
        first = (0, (high - height) // 2, (wide - width) // 2, 0)

        def scaled(name: str, op: str) -> Value:
            maps = builder.input(name, shapes[name])
            larger = builder.node(op, maps, size=(high, wide), align_corners=True)
            part: Value = builder.node("slice", larger, starts=first, sizes=(1, height, width, 1), steps=(1, 1, 1, 1))
            return part

        sure = builder.node("sigmoid", scaled(PERSON, "resize_bilinear"))
        seen = builder.node("greater_equal", sure, builder.constant(self._threshold))
        builder.output(sure, PERSON)
        for name in (PART, WHOSE):
            told = builder.node("where", seen, scaled(name, "resize_nearest"), builder.constant(0.0))
            builder.output(builder.node("cast", told, dtype="uint8"), name)
        return builder

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        super().close()
        self._scaler.close()
