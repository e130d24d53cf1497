"""The ways of a picture to a session's model: as it is onto its GPU, into its own kernel memory, or around both.

Where the model runs in kernel memory, the picture's bytes are written behind its plan and the picture kernel fills the
input where the plan reads it. Anywhere else a workspace of kernel memory makes the input, which is then given as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from webinfer.backends.base import InPlace, KernelExecutor
from webinfer.dtypes import DType
from webinfer.errors import InputError
from webinfer.host.gpu import GpuPictures, GpuTensor
from webinfer.session.session import Session
from webinfer.tasks.crop import Crop, InputSpec, Region
from webinfer.tasks.gpu_image import gpu_pictures, place_image
from webinfer.tasks.image import KERNEL, Picture, kernel_arguments, prepare_image, read_image
from webinfer.tasks.sampled import sampled
from webinfer.tasks.workspace import Workspace
from webinfer.tensor import Tensor

Outputs = tuple[dict[str, Tensor], Crop, float]  # by name, where the region lay, milliseconds of preparation
MoreInputs = Callable[[Crop], Mapping[str, Any]]  # inputs besides the picture, by name


@contextmanager
def closed_on_error(session: Session) -> Iterator[None]:
    """Closes the session if what is done with it fails: a task that cannot be made keeps nothing."""
    try:
        yield
    except BaseException:
        session.close()
        raise


class PictureFeeder:
    """Runs a session on pictures, each brought to its first input by the shortest way that is open."""

    def __init__(self, session: Session) -> None:
        self.straight = True  # pictures go to the GPU as they are where that is possible
        self._session, self._input = session, session.inputs[0]
        self._workspace: Workspace | None = None

    @classmethod
    async def create(cls, session: Session) -> PictureFeeder:
        """A feeder that has what its first picture needs."""
        feeder = cls(session)
        if not feeder._has_place():
            await feeder._memory()
        return feeder

    async def read(self, image: Any, spec: InputSpec) -> Any:
        """The image itself where it goes to the GPU as it is, else its pixels: for who runs on several parts of it.

        Raises:  InputError if `image` is none or has no pixels
        """
        pictures = await self._bring(image, spec)
        straight = pictures is not None and pictures.size(image) is not None
        return image if straight else read_image(image, self._session.host)

    def size(self, image: Any, spec: InputSpec) -> tuple[int, int] | None:
        """Width and height of an image that `read` gave; None where it does not say."""
        if isinstance(image, Picture):
            return image.width, image.height
        pictures = gpu_pictures(self._session, spec.border, spec.sampling)
        return None if pictures is None else pictures.size(image)

    async def run(self, image: Any, region: Region | None, spec: InputSpec, more: MoreInputs) -> Outputs:
        """The model's outputs for a region of an image (None: all of it), with `more` inputs.

        Raises:  InputError if `image` is none or has no pixels; what `Session.run` raises
        """
        clock = self._session.host.now_ms
        start = clock()
        placed = await self._on_gpu(image, region, spec)
        if placed is not None:
            tensor, crop = placed
            prepared = clock()
            try:
                return await self._session.run({self._input.name: tensor, **more(crop)}), crop, prepared - start
            finally:
                tensor.close()
        picture, crop = self._read(image, region, spec)
        read_ms = clock() - start
        if self._has_place():
            try:
                outputs, written_ms = await self._run_in_place(picture, crop, spec, more(crop))
                return outputs, crop, read_ms + written_ms
            except InputError:
                if self._has_place():
                    raise  # else "auto" has gone over to another backend while this run waited
        data = prepare_image(await self._memory(), picture, crop, **_kernel_options(spec))
        prepared = clock()
        return await self._session.run({self._input.name: data, **more(crop)}), crop, prepared - start

    async def run_on_gpu(self, image: Any, spec: InputSpec) -> tuple[dict[str, GpuTensor], Crop]:
        """The model's outputs for all of an image, which stay on the GPU: nothing is read back or waited for.

        Raises:  InputError if `image` is none or has no pixels; what `Session.run_on_gpu` raises
        """
        placed = await self._on_gpu(image, None, spec)
        if placed is None:
            picture, crop = self._read(image, None, spec)
            data = prepare_image(await self._memory(), picture, crop, **_kernel_options(spec))
            return await self._session.run_on_gpu({self._input.name: data}), crop
        tensor, crop = placed
        try:
            return await self._session.run_on_gpu({self._input.name: tensor}), crop
        finally:
            tensor.close()

    def _read(self, image: Any, region: Region | None, spec: InputSpec) -> tuple[Picture, Crop]:
        """The image's pixels, and the map of its region."""
        picture = read_image(image, self._session.host)
        return picture, spec.crop(region, (picture.width, picture.height))

    def _has_place(self) -> bool:
        """Whether the picture kernel can write the input where the plan reads it."""
        return isinstance(self._session.executor, KernelExecutor) and self._input.dtype is DType.FLOAT32

    async def _run_in_place(
        self, picture: Picture, crop: Crop, spec: InputSpec, more: Mapping[str, Any]
    ) -> tuple[dict[str, Tensor], float]:
        """The outputs, and the milliseconds that it took to write the input."""
        clock, seen = self._session.host.now_ms, sampled(picture, crop, spec.sampling)
        spent = 0.0

        def write(executor: KernelExecutor) -> None:
            nonlocal spent
            start = clock()
            pixels, kernels = executor.scratch(seen.nbytes), executor.kernels
            kernels.write(pixels, seen.data)
            place = executor.input_address(self._input.name)
            numbers = kernel_arguments(pixels, place, picture, seen, crop, **_kernel_options(spec))
            kernels.call(KERNEL, *numbers, 0, crop.height)
            spent = clock() - start

        return await self._session.run({self._input.name: InPlace(write), **more}), spent

    async def _memory(self) -> Workspace:
        if self._workspace is None:
            self._workspace = Workspace(await self._session.host.kernels())
        return self._workspace

    async def _bring(self, image: Any, spec: InputSpec) -> GpuPictures | None:
        """What takes the image to the GPU, if anything does; a video frame is brought there if that is sooner."""
        pictures = gpu_pictures(self._session, spec.border, spec.sampling) if self.straight else None
        if pictures is not None:
            await pictures.bring(image)
        return pictures

    async def _on_gpu(self, image: Any, region: Region | None, spec: InputSpec) -> tuple[GpuTensor, Crop] | None:
        """The model's input, made on the GPU in the run's own submit; None where that way is closed."""
        pictures = await self._bring(image, spec)
        if pictures is None or (size := pictures.size(image)) is None:
            return None
        crop = spec.crop(region, size)
        tensor = place_image(pictures, image, crop, size, **_numbers(spec))
        return None if tensor is None else (tensor, crop)

    def close(self) -> None:
        """Frees the memory of pictures; the session stays."""
        if self._workspace is not None:
            self._workspace.close()


def _kernel_options(spec: InputSpec) -> dict[str, Any]:
    return {**_numbers(spec), "border": spec.border, "sampling": spec.sampling}


def _numbers(spec: InputSpec) -> dict[str, float]:
    return {"scale": spec.picture.scale, "offset": spec.picture.offset}
