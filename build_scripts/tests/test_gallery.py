"""What the home page keeps of results: small, and still right."""

from build_scripts.site.gallery import MASK_SIDE, small


def test_seconds_keep_their_decimals_and_pixels_do_not() -> None:
    heard = {"about": {}, "beside": {"seconds": 7.884, "peaks": [-0.123]}, "speeches": [{"start": 2.374, "end": 5.7}]}
    assert small(heard) == {"beside": {"seconds": 7.88, "peaks": [-0.12]}, "found": [{"start": 2.37, "end": 5.7}]}
    seen = {"image": {"width": 9, "height": 9}, "faces": [{"box": {"left": 12.7}, "score": 0.123}]}
    assert small(seen) == {"image": {"width": 9, "height": 9}, "found": [{"box": {"left": 13}, "score": 0.12}]}


def test_of_meanings_the_texts_and_of_bodies_the_parts_are_kept() -> None:
    said = {"beside": {}, "sentences": [{"text": "a", "values": [0.1] * 384, "pieces": 3}]}
    assert small(said)["found"] == [{"text": "a", "pieces": 3}]
    side = 2 * MASK_SIDE
    maps = {"values": [0.9] * side * side, "parts": [3] * side * side, "people": [1] * side * side}
    (mask,) = small({"masks": [{"width": side, "height": side, **maps, "bodies": [{"score": 0.5}]}]})["found"]
    assert {name: len(one) for name, one in mask.items() if isinstance(one, list)} == {
        "parts": MASK_SIDE**2, "people": MASK_SIDE**2, "bodies": 1,
    }  # fmt: skip
