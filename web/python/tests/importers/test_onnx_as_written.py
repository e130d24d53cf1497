"""ONNX files as exporters and converters write them, beside ONNX Runtime: what it runs must run."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from tests.importers.test_onnx import _model, _n, _read, _run  # noqa: E402
from tests.session.test_open_sizes import judged  # noqa: E402

import webinfer  # noqa: E402
from webinfer.errors import LimitError, ModelFormatError  # noqa: E402

F = TensorProto.FLOAT
X = np.float32([[1, -2, 3], [4, 5, -6]])
KINDS = {"f": TensorProto.FLOAT, "l": TensorProto.INT64, "?": TensorProto.BOOL, "B": TensorProto.UINT8,
         "b": TensorProto.INT8, "i": TensorProto.INT32}  # fmt: skip


def _built(nodes: list[Any], inputs: dict[str, Any], outputs: str, **more: Any) -> bytes:
    shapes = {name: (KINDS[x.dtype.char], list(x.shape)) for name, x in inputs.items()}
    return _model(nodes, shapes, dict.fromkeys(outputs.split()), **more)


def _agree(nodes: list[Any], inputs: dict[str, Any], outputs: str = "y", atol: float = 0.0, **more: Any) -> None:
    data = _built(nodes, inputs, outputs, **more)
    got = asyncio.run(_run(data, "wasm", **inputs))
    for name, want in zip(outputs.split(), judged(data, inputs), strict=True):
        np.testing.assert_allclose(got[name], want, atol=atol, rtol=1e-6 if atol else 0)


def _graph(nodes: list[Any], inputs: str, outputs: str, made: Any = helper.make_tensor_value_info) -> Any:
    infos = [helper.make_tensor_value_info(name, F, None) for name in inputs.split()]
    return helper.make_graph(nodes, "inside", infos, [made(name, F, None) for name in outputs.split()])


# ----- the order of nodes


def test_nodes_may_stand_before_what_they_read() -> None:
    _agree([_n("Add", "b c", "y"), _n("Relu", "c", "b"), _n("Cast", "x", "c", to=1)], {"x": X})


def test_graphs_inside_of_nodes_are_sorted_and_wait_for_what_they_read() -> None:
    yes, no = (
        _graph([_n("Add", f"t{o} x", o), _n(kind, "late", f"t{o}")], "", o) for o, kind in (("p", "Relu"), ("q", "Neg"))
    )
    choice = _n("If", "c", "y", then_branch=yes, else_branch=no)
    data = _built([choice, _n("Exp", "x", "late")], {"x": X, "c": np.array(True)}, "y")
    for c, want in ((True, np.exp(X) + X), (False, X - np.exp(X))):
        got = asyncio.run(_run(data, "reference", x=X, c=np.array(c)))["y"]
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_nodes_that_wait_for_each_other_are_a_damaged_file() -> None:
    nodes = [_n("Relu", "a", "b"), _n("Neg", "b", "a"), _n("Add", "a x", "y")]
    with pytest.raises(ModelFormatError, match="computed by no operator before it"):
        _read(_built(nodes, {"x": X}, "y"))


# ----- sizes without a name


@pytest.mark.parametrize("name", ["?", "None", "-1", ""])
def test_sizes_that_are_called_nothing_are_each_its_own(name: str) -> None:
    nodes = [_n("ReduceSum", "a", "s", keepdims=1), _n("Add", "s b", "y")]
    data = _model(nodes, {"a": [name] * 2, "b": [name] * 2}, {"y": None})

    async def run() -> Any:
        with await webinfer.load(data, backend="reference") as session:
            return (await session.run({"a": np.ones((2, 3), "f4"), "b": np.ones((2, 5), "f4")}))["y"].numpy()

    np.testing.assert_array_equal(asyncio.run(run()), np.full((2, 5), 7, "f4"))


# ----- slices, bounds


def test_one_axis_is_empty_and_another_runs_backwards() -> None:
    nodes = [_n("Slice", "x starts ends axes steps", "empty"), _n("Concat", "empty x", "y", axis=0)]
    parts = {"starts": [1, -1], "ends": [1, -9], "axes": [0, 1], "steps": [1, -1]}
    _agree(nodes, {"x": X}, "empty y", constants={name: np.array(v) for name, v in parts.items()})


@pytest.mark.parametrize("bounds", [(np.nan, 1), (0, np.nan), (np.nan, np.nan)])
def test_a_bound_that_is_not_a_number_is_none(bounds: tuple[float, float]) -> None:
    low, high = map(np.float32, bounds)
    x = np.float32([-3, 0.5, 7, np.nan])
    _agree([_n("Clip", "x low high", "y")], {"x": x}, constants={"low": low, "high": high})
    _agree([_n("Clip", "x low high", "y")], {"x": x, "low": np.array(low), "high": np.array(high)})


# ----- functions, sequences


def test_functions_call_each_other_deeply() -> None:
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    bodies = [[_n("Relu", "a", "b")]]
    bodies += [[_n(f"F{i}", "a", "t", domain="local"), _n("Add", "t a", "b")] for i in range(19)]
    functions = [helper.make_function("local", f"F{i}", ["a"], ["b"], body, domains) for i, body in enumerate(bodies)]
    data = _built([_n("F19", "x", "y", domain="local")], {"x": X}, "y", functions=functions)
    np.testing.assert_array_equal(asyncio.run(_run(data, x=X))["y"], np.maximum(X, 0) + 19 * X)
    endless = helper.make_function("local", "F", ["a"], ["b"], [_n("F", "a", "b", domain="local")], domains)
    with pytest.raises(LimitError, match="depth of functions"):
        _read(_built([_n("F", "x", "y", domain="local")], {"x": X}, "y", functions=[endless]))


def test_a_graph_maps_sequences() -> None:
    body = _graph([_n("Mul", "e g", "f"), _n("Add", "e h", "k")], "e g h", "f k")
    nodes = [
        _n("SplitToSequence", "x", "rows", axis=0), _n("Identity", "rows", "same"),
        _n("SequenceMap", "rows same two", "products sums", body=body),
        _n("ConcatFromSequence", "products", "y", axis=0), _n("ConcatFromSequence", "sums", "z", axis=1),
    ]  # fmt: skip
    _agree(nodes, {"x": X}, "y z", constants={"two": np.float32(2)})


def test_a_branch_may_give_a_sequence() -> None:
    made = helper.make_tensor_sequence_value_info
    yes = _graph([_n("Identity", "rows", "p")], "", "p", made)
    no = _graph([_n("SequenceErase", "rows", "q")], "", "q", made)
    nodes = [_n("SplitToSequence", "x", "rows", axis=0), _n("If", "c", "r", then_branch=yes, else_branch=no),
             _n("ConcatFromSequence", "r", "y", axis=0)]  # fmt: skip
    for c in (True, False):
        _agree(nodes, {"x": X, "c": np.array(c)})


# ----- products with packed weights


@pytest.mark.parametrize("zeros", ["none", "packed", "real"])
def test_weights_of_two_bits(zeros: str) -> None:
    draw = np.random.default_rng(0)
    constants = {"w": draw.integers(0, 256, (6, 3, 4), np.uint8), "s": draw.random(18).astype("f4")}
    constants |= {"z": draw.integers(0, 256, 6, np.uint8)} if zeros == "packed" else {}
    constants |= {"z": draw.random((6, 3)).astype("f4")} if zeros == "real" else {}
    sizes = {"K": 40, "N": 6, "bits": 2, "block_size": 16}
    node = _n("MatMulNBits", "x w s" + " z" * (zeros != "none"), "y", domain="com.microsoft", **sizes)
    _agree([node], {"x": draw.normal(size=(3, 40)).astype("f4")}, atol=1e-4, constants=constants)


# ----- operators of ONNX Runtime, small integers


def test_operators_that_onnx_took_over_from_onnx_runtime_have_both_names() -> None:
    own = {"domain": "com.microsoft"}
    nodes = [
        _n("Pad", "x pads", "p", **own), _n("Trilu", "p", "t", upper=0, **own), _n("ExpandDims", "t axis", "e", **own),
        _n("Range", "zero four", "r", **own), _n("Add", "e r", "y"),
    ]  # fmt: skip
    constants = {"pads": np.array([1, 0, 0, 1]), "axis": np.int32(-1), "zero": np.float32(0), "four": np.float32(4)}
    _agree(nodes, {"x": X}, constants=constants)


def test_the_largest_bytes_are_found() -> None:
    x = np.random.default_rng(4).permutation(24).reshape(4, 6)
    for char, shift in (("B", 200), ("b", -12)):
        nodes = [_n("TopK", "x two", "v i", axis=0), _n("Cast", "v", "y", to=1), _n("Cast", "i", "z", to=1)]
        _agree(nodes, {"x": (x + shift).astype(char)}, "y z", constants={"two": np.array([2])})
    pool = _n("NhwcMaxPool", "x", "v", domain="com.microsoft", kernel_shape=[2, 2], strides=[2, 2])
    _agree([pool, _n("Cast", "v", "y", to=1)], {"x": x.astype("u1").reshape(1, 4, 3, 2)})


@pytest.mark.parametrize(("kind", "activations", "numbers"), [
    ("LSTM", ["HardSigmoid", "Tanh", "Tanh"], {}),
    ("LSTM", ["HardSigmoid", "LeakyRelu", "ScaledTanh"] * 2,
     {"activation_alpha": [0.3, 0.1, 0.5, 0.25, 0.2, 0.6], "activation_beta": [0.4, 0.9, 0.45, 0.8]}),
    ("GRU", ["HardSigmoid", "Relu"], {"activation_alpha": [0.3]}),
    ("RNN", ["Elu"], {}), ("RNN", ["Affine"], {"activation_alpha": [0.5], "activation_beta": [0.1]}),
])  # fmt: skip
def test_recurrent_layers_with_other_functions(kind: str, activations: list[str], numbers: dict[str, Any]) -> None:
    """Keras' hard sigmoid for example; in both directions each has its own."""
    draw = np.random.default_rng(6)
    gates, many = {"LSTM": (4, 3), "GRU": (3, 2), "RNN": (1, 1)}[kind]
    ways = len(activations) // many
    shapes = {"w": (ways, gates * 3, 4), "r": (ways, gates * 3, 3), "b": (ways, 2 * gates * 3)}
    weights = {name: draw.normal(size=shape).astype("f4") for name, shape in shapes.items()}
    direction = "bidirectional" if ways == 2 else "reverse"
    node = _n(kind, "x w r b", "y", hidden_size=3, activations=activations, direction=direction, **numbers)
    _agree([node], {"x": draw.normal(size=(5, 2, 4)).astype("f4")}, atol=1e-5, constants=weights)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_regions_are_sampled_as_often_as_they_have_pixels(mode: str, coordinates: str) -> None:
    draw = np.random.default_rng(5)
    first = draw.uniform(0, 6, (5, 2))
    regions = np.concatenate([first, first + draw.uniform(0.2, 7, (5, 2))], 1).astype("f4")
    sizes = {"output_height": 2, "output_width": 3, "sampling_ratio": 0, "spatial_scale": 0.9}
    node = _n("RoiAlign", "x r at", "y", mode=mode, coordinate_transformation_mode=coordinates, **sizes)
    inputs = {"x": draw.normal(size=(2, 3, 9, 8)).astype("f4"), "r": regions, "at": draw.integers(0, 2, 5)}
    _agree([node], inputs, atol=1e-5)


# ----- resampling


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_corners_are_aligned_at_scales_that_leave_a_part(mode: str) -> None:
    x = np.random.default_rng(1).normal(size=(1, 2, 5, 4)).astype("f4")
    node = _n("Resize", "x - scales", "y", mode=mode, coordinate_transformation_mode="align_corners")
    _agree([node], {"x": x}, atol=1e-5, constants={"scales": np.float32([1, 1, 1.5, 0.6])})


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_ties_of_the_nearest_element_fall_as_float32_has_them(rounding: str) -> None:
    """A sample between two elements lies where the runtime's arithmetic puts it: float32, in its order."""
    nodes, constants = [], {}
    places = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
    for place, scale in [*itertools.product(places, (1.2, 1.5, 2.5, 0.7)), ("half_pixel_symmetric", 1.5)]:
        name = f"y{len(nodes)}"
        how = {"nearest_mode": rounding, "coordinate_transformation_mode": place}
        nodes.append(_n("Resize", f"x - s{name}", name, mode="nearest", **how))
        constants[f"s{name}"] = np.float32([1, scale])
    x = np.arange(7, dtype="f4")[None]
    _agree(nodes, {"x": x}, " ".join(node.output[0] for node in nodes), constants=constants)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("region", [(-0.2, 0.1, 0.7, 1.3), (0.4, 0.2, -0.3, 0.9), (1.2, 0.0, 1.6, 1.0)])
def test_what_lies_beyond_the_picture_is_one_number(mode: str, region: tuple[float, ...]) -> None:
    """In front of it, behind it, from back to front, and all of it."""
    top, left, bottom, right = region
    x = np.random.default_rng(2).normal(size=(1, 2, 5, 4)).astype("f4")
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.5}
    constants = {"roi": np.float32([0, 0, top, left, 1, 1, bottom, right]), "sizes": np.array([1, 2, 7, 9])}
    _agree([_n("Resize", "x roi - sizes", "y", mode=mode, **crop)], {"x": x}, atol=1e-5, constants=constants)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i4"])
@pytest.mark.parametrize("scale", [2.0, 0.5, 2.5])
def test_integers_are_interpolated(dtype: str, scale: float) -> None:
    x = np.random.default_rng(3).integers(0, 127, (1, 2, 4, 6)).astype(dtype)
    nodes = [_n("Resize", "x - scales", "r", mode="linear"), _n("Cast", "r", "y", to=1)]
    _agree(nodes, {"x": x}, atol=1.0, constants={"scales": np.float32([1, 1, scale, scale])})


def test_interpolated_integers_are_cut_and_not_rounded() -> None:
    nodes = [_n("Resize", "x - scales", "r", mode="linear"), _n("Cast", "r", "y", to=1)]
    _agree(nodes, {"x": np.uint8([[0, 3, 100]])}, constants={"scales": np.float32([1, 2])})


def test_the_least_divisor_of_a_mean_variance_normalization_is_added_to_the_deviation() -> None:
    """Not to the variance: a line of nearly equal numbers tells, whose two ends lie at 1 and -1."""
    x = np.float32([[1e-4, 3e-4], [1e-5, 2e-5], [3, -3], [2, 2]])
    got = asyncio.run(_run(_built([_n("MeanVarianceNormalization", "x", "y", axes=[1])], {"x": x}, "y"), "wasm", x=x))
    np.testing.assert_allclose(got["y"], [[-1, 1], [-1, 1], [1, -1], [0, 0]], atol=3e-4)


@pytest.mark.parametrize(("op", "axis"), [("ReverseSequence", 1), ("TensorScatter", 0)])
def test_sequences_of_no_batch_stay_as_they_are(op: str, axis: int) -> None:
    nodes = [_n("Slice", "x none none axes", "e"), _n(op, "e e" if op == "TensorScatter" else "e lengths", "y")]
    constants = {"none": np.zeros(1, "i8"), "axes": np.array([axis]), "lengths": np.zeros(0, "i8")}
    data, x = (
        _built(nodes, {"x": np.zeros((3, 4, 2), "f4")}, "y", constants=constants, opset=24),
        np.zeros((3, 4, 2), "f4"),
    )
    assert asyncio.run(_run(data, "wasm", x=x))["y"].shape == tuple(
        0 if i == axis else n for i, n in enumerate(x.shape)
    )
