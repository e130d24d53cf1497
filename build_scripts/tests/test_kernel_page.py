"""What the kernel page replays: plain data that names every buffer, shader and dispatch."""

import json

from build_scripts.bench.kernel_cases import case_of


def test_a_recording_is_whole_and_plain() -> None:
    from webinfer.backends.webgpu.lowerings.variants import TILES
    from webinfer.graph.ir import TensorType, Value, apply
    from webinfer.ops import OPS
    from webinfer.ops.matmul import MatmulAttrs

    texts: dict[str, int] = {}
    values = [Value(name, TensorType((64, 64))) for name in "ab"]
    case = json.loads(json.dumps(case_of("64", apply(OPS["matmul"], values, MatmulAttrs(), "matmul"), texts)))
    assert case["flops"] == 2 * 64**3
    assert set(case["variants"]) & set(TILES)
    for record in case["variants"].values():
        assert len(record["filled"]) == 2
        assert record["output"][1] == 4 * 64 * 64
        for shader, bindings in record["pipelines"]:
            assert list(texts)[shader].count("@binding") == len(bindings)
        for pipeline, spans, groups in record["dispatches"]:
            assert len(spans) == len(record["pipelines"][pipeline][1])
            assert all(offset + size <= (*record["buffers"], 1 << 20)[number] for number, offset, size in spans)
            assert min(groups) >= 1


def test_the_page_knows_every_group() -> None:
    from build_scripts.bench.kernel_cases import BATCHED, MODELS
    from build_scripts.paths import ROOT

    page = (ROOT / "e2e_tests" / "benchmarks" / "kernels" / "kernels.js").read_text()
    for group in ("matmul", "interop", "sums", "fused", "whole", *MODELS, BATCHED[0]):
        assert f'"{group}"' in page
