"""Toy files → graph. A line each: "input x ?x4", "constant w 4 1 2 3 4", "OPERATOR result operands...", "output y"."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Op, TensorType, Value
from webinfer.importers.core.operation import WRONG_ARGUMENTS, BaseOperation, Convert, convert_all
from webinfer.importers.core.problems import Problems
from webinfer.importers.core.writer import GraphWriter, Shapes, bound_shape, check_names
from webinfer.ops import elementwise as ew


class Operation(BaseOperation):
    """A line of the file; its operands are named by position."""

    __slots__ = ()
    wrong = (ModelFormatError, *WRONG_ARGUMENTS)

    def optional(self, key: int) -> Value | None:
        """Operand number `key`, or None if it is absent."""
        return self.scope.get(self.inputs[key]) if key < len(self.inputs) else None


def _unary(kind: Op) -> Callable[[Operation], Value]:
    return lambda op: op.unary(kind, op.value(0))


def _binary(kind: Op) -> Callable[[Operation], Value]:
    return lambda op: op.binary(kind, op.value(0), op.value(1))


CONVERTERS: dict[str, Convert[Operation]] = {
    "MUL": _binary(ew.MUL),
    "RELU": _unary(ew.RELU),
    "RESHAPE": lambda op: op.reshape(op.value(0), op.integers(1)),
    "SPLIT": lambda op: [op.cut(op.value(0), 1, i, 1) for i in range(op.value(0).type.shape[1])],
}


def read_toy(data: memoryview, name: str, shapes: Shapes) -> Graph:
    """The graph of a toy file."""
    writer, scope, problems, outputs = GraphWriter(name), dict[str, Value](), Problems(), list[str]()
    try:
        lines = [line.split() for line in str(data, "ascii").splitlines()[1:]]
        _declare(lines, writer, scope, shapes)
        outputs += [words[1] for words in lines if words[0] == "output"]
        steps = list(_steps(lines, writer, scope))
    except (ValueError, IndexError) as error:
        raise ModelFormatError(f"{name}: a damaged line: {error}") from error
    convert_all(steps, problems)
    problems.check()
    if missing := [output for output in outputs if output not in scope]:
        raise ModelFormatError(f"{name}: outputs {missing} are made by no line")
    return writer.finish([(output, output, scope[output]) for output in outputs])


def _declare(lines: list[list[str]], writer: GraphWriter, scope: dict[str, Value], shapes: Shapes) -> None:
    check_names(shapes, [words[1] for words in lines if words[0] == "input"])
    for kind, name, *rest in lines:
        if kind == "input":
            allowed = [-1 if d == "?" else int(d) for d in rest[0].split("x")]
            shape = bound_shape(name, tuple(abs(d) for d in allowed), allowed, shapes.get(name), DType.FLOAT32)
            scope[name] = Value(name, TensorType(shape))
            writer.graph.inputs.append(scope[name])
        elif kind == "constant":
            whole = all(word.lstrip("-").isdigit() for word in rest)
            numbers = [float(word) for word in rest]
            step = Operation(writer, scope, "constant", None, (), (name,))
            scope[name] = step.constant(numbers, DType.INT32 if whole else DType.FLOAT32)


def _steps(
    lines: list[list[str]], writer: GraphWriter, scope: dict[str, Value]
) -> Iterator[tuple[Operation, Convert[Operation] | None, str]]:
    for i, (kind, results, *operands) in enumerate(lines):
        if kind not in ("input", "constant", "output"):
            operation = Operation(writer, scope, kind, i, operands, results.split(","))
            yield operation, CONVERTERS.get(kind), "" if kind in CONVERTERS else "not supported"
