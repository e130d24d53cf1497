"""What blocks `python given NAME` find around them: files in the current folder, names of earlier lines, services.

Each is entered before its block and left behind it; there it asserts what the block made.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import threading
import types
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compat.without_onnxruntime import link_engine
from tests.docs.pages import ROOT
from tests.host.hub_server import served_hub
from tests.importers.gguf_writer import tiny_decoder
from tests.importers.tfjs_writer import model as tfjs_model
from tests.importers.tfjs_writer import node, placeholder
from tests.language.test_language import FACTS, WORDS

import webinfer
import webinfer.compat.onnxruntime
from webinfer.models.registry import MODELS

Names = dict[str, Any]
# Yields the names that a block finds, or None if it ran already, in a process of its own.
Given = Callable[[str], AbstractAsyncContextManager[Names | None]]
ELSEWHERE = "elsewhere"  # among the names: texts of the block, and what stands for them here
CHAT = [{"role": "user", "content": "a"}]


def onnx_file(
    nodes: Sequence[Sequence[Any]], inputs: Mapping[str, tuple[str, Sequence[int | str]]],
    constants: Mapping[str, np.ndarray] | None = None, metadata: Mapping[str, str] | None = None,
) -> bytes:  # fmt: skip
    """An ONNX model of a few nodes, whose output is y."""
    onnx = pytest.importorskip("onnx")
    h, types = onnx.helper, onnx.TensorProto
    taken = [h.make_tensor_value_info(name, getattr(types, kind), shape) for name, (kind, shape) in inputs.items()]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    y = [h.make_tensor_value_info("y", types.FLOAT, None)]
    graph = h.make_graph([h.make_node(*node) for node in nodes], "g", taken, y, weights)
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    h.set_model_props(made, dict(metadata or {}))
    return bytes(made.SerializeToString())


def doubled(width: int = 3, rows: int | str = "n", x: str = "x") -> bytes:
    """y = 2 x for rows of numbers."""
    return onnx_file([["Mul", [x, "two"], ["y"]]], {x: ("FLOAT", [rows, width])}, {"two": np.float32([2])})


@asynccontextmanager
async def sentences(text: str) -> AsyncIterator[Names]:
    """minilm.onnx: three inputs of integers with open sizes."""
    kinds = {name: ("INT64", ["batch", "sequence"]) for name in ("input_ids", "attention_mask", "token_type_ids")}
    total = [["Add", ["input_ids", "attention_mask"], ["a"]], ["Add", ["a", "token_type_ids"], ["b"]]]
    Path("minilm.onnx").write_bytes(
        onnx_file([*total, ["CastLike", ["b", "one"], ["y"]]], kinds, {"one": np.float32([1])})
    )
    ids = np.arange(16, dtype=np.int64).reshape(1, 16)
    printed: list[Any] = []
    names: Names = {"webinfer": webinfer, "ids": ids, "mask": np.ones_like(ids), "types": np.zeros_like(ids)}
    names["print"] = printed.append
    yield names
    assert printed == [("batch", "sequence"), dict.fromkeys(names["session"].plan().shapes, (1, 16))]
    assert (names["outputs"]["y"].numpy() == ids + 1).all()
    names["session"].close()


@asynccontextmanager
async def hub(text: str) -> AsyncIterator[Names]:
    """A hub and a web server on this machine with models of three formats, and a folder with one."""
    folder = Path("folder")
    folder.mkdir()
    for name, data in tfjs_model([placeholder("x", [1, 3]), node("y", "Relu", "x")], {}).items():
        (folder / name).write_bytes(data)
    with served_hub() as served, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", served.address)
        patch.setenv("WEBINFER_CACHE", str(Path("cache").absolute()))
        served.files = {"owner/name/onnx/model.onnx": doubled()}
        names: Names = {"webinfer": webinfer}
        names[ELSEWHERE] = {"https://example.org": f"{served.address}/bytes/owner/name/onnx"}
        yield names
        assert [info.name for info in names["session"].inputs] == ["x"]
        served.files = {"owner/name/a-Q4_K_M.gguf": tiny_decoder(tokens=WORDS, more=FACTS, context=96)}
        async with await names["chat"] as generator:
            assert isinstance(await generator.run(CHAT, max_tokens=3), str)


@asynccontextmanager
async def decoder(text: str) -> AsyncIterator[Names]:
    """A session that has a past, its first token, and a choice that ends after three."""
    from tests.session.test_kv_cache import decoder_file

    chosen: list[int] = []

    def choose(logits: Any) -> int:
        chosen.append(int(logits.numpy()[0, -1].argmax()))
        return -1 if len(chosen) == 3 else chosen[-1]

    session = await webinfer.load(decoder_file(), backend="wasm")
    names: Names = {"session": session, "token": 1, "end": -1, "choose": choose, "np": np}
    yield names
    assert names["cache"].length == 3
    session.close()


@asynccontextmanager
async def picture(text: str) -> AsyncIterator[Names]:
    """model.onnx and folder/model.json: the negative of a picture."""
    file = onnx_file([["Neg", ["input"], ["y"]]], {"input": ("FLOAT", ["n", 3, "height", "width"])})
    Path("model.onnx").write_bytes(file)
    Path("folder").mkdir()
    for name, data in tfjs_model([placeholder("input", [1, 3, 224, 224]), node("y", "Neg", "input")], {}).items():
        Path("folder", name).write_bytes(data)
    pixels = np.random.default_rng(1).random((1, 3, 224, 224), np.float32)
    names: Names = {"webinfer": webinfer, "picture": pixels}
    yield names
    (output,) = names["outputs"].values()
    assert (output.numpy() == -pixels).all()
    names["session"].close()


@asynccontextmanager
async def labels(text: str) -> AsyncIterator[Names]:
    """model.onnx with labels in it, and our stand-in under the name of the library."""
    nodes, inputs = [["Mul", ["input", "two"], ["y"]]], {"input": ("FLOAT", [1, 3])}
    file = onnx_file(nodes, inputs, {"two": np.float32([2])}, {"labels": "cat,dog"})
    Path("model.onnx").write_bytes(file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", webinfer.compat.onnxruntime)
        names: Names = {"picture": np.ones((1, 3), np.float32)}
        yield names
    assert names["labels"] == "cat,dog"
    assert names["scores"].tolist() == [[2, 2, 2]]


@asynccontextmanager
async def language(text: str) -> AsyncIterator[Names]:
    """model.gguf: a language model of a few kilobytes with an open chat template."""
    Path("model.gguf").write_bytes(tiny_decoder(tokens=WORDS, more=FACTS, context=4096))
    names: Names = {"webinfer": webinfer, "chat": CHAT}
    yield names
    if "texts" in names:
        assert len(names["texts"]) == 4
    else:
        assert isinstance(names["text"], str)
        assert names["logits"].shape[0] == 1
        assert names["hidden"].shape[1] == len(names["vector"])


@asynccontextmanager
async def threads(text: str) -> AsyncIterator[Names]:
    """model.onnx; the function of the block answers."""
    Path("model.onnx").write_bytes(doubled())
    names: Names = {"threading": threading, "webinfer": webinfer}
    yield names
    outputs = await names["answer"](np.ones((1, 3), np.float32))
    assert outputs["y"].tolist() == [2, 2, 2]
    names["local"].session.close()


@asynccontextmanager
async def pool(text: str) -> AsyncIterator[Names]:
    """model.onnx; the block is a script, in a file of its own because its processes import it."""
    Path("model.onnx").write_bytes(doubled())
    Path("script.py").write_text(f"import numpy as np\nimport webinfer\n\ninputs = [np.ones((1, 3), 'f4')] * 5\n{text}")
    yield {"__name__": "documentation"}
    path = os.pathsep.join(filter(None, [str(ROOT / "web/python"), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "script.py"], env=environment, capture_output=True, text=True)
    assert done.stdout.count("[[2., 2., 2.]]") == 5, done.stderr


@asynccontextmanager
async def wsgi(text: str) -> AsyncIterator[Names]:
    """model.onnx; the application of the block answers a request."""
    Path("model.onnx").write_bytes(doubled())
    names: Names = {}
    yield names
    heads: list[str] = []
    body = np.float32([[1, 2, 3]]).tobytes()
    answer = names["app"](
        {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}, lambda status, _: heads.append(status)
    )
    assert heads == ["200 OK"]
    assert np.frombuffer(b"".join(answer), "f4").tolist() == [2, 4, 6]
    names["session"].close()


@asynccontextmanager
async def chat(text: str) -> AsyncIterator[Names]:
    """A language model of a few kilobytes under the name of the one that the block opens."""
    row, data = MODELS["smollm2-135m"], tiny_decoder(tokens=WORDS, more=FACTS, context=4096)
    Path("models").mkdir()
    Path("models", row.file).write_bytes(data)
    printed: list[str] = []
    names: Names = {"print": lambda piece, end: printed.append(piece)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEBINFER_MODELS", str(Path("models").absolute()))
        patch.setitem(MODELS, row.name, replace(row, sha256=hashlib.sha256(data).hexdigest()))
        yield names
    assert printed


@asynccontextmanager
async def exporters(text: str) -> AsyncIterator[Names]:
    """A module, a pipeline and a network, with stand-ins for the libraries that export them."""
    onnx = pytest.importorskip("onnx")

    def export(module: Any, given: Any, file: Any, **options: Any) -> None:
        file.write(doubled())

    class Module:
        training = False

        def __call__(self, *given: Any) -> None:
            assert given == ("sample",)

        def eval(self) -> None: ...

        def train(self, mode: bool) -> None: ...

    class Network:
        def export(self, path: str, **options: Any) -> None:
            Path(path).write_bytes(doubled())

    torch = types.SimpleNamespace(no_grad=nullcontext, onnx=types.SimpleNamespace(export=export))
    skl2onnx = types.SimpleNamespace(to_onnx=lambda *given, **options: onnx.load_from_string(doubled()))
    names: Names = {"webinfer": webinfer, "module": Module(), "sample": "sample", "network": Network()}
    names |= {"pipeline": types.SimpleNamespace(), "table": np.ones((2, 3), np.float32)}
    with pytest.MonkeyPatch.context() as patch:
        for name, library in {"torch": torch, "skl2onnx": skl2onnx, "keras": types.ModuleType("keras")}.items():
            patch.setitem(sys.modules, name, library)
        yield names
    with names["session"] as session:
        assert session.run(np.ones((1, 3), np.float32))["y"].tolist() == [2, 2, 2]
    assert Path("model.onnx").read_bytes() == doubled()


@asynccontextmanager
async def package(text: str) -> AsyncIterator[None]:
    """A package that imports onnxruntime, where that is not installed: in a Python of its own."""
    folder = Path("packages").absolute()
    link_engine(folder)
    (folder / "magika.py").write_text("import onnxruntime\n\nprint(onnxruntime.InferenceSession.__module__)\n")
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{text}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("webinfer.compat.onnxruntime"), done.stderr
    yield None


GIVEN: dict[str, Given] = {
    "sentences": sentences, "hub": hub, "decoder": decoder, "picture": picture, "labels": labels,
    "language": language, "threads": threads, "pool": pool, "wsgi": wsgi, "chat": chat, "exporters": exporters,
    "package": package,
}  # fmt: skip
