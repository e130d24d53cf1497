"""Decoders whose past goes in and comes back longer: a loop that feeds tokens only gives what one whole run does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from tests.importers.tflite_writer import Writer  # noqa: E402
from tests.ops.targets import Target  # noqa: E402
from tests.session.test_open_sizes import DRAW, judge_of  # noqa: E402

import webinfer  # noqa: E402
from webinfer.dtypes import DType  # noqa: E402
from webinfer.errors import InputError  # noqa: E402
from webinfer.importers.core.caches import CacheRow, Caches  # noqa: E402
from webinfer.session.inputs import TensorInfo  # noqa: E402
from webinfer.session.kv_cache import KvCache  # noqa: E402
from webinfer.tensor import Tensor  # noqa: E402

HEADS, WIDTH, WORDS = 2, 4, 11
SIZE = HEADS * WIDTH
NAMES = ("past_key_values.0.key", "past_key_values.0.value"), ("present.0.key", "present.0.value")
ODD = ("a", "b"), ("x", "y")  # as exporters name values that nobody named


def _heads(x: str, y: str) -> list[Any]:
    """[1, n, heads × width] → [1, heads, n, width]"""
    return [
        helper.make_node("Reshape", [x, "split"], [f"{y}_4"]),
        helper.make_node("Transpose", [f"{y}_4"], [y], perm=[0, 2, 1, 3]),
    ]


def _attention(keys: str, values: str) -> list[Any]:
    return [
        helper.make_node("Transpose", [keys], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", values], ["o"]),
        helper.make_node("Transpose", ["o"], ["o_4"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["o_4", "joined"], ["o_3"]),
        helper.make_node("MatMul", ["o_3", "head"], ["logits"]),
    ]


def decoder_file(
    pasts: tuple[str, str] = NAMES[0], presents: tuple[str, str] = NAMES[1], merged: bool = False
) -> bytes:
    """One layer without a mask inside a step; with `merged`, a branch says whether there is a past."""
    float_, int_ = TensorProto.FLOAT, TensorProto.INT64
    nodes = [helper.make_node("Gather", ["words", "input_ids"], ["h"])]
    for name in "qkv":
        nodes += [helper.make_node("MatMul", ["h", f"w{name}"], [f"{name}_3"]), *_heads(f"{name}_3", name)]
    inputs = [
        helper.make_tensor_value_info("input_ids", int_, ["batch", "n"]),
        *(helper.make_tensor_value_info(p, float_, ["batch", HEADS, "past", WIDTH]) for p in pasts),
    ]
    joins = [
        helper.make_node("Concat", [past, new], [then], axis=-2)
        for past, new, then in zip(pasts, "kv", presents, strict=True)
    ]
    if merged:
        ends = [helper.make_tensor_value_info(f"{then}_{{}}", float_, None) for then in presents]
        sides = []
        for side, made in (("yes", joins), ("no", [helper.make_node("Identity", [new], ["?"]) for new in "kv"])):
            for node, then in zip(made, presents, strict=True):
                node.output[0] = f"{then}_{side}"
            own = [helper.make_tensor_value_info(end.name.format(side), float_, None) for end in ends]
            sides.append(helper.make_graph(made, side, [], own))
        joins = [
            helper.make_node("If", ["use_cache_branch"], list(presents), then_branch=sides[0], else_branch=sides[1])
        ]
        inputs.append(helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]))
    nodes += [*joins, *_attention(*presents)]
    draw = np.random.default_rng(1)
    constants = {
        "words": draw.normal(size=(WORDS, SIZE)).astype("f4"), "head": draw.normal(size=(SIZE, WORDS)).astype("f4"),
        **{f"w{name}": draw.normal(size=(SIZE, SIZE)).astype("f4") for name in "qkv"},
        "split": np.array([0, 0, HEADS, WIDTH]), "joined": np.array([0, 0, SIZE]),
    }  # fmt: skip
    outputs = [helper.make_tensor_value_info(name, float_, None) for name in ("logits", *presents)]
    graph = helper.make_graph(
        nodes, "g", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in constants.items()]
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())


@pytest.mark.parametrize("backend", ["wasm", "reference"])
@pytest.mark.parametrize(("pasts", "presents", "merged"), [(*NAMES, False), (*ODD, False), (*NAMES, True)])
def test_a_decode_loop_feeds_tokens_only(
    pasts: tuple[str, str], presents: tuple[str, str], merged: bool, backend: str
) -> None:
    data = decoder_file(pasts, presents, merged)
    judge = judge_of(data)
    with webinfer.load_sync(data, backend=backend) as session:
        cache = session.kv_cache()
        assert cache.names == dict(zip(pasts, presents, strict=True))
        for batch in (1, 2):
            cache.reset()
            assert (cache.length, cache.tensors()) == (0, {})
            held = dict.fromkeys(pasts, np.zeros((batch, HEADS, 0, WIDTH), "f4"))
            for n in (3, 1, 1, 2, 1):
                ids = DRAW.integers(0, WORDS, (batch, n))
                flag = {"use_cache_branch": np.array([cache.length > 0])} if merged else {}
                logits, *now = judge.run(None, {"input_ids": ids, **held, **flag})
                held = dict(zip(pasts, now, strict=True))
                found = session.run({"input_ids": ids}, kv_cache=cache)
                assert list(found) == ["logits"]
                np.testing.assert_allclose(found["logits"].numpy(), logits, rtol=1e-5, atol=1e-4)
                assert cache.length == now[0].shape[2]
            np.testing.assert_allclose(cache.tensors()[pasts[0]].numpy(), now[0], atol=1e-5)


WINDOW = 5


def _windowed(names: tuple[str, str], before: bool) -> bytes:
    """The caches cut to their last rows, as PyTorch exports layers with a window."""
    model = onnx.load_from_string(decoder_file(NAMES[0], names))
    constants = {"from": [-WINDOW], "end": [2**63 - 1], "axis": [2], "step": [1]}
    model.graph.initializer.extend(numpy_helper.from_array(np.array(a), n) for n, a in constants.items())
    nodes = list(model.graph.node)
    for past, present in zip(NAMES[0], names, strict=True):
        at, join = next((i, node) for i, node in enumerate(nodes) if present in node.output)
        for node in nodes:
            node.input[:] = [f"{present}_all" if name == present else name for name in node.input]
        join.output[0] = f"{present}_all"
        nodes.insert(at + 1, helper.make_node("Slice", [f"{present}_all", *constants], [present]))
        if before:
            nodes.insert(at, helper.make_node("Slice", [past, *constants], [f"{past}_last"]))
            join.input[0] = f"{past}_last"
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("backend", ["wasm", "reference"])
def test_a_cache_may_be_cut_to_a_window(backend: str, before: bool) -> None:
    data = _windowed(ODD[1], before)
    judge, plans = judge_of(data), list[int]()
    with webinfer.load_sync(data, backend=backend) as session:
        cache = session.kv_cache()
        assert cache.names == dict(zip(NAMES[0], ODD[1], strict=True))
        held = dict.fromkeys(NAMES[0], np.zeros((1, HEADS, 0, WIDTH), "f4"))
        for n in (3, *[1] * 9, 7, 1, 1):
            ids = DRAW.integers(0, WORDS, (1, n))
            logits, *now = judge.run(None, {"input_ids": ids, **held})
            held = dict(zip(NAMES[0], now, strict=True))
            found = session.run({"input_ids": ids}, kv_cache=cache)
            np.testing.assert_allclose(found["logits"].numpy(), logits, rtol=1e-5, atol=1e-4)
            assert cache.length == now[0].shape[2] <= WINDOW
            plans.append(id(session.executor))
        assert len(set(plans[3:10])) == 1, "tokens of a full window have one plan"
        (graph,) = session.graphs()
        assert not [node for node in graph.nodes if node.op.name == "transpose" and node.inputs[0] in graph.inputs]


def test_two_caches_are_two_sequences() -> None:
    data = decoder_file()
    judge = judge_of(data)
    with webinfer.load_sync(data, backend="wasm") as session:
        first, second = session.kv_cache(), session.kv_cache()
        ids = np.arange(6).reshape(1, 6) % WORDS
        for cache, part in ((first, ids[:, :4]), (second, ids[:, :1]), (first, ids[:, 4:])):
            found = session.run({"input_ids": part}, kv_cache=cache)
        assert (first.length, second.length) == (6, 1)
        kept = {name: second.tensors()[name].numpy() for name in NAMES[0]}
        want = judge.run(None, {"input_ids": ids[:, 1:2], **kept})[0]
        found = session.run({"input_ids": ids[:, 1:2]}, kv_cache=second)
        np.testing.assert_allclose(found["logits"].numpy(), want, atol=1e-5)


def test_a_state_of_one_name_is_kept_too() -> None:
    """As converters of TensorFlow Lite write caches: their sizes stay."""
    writer = Writer()
    x, state = writer.input("x", (1, 4)), writer.input("state", (1, 4))
    total, y = writer.tensor("state", (1, 4)), writer.tensor("y", (1, 4))
    writer.node("ADD", [x, state], [total])
    writer.node("MUL", [total, total], [y])
    data = writer.finish(total, y)
    with webinfer.load_sync(data, backend="wasm") as session:
        cache, total_so_far = session.kv_cache(), np.zeros((1, 4), "f4")
        for _ in range(3):
            step = DRAW.normal(size=(1, 4)).astype("f4")
            total_so_far = total_so_far + step
            found = session.run({"x": step}, kv_cache=cache)
            np.testing.assert_allclose(found["y"].numpy(), total_so_far**2, atol=1e-5)
        assert cache.length == 0


def test_inputs_that_follow_from_the_length_may_be_left_out() -> None:
    kinds = {
        "input_ids": DType.INT64,
        "attention_mask": DType.INT64,
        "position_ids": DType.INT32,
        "past": DType.FLOAT32,
    }
    shapes: dict[str, Any] = {"input_ids": ("b", "n"), "attention_mask": ("b", "m"), "position_ids": ("b", "n")}
    infos = [TensorInfo(name, kind, shapes.get(name, ("b", 2, "p", 4)), None) for name, kind in kinds.items()]
    cache = KvCache("m", Caches((CacheRow("past", "present", 2),), shapes | {"past": ("b", 2, "p", 4)}), infos, [])
    for n, past in ((3, 0), (2, 3)):
        fed = cache.feed({"input_ids": np.zeros((2, n), np.int64)})
        assert fed["past"].shape == (2, 2, past, 4)
        assert fed["attention_mask"].shape == (2, past + n)
        assert fed["attention_mask"].tolist() == [1] * (2 * (past + n))
        assert fed["position_ids"].tolist() == [*range(past, past + n)] * 2
        assert fed["position_ids"].dtype is DType.INT32
        grown = Tensor(bytes(4 * 2 * 2 * (past + n) * 4), (2, 2, past + n, 4), DType.FLOAT32)
        assert cache.take({"present": grown, "logits": grown}) == {"logits": grown}
    mine = np.ones((2, 9), np.int64)
    assert cache.feed({"input_ids": np.zeros((2, 1), np.int64), "attention_mask": mine})["attention_mask"] is mine
    assert cache.take({"present": Tensor(b"", (2, 2, 0, 4), DType.FLOAT32)}) == {}  # of a branch that was not taken
    assert cache.length == 5


def test_positions_go_on_where_all_layers_have_a_window() -> None:
    kinds = {"input_ids": DType.INT64, "position_ids": DType.INT64, "past": DType.FLOAT32}
    shapes: dict[str, Any] = {"input_ids": ("b", "n"), "position_ids": ("b", "n"), "past": (1, 1, "p", 2)}
    infos = [TensorInfo(name, kind, shapes[name], None) for name, kind in kinds.items()]
    cache = KvCache("m", Caches((CacheRow("past", "present", 2),), shapes), infos, [])
    for n, before, kept in ((3, 0, 3), (2, 3, 4), (1, 5, 4), (1, 6, 4)):
        fed = cache.feed({"input_ids": np.zeros((1, n), np.int64)})
        assert fed["position_ids"].tolist() == [*range(before, before + n)]
        cache.take({"present": Tensor(bytes(8 * kept), (1, 1, kept, 2), DType.FLOAT32)})
        assert cache.length == kept
    cache.reset()
    assert cache.feed({"input_ids": np.zeros((1, 2), np.int64)})["position_ids"].tolist() == [0, 1]


def test_what_has_no_cache_is_named() -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    with webinfer.load_sync(data, backend="reference") as session:
        with pytest.raises(InputError, match=r"no input whose next value is an output; its inputs are x"):
            session.kv_cache()
    with webinfer.load_sync(decoder_file(), backend="reference") as session:
        with pytest.raises(InputError, match="needs a mapping of inputs, not a list"):
            session.run([1, 2], kv_cache=session.kv_cache())


@pytest.mark.parametrize("joined_to_nothing", [True, False])
def test_a_past_is_joined_as_it_lies(joined_to_nothing: bool) -> None:
    model = onnx.load_from_string(decoder_file())
    if joined_to_nothing:  # as PyTorch's exporter has it for the first layer
        model.graph.node.insert(0, helper.make_node("Concat", [NAMES[0][0]], ["first"], axis=2))
        join = next(node for node in model.graph.node if NAMES[1][0] in node.output)
        join.input[0] = "first"
    shapes = {"input_ids": (1, 1), **dict.fromkeys(NAMES[0], (1, HEADS, 5, WIDTH))}
    with webinfer.load_sync(model.SerializeToString(), backend="reference", shapes=shapes) as session:
        assert set(session.kv_cache().names) == {*NAMES[0]}
        (graph,) = session.graphs()
        writers = graph.producers()
        for past, then in zip(graph.inputs[1:], graph.outputs[1:], strict=True):
            assert writers[then].inputs[0] is past


def _grouped_decoder() -> bytes:
    """One layer as ONNX Runtime's exports have it: heads that share keys, rotation, weights of 4 bits in blocks."""
    heads, shared, width, block, most = 4, 2, 16, 16, 64
    size, draw = heads * width, np.random.default_rng(2)
    constants: dict[str, Any] = {"words": draw.normal(size=(WORDS, size)).astype("f4"), "one": np.array([1])}
    angles = np.arange(most)[:, None] / 100 ** (np.arange(width // 2) / (width // 2))
    constants |= {"cos": np.cos(angles).astype("f4"), "sin": np.sin(angles).astype("f4"), "at": np.array(1)}
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["h"]),
        helper.make_node("ReduceSum", ["attention_mask", "one"], ["counted"], keepdims=0),
        helper.make_node("Sub", ["counted", "one"], ["ends_64"]),
        helper.make_node("Cast", ["ends_64"], ["ends"], to=TensorProto.INT32),
        helper.make_node("Shape", ["attention_mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "at"], ["total_64"]),
        helper.make_node("Cast", ["total_64"], ["total"], to=TensorProto.INT32),
    ]

    def product(x: str, y: str, n: int) -> None:
        constants[f"{y}_w"] = draw.integers(0, 256, (n, size // block, block // 2), dtype=np.uint8)
        constants[f"{y}_s"] = draw.uniform(0.01, 0.05, n * size // block).astype("f4")
        attributes = {"K": size, "N": n, "bits": 4, "block_size": block}
        nodes.append(
            helper.make_node("MatMulNBits", [x, f"{y}_w", f"{y}_s"], [y], domain="com.microsoft", **attributes)
        )

    for name, count in (("q", heads), ("k", shared), ("v", shared)):
        product("h", name, count * width)
    grouped = ["q", "k", "v", *NAMES[0], "ends", "total", "cos", "sin"]
    counts = {"num_heads": heads, "kv_num_heads": shared, "do_rotary": 1}
    nodes.append(
        helper.make_node("GroupQueryAttention", grouped, ["seen", *NAMES[1]], domain="com.microsoft", **counts)
    )
    product("seen", "logits", WORDS)
    int_, cache = TensorProto.INT64, (TensorProto.FLOAT, ["batch", shared, "past", width])
    inputs = [
        helper.make_tensor_value_info(name, int_, ["batch", n])
        for name, n in (("input_ids", "n"), ("attention_mask", "all"))
    ]
    inputs += [helper.make_tensor_value_info(name, *cache) for name in NAMES[0]]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("logits", *NAMES[1])]
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_a_decoder_of_onnx_runtimes_exports_has_one_plan_for_all_tokens(backend: str) -> None:
    Target(backend, (("isa", "simd128"),) if backend == "wasm" else ()).demand()
    data = _grouped_decoder()
    judge, plans = judge_of(data), list[int]()
    with webinfer.load_sync(data, backend=backend) as session:
        for prompt in (5, 7):
            cache = session.kv_cache()
            held = dict.fromkeys(NAMES[0], np.zeros((1, 2, 0, 16), "f4"))
            for n in (prompt, *[1] * 8):
                ids, total = DRAW.integers(0, WORDS, (1, n)), cache.length + n
                fed = {"input_ids": ids, "attention_mask": np.ones((1, total), int)}
                logits, *now = judge.run(None, {**fed, **held})
                held = dict(zip(NAMES[0], now, strict=True))
                found = session.run(fed, kv_cache=cache)
                np.testing.assert_allclose(found["logits"].numpy(), logits, rtol=1e-4, atol=1e-4)
                plans.append(id(session.executor))
            np.testing.assert_allclose(cache.tensors()[NAMES[0][0]].numpy(), now[0], atol=1e-5)
        # On GPUs a sum over keys that are whole quads has a kernel of its own, and so a plan.
        most = 1 if backend == "wasm" else 2
        assert len(set(plans[3:9] + plans[11:])) <= most, "tokens have one plan, whatever the prompt was"
        ops = [row.op for row in session.plan().rows]
        assert "expand" not in ops, "heads read the keys that they share where they lie"
