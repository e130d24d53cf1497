"""The ways of a picture to a session's model: as it is onto its GPU, or through a workspace of kernel memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webinfer.host.gpu import GpuTensor
from webinfer.session.session import Session
from webinfer.tasks.crop import Crop, InputSpec, Region
from webinfer.tasks.gpu_image import gpu_pictures, place_image
from webinfer.tasks.image import prepare_image, read_image
from webinfer.tasks.workspace import Workspace
from webinfer.tensor import Tensor


class PictureFeeder:
    """Runs a session on pictures, each brought to its first input by the shortest way that is open."""

    def __init__(self, session: Session, workspace: Workspace) -> None:
        self.straight = True  # pictures go to the GPU as they are where that is possible
        self._session, self._workspace = session, workspace
        self._input = session.inputs[0].name

    @classmethod
    async def create(cls, session: Session) -> PictureFeeder:
        """A feeder that has what its first picture needs."""
        return cls(session, Workspace(await session.host.kernels()))

    async def run(
        self, image: Any, region: Region | None, spec: InputSpec, more: Mapping[str, Any]
    ) -> tuple[dict[str, Tensor], Crop, float]:
        """The model's outputs for a region of an image, where that region lay, and the milliseconds of preparation.

        Raises:  InputError if `image` is none or has no pixels; what `Session.run` raises
        """
        clock = self._session.host.now_ms
        start = clock()
        placed = self._on_gpu(image, region, spec)
        if placed is not None:
            tensor, crop = placed
            prepared = clock()
            try:
                return await self._session.run({self._input: tensor, **more}), crop, prepared - start
            finally:
                tensor.close()
        picture = read_image(image, self._session.host)
        crop = spec.crop(region or Region.whole(picture.width, picture.height))
        data = prepare_image(self._workspace, picture, crop, **_numbers(spec), border=spec.border)
        prepared = clock()
        return await self._session.run({self._input: data, **more}), crop, prepared - start

    def _on_gpu(self, image: Any, region: Region | None, spec: InputSpec) -> tuple[GpuTensor, Crop] | None:
        """The model's input, made on the GPU in the run's own submit; None where that way is closed."""
        pictures = gpu_pictures(self._session, spec.border) if self.straight else None
        if pictures is None or (size := pictures.size(image)) is None:
            return None
        crop = spec.crop(region or Region.whole(*size))
        tensor = place_image(pictures, image, crop, size, **_numbers(spec))
        return None if tensor is None else (tensor, crop)

    def close(self) -> None:
        """Frees the memory of pictures; the session stays."""
        self._workspace.close()


def _numbers(spec: InputSpec) -> dict[str, float]:
    return {"scale": spec.picture.scale, "offset": spec.picture.offset}
