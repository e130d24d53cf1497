"""What tasks find, as values that JSON can hold and numbers in bulk beside it."""

from __future__ import annotations

import json

from webinfer.page.json_results import plain
from webinfer.tasks import Box, Landmarks, Mask
from webinfer.tasks.hand_landmarker import HandLandmarks


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
