"""`measure throughput`: MobileNet v2 in batches and matrix products on a GPU, with PyTorch's figures beside them."""

import argparse
import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from build_scripts.bench.page_reports import posted
from build_scripts.errors import BuildError
from build_scripts.paths import BENCH_OUTPUT, BENCHMARKS, ENGINE, ZOO
from build_scripts.setup.sequence import set_up

MODEL = "mobilenet_v2_100_224_quant"
BATCH = 32
SIZE = 224


def run(argv: list[str]) -> int:
    """0 when the site or the table is written."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure throughput", description=__doc__)
    parser.add_argument("--models", type=Path, default=ZOO, help=f"the folder that holds {MODEL}.tflite")
    parser.add_argument("--static", type=Path, default=BENCH_OUTPUT / "throughput_site", help="where the site goes")
    parser.add_argument("--report", type=Path, help="make a table of lines that page and native_gpu.py printed")
    options = parser.parse_args(argv)
    if options.report:
        print(table(posted(options.report.read_text())))
        return 0
    model = options.models / f"{MODEL}.tflite"
    if not model.is_file():
        raise BuildError(f"{model} is missing; name the folder that has it with --models")
    set_up()
    write_site(options.static, model)
    print(f"{options.static}: open throughput.html there and keep what it posts to /log; for PyTorch's figures run")
    print("python3 native_gpu.py data in that folder; --report LINES makes a table of both")
    return 0


def write_site(site: Path, model: Path) -> None:
    """The page, the engine, the model, its images and the answers it must give."""
    if str(ENGINE.parent) not in sys.path:
        sys.path.insert(0, str(ENGINE.parent))  # the engine of this checkout
    from build_scripts.bench.site import copy_engine
    from build_scripts.bench.tfjs_graph import export_graph

    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(BENCHMARKS / "throughput", site)
    (site / "systems").mkdir()
    shutil.copyfile(BENCHMARKS / "page" / "systems" / "webinfer.js", site / "systems" / "webinfer.js")
    copy_engine(site / "engine")
    data = site / "data"
    data.mkdir()
    shutil.copyfile(model, data / "model.tflite")
    shape = (BATCH, SIZE, SIZE, 3)
    (data / "shape.json").write_text(json.dumps(shape))
    images, results = asyncio.run(answers(model, shape))
    (data / "images.bin").write_bytes(images)
    (data / "results.bin").write_bytes(results)
    export_graph(float_graph(model, shape), data, "graph")
    for kind in ("json", "bin"):
        (data / f"graph.tfjs.{kind}").rename(data / f"graph.{kind}")


async def answers(model: Path, shape: tuple[int, ...]) -> tuple[bytes, bytes]:
    """Seeded images, and what the wasm backend makes of them one by one."""
    import numpy as np

    import webinfer

    images = np.random.default_rng(0).uniform(-1, 1, shape).astype("<f4")
    options = {"backend": "wasm", "dequantize": True}
    with await webinfer.load(model, shapes={"input": (1, *shape[1:])}, **options) as session:  # type: ignore[arg-type]
        results = [next(iter((await session.run(image[None])).values())).tobytes() for image in images]
    return images.tobytes(), b"".join(results)


def float_graph(model: Path, shape: tuple[int, ...]) -> Any:
    """The network in float32, all of its weights as plain constants."""
    from webinfer.backends.reference.arrays import constant_array
    from webinfer.dtypes import DType
    from webinfer.graph.ir import Constant
    from webinfer.importers import read_model
    from webinfer.passes.dequantize import dequantize
    from webinfer.passes.pipeline import optimize

    graph = read_model(model.read_bytes(), MODEL, {"input": shape})
    dequantize(graph)
    optimize(graph)
    for node in list(graph.nodes):
        source = node.inputs[0]
        if node.op.name == "dequantize" and source is not None and source.constant is not None:
            quant = source.type.quant
            assert quant is not None
            assert quant.axis is None
            real = (constant_array(source).astype("f4") - quant.zero_points[0]) * quant.scales[0]
            node.output.constant = Constant(memoryview(real.astype("<f4").tobytes()), DType.FLOAT32)
            graph.nodes.remove(node)
    return graph


def table(lines: list[list[Any]]) -> str:
    """Markdown: what was measured, ours, PyTorch's best, the ratio."""
    ours = {row["label"]: row for key, row in lines if key == "row"}
    native: dict[str, Any] = {}
    for key, row in lines:
        if key == "native":
            best = native.get(row["label"])
            if best is None or row["resident_ms"]["median"] < best["resident_ms"]["median"]:
                native[row["label"]] = row
    out = ["| on the GPU, float32 | webinfer | PyTorch | share |", "|---|--:|--:|--:|"]
    for label, row in ours.items():
        key, unit = ("tflops", "TFLOP/s") if "tflops" in row else ("images_per_s", "images/s")
        rival = native.get(label)
        text = f"{rival[key]:,.1f}" if rival else "–"
        share = f"{row[key] / rival[key]:.2f}" if rival else "–"
        out.append(f"| {label} | {row[key]:,.1f} {unit} | {text} | {share} |")
    for label, row in ours.items():
        if "latency_ms" in row:
            once, first = row["latency_ms"]["median"], row["load_ms"] + row["first_ms"]
            out.append(
                f"\n{label}: one run with readback {once:.2f} ms, {row['in_flight_ms']:.2f} ms with three in flight;"
                f" load and first run {first:.0f} ms; {row['dispatches']} dispatches;"
                f" largest difference {row['max_abs_diff']:.1e}"
            )
    return "\n".join(out)
