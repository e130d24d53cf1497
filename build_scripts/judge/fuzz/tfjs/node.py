"""TensorFlow.js in Node: one process that answers question after question."""

import atexit
import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.graphs import Array
from build_scripts.judge.fuzz.tfjs.install import FOLDER, MODULES
from build_scripts.setup.node import node_commands


class Refused(RuntimeError):
    """TensorFlow.js refused a model, or ended."""


class NodeProcess:
    """TensorFlow.js, started when it is first asked, and anew where it ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        atexit.register(self.close)

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def ask(
        self, files: Mapping[str, bytes], inputs: Mapping[str, Array], outputs: Sequence[str], backend: str
    ) -> list[Array]:
        """The outputs of a model.

        Raises:  Refused with what TensorFlow.js says
        """
        question = {
            "model": json.loads(files["model.json"]),
            "weights": _text(b"".join(data for name, data in files.items() if name != "model.json")),
            "inputs": {
                n: {"dtype": str(a.dtype), "shape": a.shape, "data": _text(a.tobytes())} for n, a in inputs.items()
            },
            "outputs": list(outputs),
            "backend": backend,
        }
        answer = self._answer(json.dumps(question))
        if "error" in answer:
            raise Refused(answer["error"])
        return list(map(_array, answer["outputs"]))

    def _answer(self, question: str) -> dict[str, Any]:
        if self._process is None:
            command = [next(node_commands()), str(FOLDER / "runner.cjs"), str(MODULES)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            self.close()
            raise Refused("the process of TensorFlow.js ended")
        found: dict[str, Any] = json.loads(line)
        return found


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _array(told: Mapping[str, Any]) -> Array:
    data = np.frombuffer(base64.b64decode(told["data"]), told["dtype"])
    try:
        return data.reshape(told["shape"])
    except (TypeError, ValueError) as error:  # kernels that check nothing give shapes of NaN
        raise Refused(f"{data.size} elements of a shape {told['shape']}") from error
