"""The README's chart: what the records say, drawn in proportion."""

from xml.etree import ElementTree

import pytest

from build_scripts.bench import speed_chart
from build_scripts.bench.records import read
from build_scripts.errors import BuildError
from build_scripts.paths import ROOT

SVG = "{http://www.w3.org/2000/svg}"


def test_every_bar_is_a_figure_of_a_record() -> None:
    told = {row[2] for _, record, _, _ in speed_chart.GROUPS for table in read(record).tables for row in table.rows}
    for bars in speed_chart.groups():
        assert list(bars.times) == ["LiteRT.js", "ONNX Runtime Web", "TensorFlow.js"]
        assert {f"{times:.2f}" for times in bars.times.values()} <= told


def test_lengths_are_in_proportion_and_readers_are_told_the_numbers() -> None:
    root = ElementTree.fromstring(speed_chart.speed_chart())
    widths = [float(rect.attrib["width"]) for rect in root.iter(f"{SVG}rect")]
    times = [time for bars in speed_chart.groups() for time in (1.0, *bars.times.values())]
    assert len(widths) == len(times)
    for width, time in zip(widths, times, strict=True):
        assert width == pytest.approx(time * widths[0], abs=0.6)  # widths are rounded to tenths of a pixel
    title = root.findtext(f"{SVG}title") or ""
    assert all(f"{time:.1f}" in title for bars in speed_chart.groups() for time in bars.times.values())


def test_a_record_without_a_rival_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_chart, "RIVALS", (("Nobody", "Nobody.js"),))
    with pytest.raises(BuildError, match=r"no row for Nobody\.js wasm 1 thr\."):
        speed_chart.groups()


def test_the_home_page_claims_what_is_on_record() -> None:
    home = (ROOT / "server" / "templates" / "home.html").read_text()
    by_place = {bars.heading: sorted(bars.times.values()) for bars in speed_chart.groups()}
    for place in ("CPU, one thread", "GPU"):
        least, most = f"{by_place[place][0]:.1f}", f"{by_place[place][-1]:.1f}"
        assert f"<strong>{least} to {most} times</strong>" in home
