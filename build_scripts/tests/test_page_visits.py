"""The figures of visits: every kind of page is visited, and the table says what was seen."""

from __future__ import annotations

from build_scripts.bench.page_visits import Visit, paths, table
from server.settings import Settings
from server.studio import read_studio


def test_every_page_and_a_demo_of_each_source_is_visited() -> None:
    studio, found = read_studio(Settings().tables), paths()
    assert {page.address for page in studio.pages} <= set(found)
    sources = {demo.source for demo in studio.demos if demo.address in found}
    assert sources == {demo.source for demo in studio.demos}
    assert len(found) == len(set(found))


def test_the_table_has_a_row_for_each_page() -> None:
    rows = table({"/": Visit(248.4, 0.0, 22, 416_507)}).splitlines()
    assert rows[2:] == ["| `/` | 248 ms | 0.000 | 22 | 0.42 |"]
