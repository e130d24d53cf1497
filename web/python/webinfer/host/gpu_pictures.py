"""Uploads a browser's pictures (video frames, bitmaps, canvases) to the GPU: drives web/static/gpu/gpu_picture.js."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyodide.ffi import JsException, JsProxy, create_proxy, to_js

from webinfer.errors import DeviceLostError, GpuError
from webinfer.flags import debug
from webinfer.host.gpu import GpuDevice, PipelineSpec, Sized


class BrowserPictures:
    """Takes pictures to one device (host.gpu.GpuPictures).

    `modules` has gpu_picture.js and gpu_mask.js, `js_device` is the Device of gpu_device.js under `device`; `specs`
    holds the passes by how a picture is bound: "texture" or "external".
    """

    def __init__(self, device: GpuDevice, modules: Any, js_device: Any, specs: Mapping[str, PipelineSpec]) -> None:
        passes = {way: {"label": s.label, "code": s.code, "bindings": s.bindings} for way, s in specs.items()}
        self.device, self.refusal = device, ""
        self._modules, self._pictures = modules, modules.gpu_picture.Pictures.new(js_device, json.dumps(passes))

    async def bring(self, source: Any) -> None:
        """Copies a video frame to a texture where that is the sooner way (gpu_frames.js)."""
        if isinstance(source, JsProxy):
            await self._pictures.bring(source)

    def size(self, source: Any) -> tuple[int, int] | None:
        """Width and height in pixels of a picture that can be taken now, else None, and `refusal` says why."""
        self._refuse(self._pictures.look(source) if isinstance(source, JsProxy) else f"a {type(source).__name__}")
        return None if self.refusal else (int(self._pictures.width), int(self._pictures.height))

    def take(self, source: Any, params: bytes, nbytes: int, groups: tuple[int, int]) -> Any:
        """The picture as an input of a run (gpu_picture.js); None if the browser refuses it, and `refusal` says why."""
        try:
            return self._pictures.take(source, memoryview(params), nbytes, *groups)
        except JsException as error:
            self._refuse(str(error))
            return None

    def painter(self, program: Any, recipe: Mapping[str, Any], sized: Sized) -> BrowserPainter:
        """What paints pictures as a program's mask says (gpu_mask.js)."""

        def numbers(width: int, height: int, look: str) -> JsProxy:
            facts, uniforms = sized(width, height, look)
            return to_js([json.dumps(facts), *uniforms])

        made = self._modules.gpu_mask.MaskPainter.new
        return BrowserPainter(made(self._pictures, program.handle, json.dumps(recipe), create_proxy(numbers)))

    def _refuse(self, refusal: str) -> None:
        if refusal and refusal != self.refusal:
            debug(1, f"webgpu: a picture passes through memory: {refusal}")
        self.refusal = refusal


class BrowserPainter:
    """Paints pictures on one device (host.gpu.GpuPainter). `handle` is the MaskPainter of gpu_mask.js."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    async def paint(self, source: Any, look: str) -> Any:
        """The painted picture as an ImageBitmap; None where it cannot be taken to the GPU.

        Raises:  DeviceLostError; GpuError
        """
        try:
            return await self.handle.paint(source, look)
        except JsException as error:
            kind = DeviceLostError if getattr(error, "name", "") == "DeviceLost" else GpuError
            raise kind(f"painting a picture: {getattr(error, 'message', error)}") from error

    def close(self) -> None:
        """Frees its buffers; a second call does nothing."""
        self.handle.close()
