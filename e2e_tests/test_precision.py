"""A session that stores float16, in the page's worker: half the memory, nearly the same answers."""

from __future__ import annotations

from e2e_tests.pages import DemoPage
from e2e_tests.test_gpu_buffers import in_worker

HALVES = """
async def test():
    async def load(precision):
        return await webinfer.load("blazeface_short_range", backend="webgpu", strict=True, precision=precision)

    wide, narrow = await load("float32"), await load("float16")
    outputs = [await session.run(image(1)) for session in (wide, narrow)]
    differences = []
    for name, tensor in outputs[0].items():
        want, got = tensor.tolist(), outputs[1][name].tolist()
        differences.append(max(abs(a - b) for a, b in zip(want, got)) / (max(want) - min(want)))
    try:
        await webinfer.load("blazeface_short_range", backend="wasm", precision="float16")
        refusal = ""
    except webinfer.InputError as error:
        refusal = str(error)
    found = {
        "differences": differences,
        "constants": narrow.memory().constants / wide.memory().constants,
        "arena": narrow.memory().arena / wide.memory().arena,
        "kernels": [row.kernel for row in wide.plan().rows] == [row.kernel for row in narrow.plan().rows],
        "refusal": refusal,
    }
    wide.close()
    narrow.close()
    return found
"""


def test_float16_halves_memory_and_hardly_changes_answers(face_page: DemoPage) -> None:
    found = in_worker(face_page, HALVES)
    assert len(found["differences"]) == 2
    assert 0 < max(found["differences"]) < 1e-2
    assert found["constants"] < 0.55
    assert found["arena"] < 0.55
    assert found["kernels"]
    assert "is for webgpu" in found["refusal"]


HARDWARE = """
import math

async def test():
    from webinfer.host import current

    numbers = random.Random(3)

    def weights(*shape):
        return array("f", (numbers.uniform(-0.2, 0.2) for _ in range(math.prod(shape)))), shape

    g = webinfer.GraphBuilder("block")
    x = g.node("conv2d", g.input("x", (1, 16, 16, 8)), g.constant(*weights(24, 3, 3, 8)), pads=(1, 1, 1, 1))
    y = g.node("depthwise_conv2d", x, g.constant(*weights(1, 3, 3, 24)), pads=(1, 1, 1, 1))
    g.output(g.node("conv2d", y, g.constant(*weights(40, 1, 1, 24))), "y")
    given, _ = weights(1, 16, 16, 8)
    device = await current().gpu()

    async def answers(software, **options):
        device.software = software  # what is chosen for hardware runs here too, slowly
        with await webinfer.load(g, backend="webgpu", strict=True, **options) as session:
            outputs = await session.run(given)
            kernels = {row.kernel for row in session.plan().rows}
            return [tensor.tolist() for tensor in outputs.values()], kernels, session.memory().constants

    want, _, wide = await answers(True)
    got, kernels, constants = await answers(False, precision="float16")
    device.software = True
    spans = [max(numbers) - min(numbers) for numbers in want]
    difference = max(abs(a - b) / span for p, q, span in zip(want, got, spans) for a, b in zip(p, q))
    return {"difference": difference, "kernels": sorted(kernels), "constants": constants / wide}
"""


def test_kernels_for_hardware_read_float16_in_a_browser_too(face_page: DemoPage) -> None:
    found = in_worker(face_page, HARDWARE)
    assert found["difference"] < 1e-2
    assert {"conv2d_split_k", "depthwise_pointwise"} <= set(found["kernels"])
    assert found["constants"] < 0.55
