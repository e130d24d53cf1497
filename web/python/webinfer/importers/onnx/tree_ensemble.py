"""ONNX's ensembles of decision trees: what files say of them, and what becomes of their sums.

Source:  onnx v1.23, ai.onnx.ml TreeEnsemble-5, TreeEnsembleClassifier-3, TreeEnsembleRegressor-3; scores and labels of
         two classes as ONNX Runtime writes them
"""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.trees import COMBINED, MODES, MOST_NODES, Trees, at, rows_of, sums
from webinfer.ops import elementwise as ew
from webinfer.ops import reduce
from webinfer.ops import softmax as sm

_NUMBERED = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")  # modes of TreeEnsemble


def _read(op: Operation, kind: str) -> Trees:
    """The trees of a classifier ("class") or a regressor ("target")."""
    ids, trees = op.wholes("nodes_nodeids") or (), Trees()
    within(f"{op.what}: nodes", len(ids), MOST_NODES, "use smaller trees")
    of, modes = op.wholes("nodes_treeids") or (), op.words("nodes_modes", ())
    values = _reals(op, "nodes_values")
    features, left, right = (op.wholes(f"nodes_{what}ids") or () for what in ("feature", "truenode", "falsenode"))
    missing = op.wholes("nodes_missing_value_tracks_true") or (0,) * len(ids)
    if {len(part) for part in (of, modes, values, features, left, right, missing)} != {len(ids)} or not ids:
        op.fail("lists of nodes have different lengths")
    place = {key: n for n, key in enumerate(zip(of, ids, strict=True))}
    if len(place) != len(ids):
        op.fail("two nodes of a tree have one number")
    children = set[int]()
    for n, mode in enumerate(modes):
        leaf = mode == "LEAF"
        if not leaf and mode not in MODES:
            op.refuse(f"nodes of mode {mode}")
        ways = [n if leaf else place.get((of[n], child), -1) for child in (left[n], right[n])]
        if -1 in ways:
            op.fail(f"node {ids[n]} of tree {of[n]} has a child that is not a node")
        children.update(() if leaf else ways)
        trees.add(features[n] if not leaf else 0, values[n], "" if leaf else mode, ways, bool(missing[n]))
    trees.roots = [n for n in range(len(ids)) if n not in children]
    if len(trees.roots) != len(set(of)):
        op.fail(f"{len(set(of))} trees have {len(trees.roots)} nodes that are nobody's child")
    lists = [op.wholes(f"{kind}_{what}ids") or () for what in ("tree", "node", "")]
    weights = _reals(op, f"{kind}_weights")
    if {len(part) for part in lists} != {len(weights)}:
        op.fail("lists of leaves have different lengths")
    for tree, node, target, weight in zip(*lists, weights, strict=True):
        leaf_at = place.get((tree, node), -1)
        if leaf_at < 0 or trees.modes[leaf_at]:
            op.fail(f"node {node} of tree {tree} has a weight and is not a leaf")
        trees.weights[leaf_at].append((target, weight))
    return trees


def _reals(op: Operation, name: str) -> tuple[float, ...]:
    """Numbers of an attribute, or of the tensor that stands for it."""
    if f"{name}_as_tensor" in op.attributes or (found := op.reals(name)) is None:
        tensor = op.tensor(f"{name}_as_tensor")
        if tensor is not None and op.writer.kind(tensor) is DType.FLOAT64:
            op.refuse(f"{name} of float64")
        return () if tensor is None else _floats(tensor)
    return found


def _floats(value: Value) -> tuple[float, ...]:
    assert value.constant is not None
    return tuple(map(float, value.numbers()))


def transformed(op: Operation, scores: Value) -> Value:
    """Scores as `post_transform` wants them."""
    kind = op.chosen("post_transform", ("NONE", "LOGISTIC", "SOFTMAX"), "NONE")
    if kind == "SOFTMAX":
        return op.emit(sm.SOFTMAX, [scores], sm.SoftmaxAttrs(1))
    return op.unary(ew.SIGMOID, scores) if kind == "LOGISTIC" else scores


def labels_of(op: Operation, names: Sequence[str]) -> tuple[int, ...]:
    """The labels of a classifier, which must be numbers."""
    if op.words(names[1], ()):
        op.refuse("labels of type string")
    labels = op.wholes(names[0]) or ()
    if len(labels) < 2:
        op.refuse(f"{len(labels)} labels")
    return labels


def label(op: Operation, labels: Sequence[int], number: Value) -> Value:
    """The label with this number. Shapes:  [N] → [N]"""
    return at(op, op.constant(labels, DType.INT64), number)


def _plus(op: Operation, scores: Value, base: Sequence[float]) -> Value:
    if not base:
        return scores
    if len(base) not in (1, scores.type.shape[1]):
        op.fail(f"{len(base)} base values for {scores.type.shape[1]} scores")
    return op.binary(ew.ADD, scores, op.constant(base, DType.FLOAT32, (1, len(base))))


def _classifier(op: Operation) -> list[Value]:
    """Label and scores of each row. Two classes of which the leaves know one have a rule of their own."""
    x, labels, trees = rows_of(op), labels_of(op, ("classlabels_int64s", "classlabels_strings")), _read(op, "class")
    base = _reals(op, "base_values")
    known = {target for weights in trees.weights.values() for target, _ in weights}
    if len(labels) == 2:
        if len(known) != 1 or len(base) > 1:
            op.refuse("two classes of which both have weights or base values")
        return _two(op, x, trees, known.pop(), base, labels)
    trees.levels(op)
    everywhere = {
        target for root in trees.roots
        for target in set.intersection(*({t for t, _ in trees.weights.get(n, ())} for n in trees.leaves(root)))
    }  # fmt: skip
    if len(everywhere) < len(labels) and any(w < 0 for weights in trees.weights.values() for _, w in weights):
        op.refuse("leaves below zero that do not know all classes")
    scores = _plus(op, sums(op, x, trees, len(labels)), base)
    place = op.emit(reduce.ARG_MAX, [scores], reduce.ArgAttrs(1, False, DType.INT32))
    return [label(op, labels, place), transformed(op, scores)]


def _two(
    op: Operation, x: Value, trees: Trees, known: int, base: Sequence[float], labels: Sequence[int]
) -> list[Value]:
    """A score is one of the second class: a probability if no weight is below zero, else a number around zero.

    Where the leaves know the second class, the first one's score is zero; else it is what the other one's is not.
    """
    for n, weights in trees.weights.items():
        trees.weights[n] = [(0, weight) for target, weight in weights if target == known]
    score = _plus(op, sums(op, x, trees, 1), () if known else base)  # base values are the first class's
    probable = all(weight >= 0 for weights in trees.weights.values() for _, weight in weights)
    over = op.binary(ew.GREATER, score, op.scalar_of(0.5 if probable else 0.0, DType.FLOAT32))
    chosen = label(op, labels, op.reshape(op.cast(over, DType.INT32), (x.type.shape[0],)))
    kind = op.chosen("post_transform", ("NONE", "LOGISTIC"), "NONE")
    one = float(probable and kind != "LOGISTIC")  # to the logistic function a score is a number around zero
    other = op.zeros(score.type.shape, DType.FLOAT32) if known else op.unary(ew.LINEAR, score, -1.0, one)
    both = op.concat([other, score], 1)
    return [chosen, op.unary(ew.SIGMOID, both) if kind == "LOGISTIC" else both]


def _regressor(op: Operation) -> Value:
    x, trees, count = rows_of(op), _read(op, "target"), op.whole("n_targets", 1)
    if count < 1:
        op.fail(f"{count} targets")
    combine = op.chosen("aggregate_function", tuple(COMBINED), "SUM")
    if combine in ("MIN", "MAX"):
        _demand_all(op, trees, count)
    y = _plus(op, sums(op, x, trees, count, combine), _reals(op, "base_values"))
    return transformed(op, y)


def _demand_all(op: Operation, trees: Trees, count: int) -> None:
    """The smallest and the largest of no leaves are nothing that runtimes agree on."""
    trees.levels(op)  # no rings
    for root in trees.roots:
        for n in trees.leaves(root):
            if sorted(target for target, _ in trees.weights.get(n, ())) != list(range(count)):
                op.refuse("leaves that do not know each target once")


def _ensemble(op: Operation) -> Value:
    """Trees whose leaves are numbered beside their nodes."""
    trees, count = _read_numbered(op), op.whole("n_targets", 0)
    names = ("AVERAGE", "SUM", "MIN", "MAX")
    kind, after = op.whole("aggregate_function", 1), op.whole("post_transform", 0)
    if count < 1:
        op.fail(f"{count} targets")
    if not 0 <= kind < len(names) or after not in (0, 1, 2):
        op.refuse(f"aggregate_function {kind}, post_transform {after}")
    if names[kind] in ("MIN", "MAX"):
        _demand_all(op, trees, count)
    y = sums(op, rows_of(op), trees, count, names[kind])
    if after == 2:
        return op.emit(sm.SOFTMAX, [y], sm.SoftmaxAttrs(1))
    return op.unary(ew.SIGMOID, y) if after else y


def _read_numbered(op: Operation) -> Trees:
    """The trees of TreeEnsemble: nodes, then leaves."""
    trees, features = Trees(), op.wholes("nodes_featureids") or ()
    targets, weights = op.wholes("leaf_targetids") or (), _tensor(op, "leaf_weights")
    nodes = len(features)
    within(f"{op.what}: nodes", nodes + len(targets), MOST_NODES, "use smaller trees")
    splits, modes = _tensor(op, "nodes_splits"), _tensor(op, "nodes_modes")
    ways = [op.wholes(f"nodes_{what}") or () for what in ("truenodeids", "falsenodeids", "trueleafs", "falseleafs")]
    missing = op.wholes("nodes_missing_value_tracks_true") or (0,) * nodes
    lengths = {len(part) for part in (splits, modes, *ways, missing)}
    if lengths != {nodes} or len(targets) != len(weights) or not targets:
        op.fail("lists of nodes or leaves have different lengths")
    for n, (feature, split, mode, left, right, *leaf, nan) in enumerate(
        zip(features, splits, modes, *ways, missing, strict=True)
    ):
        if not 0 <= mode < len(_NUMBERED):
            op.refuse("nodes that compare with sets")
        if any(
            not 0 <= at < (len(targets) if is_leaf else nodes) for at, is_leaf in zip((left, right), leaf, strict=True)
        ):
            op.fail(f"node {n} has a child that is not a node")
        children = [at + nodes if is_leaf else at for at, is_leaf in zip((left, right), leaf, strict=True)]
        trees.add(feature, split, _NUMBERED[int(mode)], children, bool(nan))
    for n, (target, weight) in enumerate(zip(targets, weights, strict=True)):
        trees.add(0, 0.0, "", (nodes + n, nodes + n), False)
        trees.weights[nodes + n].append((target, weight))
    trees.roots = list(op.wholes("tree_roots") or ())
    if not trees.roots or any(not 0 <= n < nodes for n in trees.roots):
        op.fail(f"roots {trees.roots[:8]} are not nodes")
    children = [child for n in range(nodes) for child in (trees.left[n], trees.right[n])] + trees.roots
    if len(set(children)) < len(children):
        op.refuse("nodes that several trees share")
    return trees


def _tensor(op: Operation, name: str) -> tuple[float, ...]:
    found = op.tensor(name)
    if found is not None and op.writer.kind(found) is DType.FLOAT64:
        op.refuse(f"{name} of float64")
    return () if found is None else _floats(found)


CONVERTERS: dict[str, Convert] = {
    "ai.onnx.ml.TreeEnsemble": _ensemble,
    "ai.onnx.ml.TreeEnsembleClassifier": _classifier,
    "ai.onnx.ml.TreeEnsembleRegressor": _regressor,
}
