"""A browser's pictures on their way to the GPU: web/static/gpu_picture.js."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyodide.ffi import JsException, JsProxy

from webinfer.flags import debug
from webinfer.host.gpu import GpuDevice, PipelineSpec


class BrowserPictures:
    """What takes pictures to one device (host.gpu.GpuPictures)."""

    def __init__(self, device: GpuDevice, door: Any, inner: Any, specs: Mapping[str, PipelineSpec]) -> None:
        ways = {way: {"label": s.label, "code": s.code, "bindings": s.bindings} for way, s in specs.items()}
        self.device, self.refusal = device, ""
        self._pictures = door.Pictures.new(inner, json.dumps(ways))

    def size(self, source: Any) -> tuple[int, int] | None:
        """Width and height of a picture that can be taken now."""
        self._say(self._pictures.look(source) if isinstance(source, JsProxy) else f"a {type(source).__name__}")
        return None if self.refusal else (int(self._pictures.width), int(self._pictures.height))

    def take(self, source: Any, params: bytes, nbytes: int, groups: tuple[int, int]) -> Any:
        """The picture, for a run."""
        try:
            return self._pictures.take(source, memoryview(params), nbytes, *groups)
        except JsException as error:
            self._say(str(error))
            return None

    def _say(self, refusal: str) -> None:
        if refusal and refusal != self.refusal:
            debug(1, f"webgpu: a picture passes through memory: {refusal}")
        self.refusal = refusal
