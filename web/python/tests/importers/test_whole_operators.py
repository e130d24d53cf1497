"""Operators that become several nodes, or that need more than random numbers: what LiteRT computes on small models."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffers import flexbuffers
from tests.importers.litert import computed, judged
from tests.importers.runs import RNG, f, real, scalar
from tests.importers.test_loops import _with_subgraphs
from tests.importers.test_variables import _judged, _runs
from tests.importers.tflite_writer import Array, Writer, single

from webinfer.errors import UnsupportedOpError
from webinfer.importers import read_model


def _transform(part: str, shape: tuple[int, ...], lengths: tuple[int, int]) -> bytes:
    w = Writer()
    half = (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
    x, z, flat, y = (
        w.input("x", shape),
        w.tensor("z", half, "complex64"),
        w.tensor("f", half, "complex64"),
        w.tensor("y", half),
    )
    w.node("RFFT2D", [x, w.constant("lengths", list(lengths))], [z])
    w.node("RESHAPE", [z, w.constant("shape", list(half))], [flat])
    w.node(part, [flat], [y])
    return w.finish(y)


@pytest.mark.parametrize("part", ["COMPLEX_ABS", "REAL", "IMAG"])
@pytest.mark.parametrize(
    ("shape", "lengths"), [((3, 1, 16), (1, 16)), ((2, 4, 8), (4, 8)), ((1, 2, 20), (4, 16)), ((2, 3, 5), (2, 8))]
)
def test_a_transform_of_real_rows(part: str, shape: tuple[int, ...], lengths: tuple[int, int]) -> None:
    data, x = _transform(part, shape, lengths), real(*shape)
    np.testing.assert_allclose(computed(read_model(data), [x])[0], judged(data, [x])[0], atol=2e-5)


def _boxes(count: int) -> list[Array]:
    corners = RNG.uniform(0, 1, (count, 2, 2)).astype(np.float32)
    return [
        np.concatenate([corners[:, 0], corners[:, 0] + 0.3 * corners[:, 1]], axis=1),
        RNG.permutation(count) / np.float32(count),
    ]


@pytest.mark.parametrize(
    ("limit", "overlap", "least", "sigma"),
    [(5, 0.3, 0.2, 0.0), (20, 0.5, 0.0, 0.0), (12, 0.6, 0.1, 0.5), (3, 0.0, 2.0, 0.0)],
)
def test_non_maximum_suppression(limit: int, overlap: float, least: float, sigma: float) -> None:
    arrays = [a.astype(np.float32) for a in _boxes(40)]
    numbers = [scalar(limit), scalar(overlap, np.float32), scalar(least, np.float32)]
    results = [((limit,), "int32"), ((limit,), "float32"), ((), "int32")]
    soft = single("NON_MAX_SUPPRESSION_V5", [f(40, 4), f(40), *numbers, scalar(sigma, np.float32)], results)
    hard = single("NON_MAX_SUPPRESSION_V4", [f(40, 4), f(40), *numbers], [results[0], results[2]])
    for data in (soft, hard):
        for got, want in zip(computed(read_model(data), arrays), judged(data, arrays), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-6)


def _svdf(rank: int, quant: bool) -> bytes:
    w = Writer()
    x, y, state = w.input("x", (2, 6)), w.tensor("y", (2, 4)), w.tensor("memory", (2, 4 * rank * 5), is_variable=True)
    features, times = real(4 * rank, 6), real(4 * rank, 5)
    if quant:
        scales = [(np.abs(a).max() / 127, 0) for a in (features, times)]
        weights = [
            w.constant("w", np.rint(a / s[0]).astype(np.int8), s)
            for a, s in zip((features, times), scales, strict=True)
        ]
    else:
        weights = [w.constant("w", a) for a in (features, times)]
    w.node(
        "SVDF",
        [x, *weights, w.constant("b", real(4)), state],
        [y],
        2 if quant else 1,
        rank=rank,
        fused_activation_function=1,
    )
    return w.finish(y)


@pytest.mark.parametrize("rank", [1, 2])
def test_svdf_remembers(rank: int) -> None:
    data, xs = _svdf(rank, False), [real(2, 6) for _ in range(7)]
    np.testing.assert_allclose(_runs(data, xs), _judged(data, xs), atol=1e-5)


def test_shapes_are_broadcast_while_reading() -> None:
    w = Writer()
    x, y, shape = w.input("x", (1, 3)), w.tensor("y", (4, 3)), w.tensor("s", (2,), "int32")
    w.node("BROADCAST_ARGS", [w.constant("a", [4, 1]), w.constant("b", [3])], [shape])
    w.node("BROADCAST_TO", [x, shape], [y], 2)
    data, given = w.finish(y), real(1, 3)
    np.testing.assert_array_equal(computed(read_model(data), [given])[0], judged(data, [given])[0])


def test_a_composite_is_its_decomposition() -> None:
    def main(w: Writer) -> None:
        x, y = w.input("x", (2, 3)), w.tensor("y", (2, 3))
        attributes = np.frombuffer(flexbuffers.Dumps({}), np.uint8)
        options = {"decomposition_subgraph_index": 1, "composite_attributes": attributes}
        w.node("STABLEHLO_COMPOSITE", [x], [y], name="mine.scaled", **options)
        w.graph.outputs = [y]

    def scaled(w: Writer) -> None:
        x, y = w.input("x", (2, 3)), w.tensor("y", (2, 3))
        w.node("MUL", [x, w.constant("factor", np.array(3, np.float32))], [y])
        w.graph.outputs = [y]

    data, x = _with_subgraphs(main, scaled), real(2, 3)
    np.testing.assert_array_equal(computed(read_model(data), [x])[0], judged(data, [x])[0])


def test_complex_numbers_end_in_words_where_nothing_takes_them() -> None:
    w = Writer()
    x, z, y = w.input("x", (2, 1, 8)), w.tensor("z", (2, 1, 5), "complex64"), w.tensor("y", (2, 1, 5), "complex64")
    w.node("RFFT2D", [x, w.constant("lengths", [1, 8])], [z])
    w.node("MUL", [z, z], [y])
    with pytest.raises(UnsupportedOpError, match="input 0 has type COMPLEX64"):
        read_model(w.finish(y))


def test_a_bias_without_a_scale_is_read() -> None:
    def model(scale: float) -> bytes:
        w = Writer()
        x, y = w.input("x", (2, 4), "int8", (0.02, 3)), w.tensor("y", (2, 3), "int8", (0.1, -5))
        weights = w.constant("w", RNG.integers(-127, 128, (3, 4)).astype(np.int8), (0.01, 0))
        bias = w.constant("b", np.array([100, -300, 7], np.int32), (scale, 0))
        w.node("FULLY_CONNECTED", [x, weights, bias], [y], 4)
        return w.finish(y)

    assert len(read_model(model(0.0)).nodes) == len(read_model(model(0.0002)).nodes)


def _stored_lstm(units: int, width: int, zero: int, cell_bits: int) -> bytes:
    """One 8-bit layer as the converter writes it."""
    w = Writer()
    x, y = w.input("x", (1, 2, width), "int8", (0.02, 4)), w.tensor("y", (1, 2, units), "int8", (1 / 128, zero))
    state = [
        w.tensor("h", (1, units), "int8", (1 / 128, zero), is_variable=True),
        w.tensor("c", (1, units), "int16", (2.0 ** (cell_bits - 15), 0), is_variable=True),
    ]

    def weights(*shape: int) -> list[int]:
        return [w.constant("w", RNG.integers(-127, 128, shape).astype(np.int8), (0.008, 0)) for _ in range(4)]

    biases = [w.constant("b", RNG.integers(-2000, 2000, units).astype(np.int32), (0.02 * 0.008, 0)) for _ in range(4)]
    inputs = [x, *weights(units, width), *weights(units, units), -1, -1, -1, *biases, -1, -1, *state, -1, -1, -1, -1]
    w.node(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], 3, fused_activation_function=4, cell_clip=10.0, time_major=False
    )
    w.graph.operators[-1].intermediates = [
        *(w.tensor("i", ()) for _ in range(4)),
        w.tensor("hidden", (), "int8", (1 / 128, zero)),
    ]
    return w.finish(y)


def test_an_lstm_in_8_bits_gives_litert_s_integers() -> None:
    """But for float32's rounding of a gate now and then, which the state then keeps."""
    off: list[Array] = []
    for zero, cell_bits in ((0, 3), (31, 4), (-4, 6)):
        data = _stored_lstm(48, 24, zero, cell_bits)
        xs = [RNG.integers(-128, 128, (1, 2, 24)).astype(np.int8) for _ in range(2)]
        off.append(np.abs(np.array(_runs(data, xs), int) - np.array(_judged(data, xs), int)))
    assert np.max(off) <= 2
    assert np.mean(np.equal(off, 0)) > 0.97


def test_a_sequence_is_one_node_however_long() -> None:
    weights = [real(5, 3), real(5, 5), real(5), ((1, 5), "float32", None, True)]
    for steps in (2, 2000):
        data = single("UNIDIRECTIONAL_SEQUENCE_RNN", [f(1, steps, 3), *weights], [f(1, steps, 5)], 1, time_major=False)
        assert [node.op.name for node in read_model(data).nodes].count("recurrent") == 1
        assert len(read_model(data).nodes) < 9


@pytest.mark.parametrize(
    ("body", "start", "shape", "options"),
    [
        ("STABLEHLO_ADD", 0.0, (3, 2), {"padding": [1, 0, 0, 0]}),
        ("STABLEHLO_MAXIMUM", -3.0, (5, 3), {"padding": [1, 1, 1, 0], "base_dilations": [2, 1]}),
        ("STABLEHLO_MULTIPLY", 1.0, (2, 2), {"window_strides": [2, 1], "window_dilations": [1, 2]}),
    ],
)
def test_windows_whose_reduction_is_a_subgraph(
    body: str, start: float, shape: tuple[int, int], options: dict[str, list[int]]
) -> None:
    ones = {"window_strides": [1, 1], "window_dilations": [1, 1], "base_dilations": [1, 1], "padding": [0] * 4}
    sizes = {"window_dimensions": [2, 3 if "window_dilations" not in options else 2]}
    w = Writer()
    x, first, y = w.input("x", (3, 4)), w.constant("first", start), w.tensor("y", shape)
    w.node("STABLEHLO_REDUCE_WINDOW", [x, first], [y], **{**ones, **sizes, **options}, body_subgraph_index=1)
    w.graph.outputs = [y]
    w.begin_subgraph()
    a, b, c = w.input("a", ()), w.input("b", ()), w.tensor("c", ())
    w.node(body, [a, b], [c])
    w.graph.outputs = [c]
    data, given = w.finish(), real(3, 4)
    want = judged(data, [given])[0]
    got = computed(read_model(data), [given])[0]
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_a_sequence_of_no_batch_is_reversed_to_nothing() -> None:
    w = Writer()
    x, y = w.input("x", (0, 7, 1)), w.tensor("y", (0, 7, 1))
    w.node("REVERSE_SEQUENCE", [x, w.constant("lengths", np.zeros(0, np.int32))], [y], seq_dim=1, batch_dim=0)
    assert computed(read_model(w.finish(y)), [np.zeros((0, 7, 1), np.float32)])[0].shape == (0, 7, 1)
