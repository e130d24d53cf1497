"""What tasks find, as values that JSON can hold and numbers in bulk beside it."""

from __future__ import annotations

import dataclasses
import json

from webinfer.page.file_pixels import POINTS, in_file_pixels
from webinfer.page.json_results import plain
from webinfer.tasks import Box, Landmarks, Mask
from webinfer.tasks.classifier import Category
from webinfer.tasks.face_detector import Face
from webinfer.tasks.face_landmarker import FaceLandmarks
from webinfer.tasks.hand_landmarker import HandLandmarks
from webinfer.tasks.holistic_landmarker import PersonLandmarks
from webinfer.tasks.multi_pose import BodyPose
from webinfer.tasks.object_detector import DetectedObject
from webinfer.tasks.pose_landmarker import PoseLandmarks
from webinfer.tasks.text_reader import TextLine


def test_bulk_goes_beside_the_json_in_the_order_of_its_numbers() -> None:
    points, world = Landmarks([1, 2, 3, 4, 5, 6], [0.5, 1, 0.25, 1]), Landmarks([7, 8, 9])
    hand = HandLandmarks(Box(1, 2, 3, 4), 0.5, "Left", 0.75, points, world)
    mask = Mask(2, 1, memoryview(bytes(8)).cast("f"))
    arrays: list[memoryview] = []
    values = json.loads(json.dumps(plain([hand, mask], arrays)))
    assert values[0]["box"] == {"left": 1, "top": 2, "width": 3, "height": 4}
    assert values[0]["landmarks"] == {"xyz": {"array": 0}, "confidences": {"array": 1}}
    assert values[0]["world"]["xyz"] == {"array": 2}
    assert values[1] == {"width": 2, "height": 1, "values": {"array": 4}}
    assert [view.tolist() for view in arrays] == [[1, 2, 3, 4, 5, 6], [0.5, 1, 0.25, 1], [7, 8, 9], [], [0, 0]]


def test_what_json_can_hold_stays_as_it_is() -> None:
    arrays: list[memoryview] = []
    assert plain({"a": (1, None, "x"), 2: [True]}, arrays) == {"a": [1, None, "x"], "2": [True]}
    assert not arrays


def test_what_was_found_in_a_smaller_copy_is_told_in_pixels_of_the_file() -> None:
    points, world = Landmarks([1, 2, 3], [0.5, 1]), Landmarks([7, 8, 9])
    hand = HandLandmarks(Box(1, 2, 3, 4), 0.5, "Left", 0.75, points, world, id=7)
    face = Face(Box(1, 1, 2, 2), 0.9, {"nose": (1.5, 2.0)})
    line = TextLine("a", 1.0, ((0, 0), (4, 0), (4, 2), (0, 2)), Box(0, 0, 4, 2))
    thing = DetectedObject(Box(0, 0, 1, 1), 0.5, Category(0, "cup", 0.5), keypoints=((1.0, 1.0, 0.25),), rotation=0.5)
    mask = Mask(2, 1, memoryview(bytes(8)).cast("f"))
    person = PersonLandmarks(Box(1, 1, 1, 1), 1.0, pose=hand, face=None, left_hand=hand, right_hand=None)  # type: ignore[arg-type]
    found = in_file_pixels([hand, face, line, thing, mask, person, "text"], 2.0, 3.0)
    assert found[0].box == Box(2, 6, 6, 12)
    assert [*found[0].landmarks.xyz] == [2, 6, 6], "depths in pixels of the width"
    assert (found[0].landmarks.confidences, found[0].world, found[0].id) == ([0.5, 1], world, 7)
    assert found[1] == Face(Box(2, 3, 4, 6), 0.9, {"nose": (3.0, 6.0)})
    assert found[2].quad == ((0, 0), (8, 0), (8, 6), (0, 6))
    assert (found[3].keypoints, found[3].rotation, found[3].category.label) == (((2.0, 3.0, 0.25),), 0.5, "cup")
    assert found[4] == mask, "a mask lies over all of the picture"
    assert found[5].left_hand.box == Box(2, 6, 6, 12)
    assert found[6] == "text"


def test_no_result_of_a_task_has_pixels_that_are_forgotten() -> None:
    """Fields that in_file_pixels leaves alone, by what they hold: another kind of place needs a rule there."""
    left = set()
    bodies = (HandLandmarks, PersonLandmarks, FaceLandmarks, PoseLandmarks, BodyPose)
    for cls in (Face, TextLine, DetectedObject, Mask, *bodies):
        for field in dataclasses.fields(cls):
            text = str(field.type)
            known = any(word in text for word in ("Box", "Landmarks", "Mask")) or field.name in POINTS
            left |= set() if known else {(field.name, text)}
    plain_values = {"score", "id", "image_size", "handedness", "handedness_score", "text", "category", "rotation"}
    assert {name for name, _ in left} == {*plain_values, "width", "height", "values"}
