"""What the ONNX importer takes for an attribute that a node leaves out: the default of the operator's own schema.

Each node case of the package `onnx` is read twice, with an attribute left out and with its default written down. Both
must become the same graph. Nothing runs, and the cases' own results, which take long to compute, are not computed.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, defs, helper, numpy_helper

from build_scripts.judge.onnx_case import Case, _case, _read
from webinfer.errors import WebinferError
from webinfer.graph.ir import Graph
from webinfer.importers.onnx.convert import CONVERTERS

CASES = 4  # of an attribute
UNSEEN = {  # attributes whose default is refused, so that it shows in no graph
    ("NonMaxSuppression", "center_point_box"): "data decides the size of the result",
    ("Normalizer", "norm"): "MAX is refused",
    ("RoiAlign", "sampling_ratio"): "0 is refused",
}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """The package's cases, made without its slow pools and without the text of its own functions."""
    from onnx.backend.test.case import base
    from onnx.reference.ops import op_pool_common

    def pool(padded: Any, x_shape: Any, kernel: Any, strides: Any, out_shape: Any, *_: Any, **__: Any) -> Any:
        return np.zeros([*x_shape[:2], *out_shape], padded.dtype)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        patch.setattr(op_pool_common, "pool", pool)
        patch.setattr(base, "process_snippet", lambda op, name, export: (name, ""))
        from onnx.backend.test.case.node import collect_testcases

        return [_case(raw) for raw in collect_testcases(None) if len(raw.model.graph.node) == 1]


def _node(model: ModelProto, operator: str) -> NodeProto:
    return next(node for node in model.graph.node if node.op_type == operator)


def _schema(model: ModelProto, node: NodeProto) -> Any:
    version = next((o.version for o in model.opset_import if o.domain == node.domain), 1)
    try:
        return defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return None


def _defaults(model: ModelProto, node: NodeProto) -> Iterator[tuple[str, Any]]:
    schema = _schema(model, node)
    for name, attribute in schema.attributes.items() if schema else ():
        if attribute.default_value.type:
            yield name, attribute.default_value


def _variants(case: Case, default: Any) -> tuple[ModelProto, ModelProto]:
    """The case's model without the attribute, and with its default written down. Sizes of outputs may depend on it."""
    bare = ModelProto()
    bare.CopyFrom(case.model)
    for info in bare.graph.output:
        info.type.tensor_type.ClearField("shape")
    node = _node(bare, case.operator)
    kept = [attribute for attribute in node.attribute if attribute.name != default.name]
    node.ClearField("attribute")
    node.attribute.extend(kept)
    full = ModelProto()
    full.CopyFrom(bare)
    _node(full, case.operator).attribute.append(default)
    return bare, full


def _in_float32(text: str) -> str:
    """The text with its numbers as files hold them: 0.2 is written 0.20000000298 there."""
    return re.sub(r"-?\d+\.\d+(e[-+]?\d+)?", lambda number: repr(float(np.float32(number[0]))), text)


def _signature(graph: Graph) -> list[Any]:
    """All of a graph: operators, attributes, types and constants."""

    def said(value: Any) -> Any:
        if value is None or not value.is_constant:
            return value and (value.name, str(value.type))
        return str(value.type), repr(value.constant.stored), hashlib.sha256(value.constant.data).hexdigest()

    nodes = [
        (n.op.name, _in_float32(repr(n.attrs)), [said(v) for v in n.inputs], [said(v) for v in n.outputs])
        for n in graph.nodes
    ]
    return [nodes, [said(v) for v in graph.outputs]]


def _outcome(case: Case, model: ModelProto) -> list[Any] | str:
    """The signature of what the importer makes of a model, or its typed error."""
    reading = _read(replace(case, model=model))
    try:
        return _signature(reading.graph())
    except WebinferError as error:
        return f"{type(error).__name__}: {error}"


def _own(nodes: list[NodeProto], outputs: int = 1, operator: str = "", learned: int = 3, **arrays: Any) -> Case:
    """A case of one of the nodes, the first if nothing is said.

    Arrays are constants but for `x`, which is the input's shape; the last node's outputs are the model's.
    """
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, arrays.pop("x", (1, 2, 6, 6)))]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
    ends = [helper.make_empty_tensor_value_info(name) for name in nodes[-1].output[:outputs]]
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", learned)]
    graph = helper.make_graph(nodes, "own", infos, ends, tensors)
    model = helper.make_model(graph, opset_imports=domains, ir_version=9)
    return Case(
        f"own {nodes[0].op_type}", operator or nodes[0].op_type, model, {"x": np.zeros(1, np.float32)}, {}, 0, 0
    )


def _learned(op: str, outputs: int = 1, version: int = 3, **attributes: Any) -> Case:
    node = helper.make_node(op, ["x"], ["y", "z"][:outputs], domain="ai.onnx.ml", **attributes)
    return _own([node], outputs, learned=version, x=(2, 3))


def _own_cases() -> list[Case]:
    """Cases of operators and attributes of which the package has none that is read."""
    node = helper.make_node
    sequence = [node("SplitToSequence", ["x"], ["s"]), node("SequenceAt", ["s", "i"], ["y"])]
    tree = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
    }  # fmt: skip
    labels = {"class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [1, 1], "class_weights": [1.0, 2.0]}
    targets = {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0]}
    stump = {
        "nodes_splits": np.float32([0.5]), "nodes_modes": np.uint8([0]), "leaf_weights": np.float32([1.0, 2.0]),
    }  # fmt: skip
    stumps = {name: numpy_helper.from_array(array) for name, array in stump.items()}
    for name in ("nodes_featureids", "nodes_truenodeids", "tree_roots"):
        stumps[name] = [0]
    for name in ("nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs"):
        stumps[name] = [1]
    line = {"coefficients": [1.0, 2.0, 3.0, -1.0, 0.0, 1.0], "intercepts": [0.5, -0.5], "classlabels_ints": [3, 4]}
    vectors = {"support_vectors": [1.0, 2.0, 3.0, -1.0, 0.0, 1.0], "classlabels_ints": [3, 4]}
    drawn = [_own([node(f"Random{kind}Like", ["x"], ["y"], seed=1.0)]) for kind in ("Normal", "Uniform")]
    drawn += [_own([node(f"Random{kind}", [], ["y"], shape=[2, 3], seed=1.0)]) for kind in ("Normal", "Uniform")]
    return [
        *drawn,
        _own([node("Multinomial", ["x"], ["y"], seed=1.0)], x=(1, 4)),
        _own([node("GlobalLpPool", ["x"], ["y"])]),
        _own([sequence[0], node("ConcatFromSequence", ["s"], ["y"], axis=0)], operator="ConcatFromSequence", x=(2, 3)),
        _own(sequence, i=np.int64(0), x=(2, 3)),
        _own([node("SplitToSequence", ["x", "n"], ["s"]), sequence[1]], i=np.int64(0), n=np.int64([1, 1]), x=(2, 3)),
        _learned("Imputer", imputed_value_floats=[0.5]),
        _learned("LabelEncoder", keys_floats=[1.0, 2.0], values_floats=[0.5, 4.0]),
        _learned("LabelEncoder", keys_floats=[1.0, 2.0], values_int64s=[5, 4]),
        _learned("Binarizer"),
        _learned("OneHotEncoder", cats_int64s=[0, 1]),
        _learned("LinearRegressor", coefficients=[1.0, 2.0, 3.0], intercepts=[0.5]),
        _learned("LinearClassifier", 2, **line),
        _learned("SVMRegressor", coefficients=[1.0, 2.0, 3.0], rho=[0.5]),
        _learned("SVMClassifier", 2, coefficients=[1.0, -1.0], vectors_per_class=[1, 1], rho=[0.5], **vectors),
        _learned("TreeEnsemble", version=5, n_targets=1, leaf_targetids=[0, 0], **stumps),
        _learned("TreeEnsembleRegressor", n_targets=1, **tree, **targets),
        _learned("TreeEnsembleClassifier", 2, classlabels_int64s=[0, 1], **tree, **labels),
    ]


def test_an_attribute_left_out_is_its_schemas_default(cases: list[Case]) -> None:
    seen, wrong = Counter[tuple[str, str]](), []
    for case in [*_own_cases(), *cases]:
        node = _node(case.model, case.operator)
        for name, default in _defaults(case.model, node):
            if seen[node.op_type, name] >= CASES:
                continue
            left_out, written = (_outcome(case, model) for model in _variants(case, default))
            seen[node.op_type, name] += not isinstance(written, str)  # refused, it shows nothing
            if left_out != written:
                wrong.append(f"{case.name}: {name} left out is not {helper.get_attribute_value(default)!r}")
    assert not wrong, wrong
    unseen = {key for key in _attributes_with_defaults() if not seen[key]}
    assert unseen == set(UNSEEN), (sorted(unseen - set(UNSEEN)), "have no case that is read; a new one is added above")


def _attributes_with_defaults() -> Iterator[tuple[str, str]]:
    for converter in CONVERTERS:
        domain, _, op = converter.rpartition(".")
        if not defs.has(op, domain=domain):
            continue  # an operator of ONNX Runtime alone
        for attribute in defs.get_schema(op, domain=domain).attributes.values():
            if attribute.default_value.type:
                yield op, attribute.name
