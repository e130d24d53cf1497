"""The table of places is of the places that the verb visits."""

import json

from build_scripts.places.recorded import RECORDED, row_of
from build_scripts.places.survey import places


def test_the_record_has_every_place_and_each_of_them_works() -> None:
    rows = json.loads(RECORDED.read_text())["rows"]
    assert [(row["place"], row["road"]) for row in rows] == [(place.name, place.road) for place in places()]
    assert all(row["works"] for row in rows)


def test_what_a_place_said_stays_in_its_row() -> None:
    row = {"place": "a page", "road": "by pip", "works": False, "seen": "a | b\nc"}
    assert row_of(row) == r"| a page | by pip | NO | a \| b c |"
