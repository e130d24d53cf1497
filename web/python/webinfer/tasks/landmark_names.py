"""Names of landmarks and the lines between them, as MediaPipe has them: `pose.landmarks[PoseLandmark.NOSE]`.

Source:  mediapipe/python/solutions: pose.py, hands.py, pose_connections.py, hands_connections.py and
         face_mesh_connections.py
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Sequence

from webinfer.tasks.face_parts import BROWS, LEFT_EYE, LIPS, OVAL, RIGHT_EYE, ring

Connections = frozenset[tuple[int, int]]


class PoseLandmark(enum.IntEnum):
    """The 33 points of a body; sides are the person's own."""

    NOSE = 0
    LEFT_EYE_INNER = 1
    LEFT_EYE = 2
    LEFT_EYE_OUTER = 3
    RIGHT_EYE_INNER = 4
    RIGHT_EYE = 5
    RIGHT_EYE_OUTER = 6
    LEFT_EAR = 7
    RIGHT_EAR = 8
    MOUTH_LEFT = 9
    MOUTH_RIGHT = 10
    LEFT_SHOULDER = 11
    RIGHT_SHOULDER = 12
    LEFT_ELBOW = 13
    RIGHT_ELBOW = 14
    LEFT_WRIST = 15
    RIGHT_WRIST = 16
    LEFT_PINKY = 17
    RIGHT_PINKY = 18
    LEFT_INDEX = 19
    RIGHT_INDEX = 20
    LEFT_THUMB = 21
    RIGHT_THUMB = 22
    LEFT_HIP = 23
    RIGHT_HIP = 24
    LEFT_KNEE = 25
    RIGHT_KNEE = 26
    LEFT_ANKLE = 27
    RIGHT_ANKLE = 28
    LEFT_HEEL = 29
    RIGHT_HEEL = 30
    LEFT_FOOT_INDEX = 31
    RIGHT_FOOT_INDEX = 32


class HandLandmark(enum.IntEnum):
    """The 21 points of a hand."""

    WRIST = 0
    THUMB_CMC = 1
    THUMB_MCP = 2
    THUMB_IP = 3
    THUMB_TIP = 4
    INDEX_FINGER_MCP = 5
    INDEX_FINGER_PIP = 6
    INDEX_FINGER_DIP = 7
    INDEX_FINGER_TIP = 8
    MIDDLE_FINGER_MCP = 9
    MIDDLE_FINGER_PIP = 10
    MIDDLE_FINGER_DIP = 11
    MIDDLE_FINGER_TIP = 12
    RING_FINGER_MCP = 13
    RING_FINGER_PIP = 14
    RING_FINGER_DIP = 15
    RING_FINGER_TIP = 16
    PINKY_MCP = 17
    PINKY_PIP = 18
    PINKY_DIP = 19
    PINKY_TIP = 20


class BodyLandmark(enum.IntEnum):
    """The 17 points of bodies of MoveNet, PoseNet and BodyPix, as COCO numbers them; sides are the person's own."""

    NOSE = 0
    LEFT_EYE = 1
    RIGHT_EYE = 2
    LEFT_EAR = 3
    RIGHT_EAR = 4
    LEFT_SHOULDER = 5
    RIGHT_SHOULDER = 6
    LEFT_ELBOW = 7
    RIGHT_ELBOW = 8
    LEFT_WRIST = 9
    RIGHT_WRIST = 10
    LEFT_HIP = 11
    RIGHT_HIP = 12
    LEFT_KNEE = 13
    RIGHT_KNEE = 14
    LEFT_ANKLE = 15
    RIGHT_ANKLE = 16


def connections(*chains: Sequence[int]) -> Connections:
    """The lines of chains of points, each from its smaller number to its larger one."""
    return frozenset((min(pair), max(pair)) for chain in chains for pair in itertools.pairwise(chain))


POSE_CONNECTIONS = connections(
    (8, 6, 5, 4, 0, 1, 2, 3, 7), (10, 9), (11, 12, 24, 23, 11), (11, 13, 15, 17, 19, 15, 21),
    (12, 14, 16, 18, 20, 16, 22), (23, 25, 27, 29, 31, 27), (24, 26, 28, 30, 32, 28),
)  # fmt: skip
HAND_CONNECTIONS = connections(
    (0, 1, 2, 3, 4), (0, 5, 6, 7, 8), (5, 9, 10, 11, 12), (9, 13, 14, 15, 16), (13, 17, 18, 19, 20), (0, 17)
)

# Of a face mesh, by MediaPipe's names; sides are the person's own, where face_parts has those of the picture.
FACE_LIPS = connections(ring(LIPS[:20], 11), ring(LIPS[20:40], 11))
FACE_LEFT_EYE, FACE_RIGHT_EYE = (connections(ring(rim[:16], 9)) for rim in (RIGHT_EYE, LEFT_EYE))
_LOWER_BROWS = (46, 53, 52, 65, 55), (276, 283, 282, 295, 285)
FACE_RIGHT_EYEBROW, FACE_LEFT_EYEBROW = (
    connections(upper, lower) for upper, lower in zip(BROWS, _LOWER_BROWS, strict=True)
)
FACE_RIGHT_IRIS, FACE_LEFT_IRIS = (connections((a, a + 1, a + 2, a + 3, a)) for a in (469, 474))
FACE_OVAL = connections(OVAL)
FACE_CONTOURS = FACE_LIPS | FACE_LEFT_EYE | FACE_RIGHT_EYE | FACE_LEFT_EYEBROW | FACE_RIGHT_EYEBROW | FACE_OVAL
