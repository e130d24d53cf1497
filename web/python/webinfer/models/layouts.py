"""How models want their pictures and how they lay out what comes out: numbers, no code.

Source: the graphs that MediaPipe runs around these models.
"""

from __future__ import annotations

from webinfer.lazy_dataclass import dataclass

Three = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class PictureInput:
    """The picture that a model takes, [1, height, width, 3] float32.

    Each value is `offset + scale * pixel`, for a pixel's red, green and blue of 0..255.
    """

    width: int  # pixels
    height: int
    scale: float
    offset: float


@dataclass(frozen=True, slots=True)
class Pixels:
    """What a model wants for pixels: `low` for 0 and `high` for 255, and per channel `(that - mean) / deviation`.

    A quantised model says itself what its numbers stand for; one of whole numbers takes pixels as they are.
    """

    low: float = 0.0
    high: float = 255.0
    mean: Three | None = None
    deviation: Three = (1.0, 1.0, 1.0)
    bgr: bool = False  # channels run from blue to red

    def __str__(self) -> str:
        channels = f"{'bgr' * self.bgr}{self.mean}{self.deviation}" if self.mean else ""
        return f"{self.low:g}to{self.high:g}{channels}".replace(" ", "")


@dataclass(frozen=True, slots=True)
class SsdLayout:
    """The raw outputs of a single-shot detector: boxes and keypoints relative to anchors, and scores.

    A raw box is its centre x and y, width and height, and x and y of each keypoint, in pixels of the input.
    Anchors are the centres of the cells of each layer, row by row.
    """

    input: PictureInput
    layers: tuple[tuple[int, int], ...]  # (stride in pixels, anchors a cell), in the order of the anchors
    keypoints: tuple[str, ...]  # names, in the order of the raw box
    min_score: float = 0.5  # from which MediaPipe's graph of this model returns a detection


def _signed(width: int, height: int) -> PictureInput:
    """A picture whose values lie in -1..1."""
    return PictureInput(width, height, 2 / 255, -1.0)


def _unsigned(width: int, height: int) -> PictureInput:
    """A picture whose values lie in 0..1."""
    return PictureInput(width, height, 1 / 255, 0.0)


FACE_KEYPOINTS = ("right_eye", "left_eye", "nose_tip", "mouth", "right_ear", "left_ear")  # the person's own sides
BLAZEFACE_SHORT_RANGE = SsdLayout(_signed(128, 128), ((8, 2), (16, 6)), FACE_KEYPOINTS)
BLAZEFACE_BACK = SsdLayout(_signed(256, 256), ((16, 2), (32, 6)), FACE_KEYPOINTS)  # of 2021; no package brings it
BLAZEFACE_FULL_RANGE = SsdLayout(_signed(192, 192), ((4, 1),), FACE_KEYPOINTS, 0.6)
BLAZEFACE = (BLAZEFACE_SHORT_RANGE, BLAZEFACE_BACK, BLAZEFACE_FULL_RANGE)

# The first keypoints say where a palm and a body are and how they are turned: wrist and middle finger's first joint,
# middle of the hips and a point as far from it as the body reaches.
PALM_KEYPOINTS = ("wrist", "index", "middle", "ring", "little", "thumb_base", "thumb")
PALM = SsdLayout(_unsigned(192, 192), ((8, 2), (16, 6)), PALM_KEYPOINTS)
BODY = SsdLayout(_signed(224, 224), ((8, 2), (16, 2), (32, 6)), ("hips", "reach", "shoulders", "upper_reach"))
HAND = _unsigned(224, 224)
POSE = _unsigned(256, 256)
RECROP = _unsigned(256, 256)
FACE_MESH = _unsigned(192, 192)
SELFIE = _unsigned(256, 256)
SELFIE_LANDSCAPE = _unsigned(256, 144)

# Models that take pixels of any kind: what their plans make of 0..255.
PLAIN, SIGNED = Pixels(), Pixels(-1.0, 1.0)
HALF_SIGNED = Pixels(-0.5, 0.5)
IMAGENET = Pixels(mean=(123.675, 116.28, 103.53), deviation=(58.395, 57.12, 57.375))
NANODET = Pixels(mean=(103.53, 116.28, 123.675), deviation=(57.375, 57.12, 58.395), bgr=True)
