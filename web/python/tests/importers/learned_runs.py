"""Classical models of ONNX as single operators, for test_onnx_operators: operator, inputs, constants, attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import numpy_helper

_RNG = np.random.default_rng(9)
FEATURES = 5


def _trees(
    kind: str, targets: list[list[int]], mode: str = "BRANCH_LEQ", least: float = -1, **more: Any
) -> dict[str, Any]:
    """Trees of three levels, one short arm each, whose leaves know these targets, tree by tree in turns."""
    rows: dict[str, list[Any]] = {
        name: [] for name in ("tree", "node", "mode", "feature", "true", "false", "value", "nan")
    }
    ends: dict[str, list[Any]] = {name: [] for name in ("tree", "node", "", "weights")}
    for tree in range(6):
        for node in range(11):  # 0 has 1 and 2, which have 3 and 4, 5 and 6; 3 and 5 have 7 to 10
            branch = node in (0, 1, 2, 3, 5)
            first = {0: 1, 1: 3, 2: 5, 3: 7, 5: 9}.get(node, 0)
            numbers = (tree, node, mode if branch else "LEAF", tree % FEATURES if not node else node % FEATURES, first,
                       first + branch, round(_RNG.uniform(-1, 1) * 4) / 4, (tree + node) % 3 == 0)  # fmt: skip
            for name, number in zip(rows, numbers, strict=True):
                rows[name].append(number)
            for target in targets[tree % len(targets)] if not branch else ():
                for name, number in zip(ends, (tree, node, target, _RNG.uniform(least, 1)), strict=True):
                    ends[name].append(number)
    nodes = {
        f"nodes_{long}": rows[short] for long, short in (
            ("treeids", "tree"), ("nodeids", "node"), ("modes", "mode"), ("featureids", "feature"),
            ("truenodeids", "true"), ("falsenodeids", "false"), ("values", "value"),
        )
    }  # fmt: skip
    if more.pop("missing", False):
        nodes["nodes_missing_value_tracks_true"] = [int(n) for n in rows["nan"]]
    leaves = {f"{kind}_{name}ids": ends[name] for name in ("tree", "node", "")}
    return {**nodes, **leaves, f"{kind}_weights": ends["weights"], **more}


def _table(rows: int = 7) -> Any:
    """Numbers of which some lie on the trees' thresholds, and some are none."""
    x = np.round(_RNG.uniform(-1, 1, (rows, FEATURES)) * 4).astype("f4") / 4
    x[1, 1], x[2, :2], x[3, 3] = np.nan, np.inf, -np.inf
    return x


def _tensor(dtype: str, *numbers: float) -> Any:
    return numpy_helper.from_array(np.array(numbers, dtype))


def _vectors(kind: str, numbers: tuple[float, float, float] = (0.5, 0.25, 3.0), **more: Any) -> dict[str, Any]:
    """Six vectors of three features, and what lies between them."""
    return {"kernel_type": kind, "kernel_params": list(numbers), "n_supports": 6, "rho": [0.25],
            "coefficients": _RNG.uniform(-1, 1, 6).tolist(), "support_vectors": _RNG.uniform(-1, 1, 18).tolist(),
            **more}  # fmt: skip


def _duels(kind: str, sizes: Sequence[int], **more: Any) -> dict[str, Any]:
    """Support vectors of classes of so many each."""
    count, classes = sum(sizes), len(sizes)
    return {"kernel_type": kind, "support_vectors": _RNG.uniform(-1, 1, 3 * count).tolist(),
            "coefficients": _RNG.uniform(-1, 1, (classes - 1) * count).tolist(), "vectors_per_class": list(sizes),
            "rho": _RNG.uniform(-0.3, 0.3, classes * (classes - 1) // 2).tolist(),
            "kernel_params": [0.7, 0.4, 3.0], "classlabels_ints": list(range(3, 3 + classes)), **more}  # fmt: skip


def _chances(kind: str, sizes: Sequence[int], **more: Any) -> dict[str, Any]:
    """Support vectors of classes whose duels have probabilities, from undecided to sure."""
    duels = len(sizes) * (len(sizes) - 1) // 2
    ends = {"prob_a": _RNG.uniform(-4, -0.5, duels).tolist(), "prob_b": _RNG.uniform(-0.5, 0.5, duels).tolist()}
    return _duels(kind, sizes, **ends, **more)


_CLASSES, _TREES = {"classlabels_int64s": [7, -2, 4]}, "ai.onnx.ml.TreeEnsemble"
RUNS: dict[str, tuple[str, list[Any], list[Any], dict[str, Any]]] = {
    "trees, classes": (_TREES + "Classifier", [_table()], [], _trees("class", [[0], [1], [2]], **_CLASSES)),
    "trees, probabilities of classes": (_TREES + "Classifier", [_table()], [],
        _trees("class", [[0, 1, 2]], post_transform="SOFTMAX", base_values=[0.1, -0.2, 0.3], **_CLASSES)),
    "trees, two classes": (_TREES + "Classifier", [_table()], [],
        _trees("class", [[0]], classlabels_int64s=[3, 9], post_transform="LOGISTIC", missing=True)),
    "trees, probability of two classes": (_TREES + "Classifier", [_table()], [],
        _trees("class", [[1]], mode="BRANCH_LT", least=0, classlabels_int64s=[0, 1])),
    "trees, scores of the second class": (_TREES + "Classifier", [_table()], [],
        _trees("class", [[1]], classlabels_int64s=[5, 3], post_transform="LOGISTIC")),
    "trees, share of the first class": (_TREES + "Classifier", [_table()], [],
        _trees("class", [[0]], least=0, classlabels_int64s=[0, 1])),
    "trees, one score of two": (_TREES + "Classifier", [_table()], [],
        _trees("class", [[0]], mode="BRANCH_GT", classlabels_int64s=[0, 1], base_values=[0.25])),
    "trees, logistic of the first class's share": (_TREES + "Classifier", [_table()], [],
        _trees("class", [[0]], least=0, post_transform="LOGISTIC", classlabels_int64s=[0, 1], base_values=[-0.4])),
    "trees, logistic of the second class's share": (_TREES + "Classifier", [_table()], [],
        _trees("class", [[1]], least=0, post_transform="LOGISTIC", classlabels_int64s=[0, 1])),
    "trees, base values beside the second class": (_TREES + "Classifier", [_table()], [],
        _trees("class", [[1]], post_transform="LOGISTIC", classlabels_int64s=[0, 1], base_values=[0.7])),
    "trees, numbers": (_TREES + "Regressor", [_table()], [],
        _trees("target", [[0, 1], [1]], mode="BRANCH_GTE", n_targets=2, base_values=[1.0, 2.0], missing=True)),
    "trees, means": (_TREES + "Regressor", [_table()], [],
        _trees("target", [[0]], mode="BRANCH_EQ", n_targets=1, aggregate_function="AVERAGE")),
    "trees, largest": (_TREES + "Regressor", [_table()], [],
        _trees("target", [[0]], mode="BRANCH_NEQ", n_targets=1, aggregate_function="MAX", missing=True)),
    "trees with numbered leaves": (_TREES, [_table()], [],
        {"nodes_featureids": [0, 1, 3], "nodes_splits": _tensor("f4", 0.25, -0.5, 0.5), "tree_roots": [0, 2],
         "nodes_modes": _tensor("u1", 0, 0, 0), "nodes_truenodeids": [1, 0, 2], "nodes_trueleafs": [0, 1, 1],
         "nodes_falsenodeids": [1, 3, 4], "nodes_falseleafs": [1, 1, 1], "leaf_targetids": [0, 1, 0, 1, 0],
         "leaf_weights": _tensor("f4", 0.5, 1, -2, 3, 0.125), "n_targets": 2, "post_transform": 1,
         "aggregate_function": 1}),
    **{f"support vectors, {kind}": ("ai.onnx.ml.SVMRegressor", [_RNG.uniform(-1, 1, (5, 3)).astype("f4")], [],
        _vectors(kind)) for kind in ("LINEAR", "POLY", "RBF", "SIGMOID")},
    "support vectors of one class": ("ai.onnx.ml.SVMRegressor", [_RNG.uniform(-1, 1, (5, 3)).astype("f4")], [],
        _vectors("RBF", one_class=1)),
    "support vectors that are a line": ("ai.onnx.ml.SVMRegressor", [_RNG.uniform(-1, 1, (5, 3)).astype("f4")], [],
        {"kernel_type": "LINEAR", "coefficients": [0.5, -1.0, 2.0], "rho": [0.75], "kernel_params": [0.0, 0.0, 3.0]}),
    **{f"support vectors of {len(sizes)} classes, {kind}": (
        "ai.onnx.ml.SVMClassifier", [_RNG.uniform(-1, 1, (9, 3)).astype("f4")], [], _duels(kind, sizes, **more))
        for kind, sizes, more in (
            ("RBF", (2, 3), {}), ("LINEAR", (2, 1, 3), {}), ("POLY", (1, 2, 2, 1), {"post_transform": "LOGISTIC"}),
            ("SIGMOID", (3, 1, 2), {"post_transform": "SOFTMAX"}))},
    **{f"probabilities of {len(sizes)} classes, {kind}": (
        "ai.onnx.ml.SVMClassifier", [_RNG.uniform(-2, 2, (64, 3)).astype("f4")], [], _chances(kind, sizes, **more))
        for kind, sizes, more in (
            ("RBF", (2, 3), {}), ("LINEAR", (2, 1, 3), {}), ("RBF", (1, 2, 2, 1, 3), {"post_transform": "SOFTMAX"}))},
    **{f"support vectors that are lines, {name}": (
        "ai.onnx.ml.SVMClassifier", [_RNG.uniform(-1, 1, (9, 3)).astype("f4")], [],
        {"kernel_type": "LINEAR", "coefficients": _RNG.uniform(low, 1, 3 * count).tolist(), "rho": [0.1],
         "kernel_params": [0.0, 0.0, 3.0], "classlabels_ints": list(range(5, 5 + count))})
        for name, count, low in (("two classes", 2, -1), ("two classes, positive", 2, 0), ("three classes", 3, -1))},
    "a line between classes": ("ai.onnx.ml.LinearClassifier", [_RNG.uniform(-1, 1, (4, 3)).astype("f4")], [],
        {"coefficients": _RNG.uniform(-1, 1, 6).tolist(), "intercepts": [0.1, -0.1], "classlabels_ints": [4, 2],
         "post_transform": "LOGISTIC"}),
    "a line": ("ai.onnx.ml.LinearRegressor", [_RNG.uniform(-1, 1, (4, 3)).astype("f4")], [],
        {"coefficients": _RNG.uniform(-1, 1, 6).tolist(), "intercepts": [0.1, -0.1], "targets": 2}),
    "scaled columns": ("ai.onnx.ml.Scaler", [np.array([[1, -2], [5, 7]])], [],
        {"offset": [1.0, 2.0], "scale": [0.5, -3.0]}),
    "rows of one sum": ("ai.onnx.ml.Normalizer", [np.float32([[1, -3], [0, 0]])], [], {"norm": "L1"}),
    "rows of one length": ("ai.onnx.ml.Normalizer", [np.float32([[1, -3], [0, 0]])], [], {"norm": "L2"}),
    "what is missing": ("ai.onnx.ml.Imputer", [np.float32([[1, np.nan], [np.nan, 0]])], [],
        {"imputed_value_floats": [5.0, 6.0], "replaced_value_float": float("nan")}),
    "over a threshold": ("ai.onnx.ml.Binarizer", [np.float32([[0.5, 0.6, -1]])], [], {"threshold": 0.5}),
    "some columns": ("ai.onnx.ml.ArrayFeatureExtractor", [_RNG.uniform(-1, 1, (2, 4)).astype("f4")],
        [np.array([[3, 0]])], {}),
    "columns side by side": ("ai.onnx.ml.FeatureVectorizer", [np.float32([[1, 2]]), np.float32([[3]])], [],
        {"inputdimensions": [2, 1]}),
    "a column each": ("ai.onnx.ml.OneHotEncoder", [np.array([3, 9, 5])], [], {"cats_int64s": [5, 3], "zeros": 1}),
    "numbers for numbers": ("ai.onnx.ml.LabelEncoder", [np.array([[3, 9], [5, 3]])], [],
        {"keys_int64s": [5, 3], "values_floats": [0.5, -1.0], "default_float": 7.0}),
}  # fmt: skip
