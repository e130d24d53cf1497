"""Every format has samples to damage; damaged ones are read or refused in words."""

from __future__ import annotations

import pytest
from tests.importers.format_samples import SAMPLES, samples
from tests.importers.mutations import survey

from webinfer.graph.verify import verify
from webinfer.importers import read_model
from webinfer.importers.formats import FORMATS
from webinfer.passes.pipeline import optimize


def test_every_format_has_samples_that_can_be_read() -> None:
    assert {row.name for row in FORMATS} == set(SAMPLES)
    for name, data in samples().items():
        graph = read_model(data, name)
        optimize(graph)
        verify(graph)
        assert graph.nodes


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "TensorFlow Lite"])
def test_damaged_samples_are_read_or_refused(name: str) -> None:
    tally = survey(samples(name), 80, seed=5)
    assert not tally.others, tally.others[:3]
    assert tally.results
    assert tally.errors


def test_a_format_that_nobody_knows_is_named() -> None:
    with pytest.raises(ValueError, match="no samples of 'tiff'"):
        samples("tiff")
