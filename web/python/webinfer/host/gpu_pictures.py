"""A browser's pictures (video frames, bitmaps, canvases) on their way to the GPU: drives web/static/gpu_picture.js."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyodide.ffi import JsException, JsProxy

from webinfer.flags import debug
from webinfer.host.gpu import GpuDevice, PipelineSpec


class BrowserPictures:
    """Takes pictures to one device (host.gpu.GpuPictures).

    `module` is gpu_picture.js, `js_device` the Device of gpu_device.js under `device`; `specs` holds the passes by
    how a picture is bound: "texture" or "external".
    """

    def __init__(self, device: GpuDevice, module: Any, js_device: Any, specs: Mapping[str, PipelineSpec]) -> None:
        passes = {way: {"label": s.label, "code": s.code, "bindings": s.bindings} for way, s in specs.items()}
        self.device, self.refusal = device, ""
        self._pictures = module.Pictures.new(js_device, json.dumps(passes))

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

    def _refuse(self, refusal: str) -> None:
        if refusal and refusal != self.refusal:
            debug(1, f"webgpu: a picture passes through memory: {refusal}")
        self.refusal = refusal
