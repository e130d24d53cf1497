"""What every place is asked: the wheel installed, a real model loaded and run, and its first outputs."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import KERNELS, MODELS, ROOT

MODEL = MODELS / "face_detection_short_range.tflite"
WANTED = 64  # outputs that are compared
TOLERANCE = 2e-3  # of outputs between -100 and 100

# Python with a top-level await that ends in a text of JSON.
PROBE = """
import json, webinfer
seen = {{}}
for backend in {backends!r}:
    session = await webinfer.load({model!r}, backend=backend, strict=True)
    size = 1
    for length in session.inputs[0].shape:
        size *= length
    from array import array
    picture = memoryview(array("f", ((i * 37 % 255) / 127.5 - 1.0 for i in range(size)))).cast("B")
    outputs = await session.run(picture.cast("f"))
    found = [float(v) for o in outputs.values() for v in o.flat()[:{wanted}]]
    seen[backend] = dict(found=found, choice=session.choice, python=__import__("sys").version.split()[0])
    session.close()
with webinfer.load_sync({model!r}, backend={backends!r}[0]) as session:  # nothing is awaited
    outputs = session.run(picture.cast("f"))
    seen["without await"] = dict(found=[float(v) for o in outputs.values() for v in o.flat()[:{wanted}]])
seen["capabilities"] = [[c.name, c.present, c.value or c.reason] for c in webinfer.capabilities()]
json.dumps(seen)
"""


def probe(model: str, backends: Sequence[str]) -> str:
    """The program that loads the model from this path or URL and runs it on each backend."""
    return PROBE.format(model=model, backends=list(backends), wanted=WANTED)


@dataclass(frozen=True)
class Answer:
    """What a place answered: a word on each backend, and what it said of itself."""

    backends: dict[str, str]  # backend -> how far from CPython's numbers
    capabilities: dict[str, tuple[bool, str]]

    @property
    def threads(self) -> str:
        """How many threads, or why one."""
        return self.capabilities.get("threads", (False, "one"))[1]

    def __str__(self) -> str:
        return "; ".join(f"{backend}: {word}" for backend, word in self.backends.items())


def judged(text: str) -> Answer:
    """A place's answer, compared with this checkout's in CPython.

    Raises: BuildError if a number is another one
    """
    seen: dict[str, Any] = json.loads(text)
    capabilities = {name: (present, value) for name, present, value in seen.pop("capabilities")}
    words, wanted = {}, reference()
    for backend, row in seen.items():
        found = row["found"]
        apart = max((abs(a - b) for a, b in zip(found, wanted, strict=True)), default=float("inf"))
        if not apart <= TOLERANCE:
            raise BuildError(f"{backend}: its outputs are {apart:.2g} from CPython's: {found[:4]} and {wanted[:4]}")
        words[backend] = f"within {apart:.0e} of CPython's numbers"
    return Answer(words, capabilities)


def reference() -> list[float]:
    """The probe's outputs by this checkout in CPython, on wasm; computed once."""
    if not _REFERENCE:
        lines = probe(str(MODEL), ["wasm"]).strip().splitlines()
        body = "\n".join(f"    {line}" for line in lines[:-1])
        program = f"import asyncio\nasync def main():\n{body}\n    print({lines[-1]})\nasyncio.run(main())\n"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "web" / "python"), "WEBINFER_KERNELS": str(KERNELS)}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise BuildError(f"the probe fails in CPython: {done.stderr[-800:]}")
        _REFERENCE.extend(json.loads(done.stdout.splitlines()[-1])["wasm"]["found"])
    return _REFERENCE


_REFERENCE: list[float] = []
