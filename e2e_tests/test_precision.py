"""A session that stores float16, in the page's worker: half the memory, nearly the same answers."""

from __future__ import annotations

from e2e_tests.test_gpu_buffers import Demo, in_worker

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


def test_float16_halves_memory_and_hardly_changes_answers(demo: Demo) -> None:
    found = in_worker(demo("?backend=webgpu"), HALVES)
    assert len(found["differences"]) == 2
    assert 0 < max(found["differences"]) < 1e-2
    assert found["constants"] < 0.55
    assert found["arena"] < 0.55
    assert found["kernels"]
    assert "is for webgpu" in found["refusal"]
