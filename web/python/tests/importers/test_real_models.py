"""Published models: all are read, verified and printed, and the passes leave the nodes that they should."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from webinfer.graph.printer import print_graph
from webinfer.graph.verify import verify
from webinfer.importers import read_model
from webinfer.passes.pipeline import optimize

ROOT = Path(__file__).parents[4]
SHARED = ROOT.parent / "shared" / "models"
NPM = ROOT / "web" / "node_modules" / "@mediapipe"

NODES = {  # operators left after the passes
    "blazeface_back_2021": {"conv2d": 37, "depthwise_conv2d": 32, "max_pool2d": 3, "reshape": 4, "concat": 2},
    "blazeface_front_2020": {"conv2d": 21, "depthwise_conv2d": 16, "max_pool2d": 3, "reshape": 4, "concat": 2},
    "blazeface_full_range": {
        "conv2d": 49,
        "depthwise_conv2d": 40,
        "max_pool2d": 4,
        "resize_bilinear": 3,
        "add": 3,
        "reshape": 2,
    },
    "blazeface_full_range_sparse": {
        "conv2d": 49,
        "depthwise_conv2d": 42,
        "resize_bilinear": 3,
        "add": 3,
        "depth_to_space": 2,
        "reshape": 2,
    },
    "blazeface_short_range": {"conv2d": 21, "depthwise_conv2d": 16, "max_pool2d": 3, "reshape": 4, "concat": 2},
    "bodypix_075_512_512_quant_decoder": {
        "quantize": 7,
        "conv2d": 21,
        "depthwise_conv2d": 13,
        "concat": 1,
        "dequantize": 4,
        "posenet_decoder": 1,
    },
    "bodypix_075_720_1280_quant": {"quantize": 7, "conv2d": 21, "depthwise_conv2d": 13, "concat": 1},
    "face_mesh": {"conv2d": 25, "depthwise_conv2d": 20, "max_pool2d": 5},
    "face_mesh_2020": {"conv2d": 25, "depthwise_conv2d": 20, "max_pool2d": 5},
    "face_mesh_attention": {
        "conv2d": 80,
        "depthwise_conv2d": 66,
        "max_pool2d": 16,
        "reshape": 11,
        "mul": 4,
        "landmarks_to_transform_matrix": 3,
        "transform_tensor_bilinear": 3,
        "transform_landmarks": 5,
    },
    "mobilenet_v1_025_128_quant": {
        "conv2d": 15,
        "depthwise_conv2d": 13,
        "average_pool2d": 1,
        "reshape": 1,
        "softmax": 1,
    },
    "mobilenet_v1_075_192_quant": {
        "conv2d": 15,
        "depthwise_conv2d": 13,
        "average_pool2d": 1,
        "reshape": 1,
        "softmax": 1,
    },
    "mobilenet_v2_100_224_quant": {
        "conv2d": 36,
        "depthwise_conv2d": 17,
        "add": 10,
        "average_pool2d": 1,
        "reshape": 1,
        "softmax": 1,
    },
    "pose_detector": {
        "conv2d": 45,
        "depthwise_conv2d": 28,
        "depth_to_space": 3,
        "resize_bilinear": 2,
        "add": 2,
        "reshape": 6,
        "relu6": 2,
        "concat": 2,
    },
    "pose_landmarks_lite": {
        "conv2d": 54,
        "depthwise_conv2d": 34,
        "resize_bilinear": 5,
        "add": 4,
        "max_pool2d": 2,
        "reshape": 3,
    },
    "posenet_075_353_481_quant": {"conv2d": 18, "depthwise_conv2d": 13, "concat": 1},
    "selfie_segmentation": {
        "conv2d": 43,
        "depthwise_conv2d": 11,
        "average_pool2d": 10,
        "mul": 10,
        "resize_bilinear": 3,
        "add": 9,
        "conv_transpose2d": 1,
    },
    "selfie_segmentation_landscape": {
        "conv2d": 43,
        "depthwise_conv2d": 11,
        "reduce_mean": 10,
        "mul": 10,
        "resize_bilinear": 3,
        "add": 9,
        "conv_transpose2d": 1,
    },
}


@pytest.mark.parametrize("name", NODES)
def test_shared_model_is_read_and_fused(name: str) -> None:
    path = SHARED / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"../shared/models/{name}.tflite is not there")
    graph = read_model(path.read_bytes(), name)
    verify(graph)
    optimize(graph)
    verify(graph)
    assert Counter(node.op.name for node in graph.nodes) == NODES[name]
    assert print_graph(graph).startswith(f"graph {name}(%")
    assert optimize(graph) == [(step, 0) for step, _ in optimize(graph)], "a second round finds nothing more"


@pytest.mark.parametrize("package", ["face_detection", "selfie_segmentation"])
def test_npm_model_is_read(package: str) -> None:
    paths = sorted((NPM / package).glob("*.tflite"))
    if not paths:
        pytest.skip(f"web/node_modules/@mediapipe/{package} is not installed")
    for path in paths:
        graph = read_model(path.read_bytes(), path.name)
        optimize(graph)
        verify(graph)
        assert graph.nodes


SMALL = 64  # bytes of constants that may have been computed while the file was read


def test_constants_are_views_of_the_file() -> None:
    path = SHARED / "blazeface_short_range.tflite"
    if not path.exists():
        pytest.skip("../shared/models/blazeface_short_range.tflite is not there")
    data = path.read_bytes()
    graph = read_model(data, "blazeface")
    optimize(graph)
    constants = [v.constant for n in graph.nodes for v in n.inputs if v is not None and v.constant is not None]
    assert len(constants) == 74
    weights = [c for c in constants if c.data.nbytes > SMALL]
    assert len(weights) >= 60
    assert all(c.data.obj is data and c.data.readonly and c.stored == "float16" for c in weights)
