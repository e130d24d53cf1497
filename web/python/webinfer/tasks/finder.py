"""The first of two models: a single-shot detector that says in which regions of a picture the second one looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from webinfer.host.interface import Host, Progress
from webinfer.session.loading import load
from webinfer.session.session import Session
from webinfer.tasks.base import Box, Keypoint
from webinfer.tasks.crop import InputSpec, Region
from webinfer.tasks.picture_input import PictureFeeder, closed_on_error
from webinfer.tasks.regions import RegionRule
from webinfer.tasks.ssd import MIN_SCORE, SsdFamily, detections, input_spec, least_score, with_detections


class RegionFinder:
    """Finds regions of pictures, best first."""

    def __init__(self, session: Session, feeder: PictureFeeder, spec: InputSpec, rule: RegionRule) -> None:
        self.session = session
        self.feeder = feeder
        self.min_score = 0.5
        self._spec, self._rule = spec, rule

    @classmethod
    async def create(
        cls,
        model: Any,
        family: SsdFamily,
        rule: RegionRule,
        *,
        backend: str | Sequence[str],
        progress: Progress | None,
        host: Host,
        beside: Session,
    ) -> RegionFinder:
        """A finder that is ready; its plan may lie in the memory of the session `beside`.

        Raises:  ModelFormatError if the model is not of the family; what `webinfer.load` raises
        """
        source = replace(with_detections(model, family), shared_memory_with=beside)
        session = await load(source, backend=backend, progress=progress, host=host)
        with closed_on_error(session):
            spec = input_spec(family.layout_of(model, session.inputs[0].shape))
            finder = cls(session, await PictureFeeder.create(session), spec, rule)
            await session.warmup()
        return finder

    async def regions(self, image: Any) -> list[Region]:
        """The regions of all that is found in an image."""
        return [self._rule.region(points, box) for points, box in await self.found(image)]

    async def found(self, image: Any, region: Region | None = None) -> list[tuple[list[Keypoint], Box]]:
        """Keypoints and boxes of all that is found in a region of an image; None: in all of it."""
        least = {MIN_SCORE: least_score(self.min_score)}
        outputs, crop, _ = await self.feeder.run(image, region, self._spec, lambda crop: least)
        return [([crop.to_image(*point) for point in one.keypoints], one.box(crop)) for one in detections(outputs)]

    def close(self) -> None:
        """Frees the model and the memory of pictures."""
        self.session.close()
        self.feeder.close()
