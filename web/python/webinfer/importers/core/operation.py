"""One operator on its way into the graph, and the walk over all of them.

A format derives its own operation, which finds inputs by the file's keys (positions or names) and reads options.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError, ShapeError
from webinfer.graph.dims import whole
from webinfer.graph.ir import Op, Value, apply
from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import MAX_DECIDING, MAX_READ
from webinfer.importers.core.nothing import of_nothing
from webinfer.importers.core.partial_evaluation import DataDependentValue
from webinfer.importers.core.problems import Problems, Refusal
from webinfer.importers.core.steps import Steps
from webinfer.importers.core.writer import GraphWriter

# What arguments of a wrong type, sign or length lead to in formats whose arguments have no types, as JSON.
WRONG_ARGUMENTS = (
    ShapeError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, struct.error,
)  # fmt: skip


@contextmanager
def checked(name: str) -> Iterator[None]:
    """Says of a model whose parts have wrong types that it is damaged; what is wrong with `shapes` stays as it is."""
    try:
        yield
    except ShapeError:
        raise
    except WRONG_ARGUMENTS as error:
        raise ModelFormatError(f"{name}: a part has an unexpected type or value: {error}") from error


class BaseOperation(Steps):
    """An operator with its inputs as values. Converters build nodes with its methods and return the outputs.

    `scope` holds the values of the (sub)graph by the file's keys; `inputs` and `outputs` are such keys. `index` is
    the operator's number in the file, None where operators have none.
    """

    __slots__ = ("index", "inputs", "name", "outputs", "scope", "writer")
    wrong: tuple[type[Exception], ...] = (ModelFormatError, ShapeError)  # errors that mean a damaged file

    def __init__(
        self, writer: GraphWriter, scope: MutableMapping[Any, Value], name: str, index: int | None,
        inputs: Sequence[Any], outputs: Sequence[Any],
    ) -> None:  # fmt: skip
        self.writer, self.scope, self.name, self.index = writer, scope, name, index
        self.inputs, self.outputs = inputs, outputs

    # ---- what a format says

    @property
    def what(self) -> str:
        """The operator in error messages."""
        return f"operator {self.index} {safe_name(self.name)}"

    def __str__(self) -> str:
        return self.what

    def optional(self, key: Any) -> Value | None:
        """An input by position or name, or None if it is absent."""
        raise NotImplementedError

    def value(self, key: Any) -> Value:
        """An input by position or name, which must be there."""
        value = self.optional(key)
        if value is None:
            self.fail(f"input {key} is missing; {len(self.inputs)} are listed")
        return value

    def values(self) -> list[Value]:
        """All inputs, of formats that have them by position."""
        return [self.value(i) for i in range(len(self.inputs))]

    def word(self, name: str, default: str) -> str:
        """The word of an option, of formats that have such."""
        raise NotImplementedError

    def name_of(self, key: Any) -> str:
        """What the file calls the value under this key."""
        return str(key)

    def label(self, op: Op) -> tuple[str, str]:
        """The label of a new node, and the name of its result until it is bound to an output of the file."""
        stem = self.name_of(self.outputs[0]) if self.outputs else self.name
        return safe_name(stem), f"{stem}/{op.name}"

    def problem(self, reason: str) -> str:
        """How something that is not supported is listed."""
        return f"{safe_name(self.name)}: {reason}"

    def located(self, error: Exception) -> ModelFormatError:
        """An error of a converter, with the place in the file."""
        text, name = str(error), self.writer.graph.name
        told = text.startswith(self.what.partition(" ")[0])
        return ModelFormatError(f"{name}: {text}" if told else f"{name}: {self.what}: {text}")

    def accept(self, i: int, value: Value) -> None:
        """Nothing, if this value may become output i; else an error."""

    def stand_in(self, key: Any) -> Value | None:
        """For a result that could not be made: a value of the type that the file declares, if it does."""
        return None

    # ---- inputs that must be known while reading

    def integers(self, key: Any) -> tuple[int, ...]:
        """The numbers of an input, which must be known now, small and whole: a shape, axes, sizes."""
        numbers = self._constants(key)
        dtype = self.value(key).type.dtype
        if dtype.is_float or dtype is DType.BOOL:
            self.fail(f"input {key} is {dtype}, needs integers")
        return numbers

    def integer(self, key: Any) -> int:
        """The only number of an input, a whole one."""
        return whole(self._single(key, self.integers(key)))  # type: ignore[no-any-return]

    def scalar(self, key: Any) -> int | float | bool:
        """The only number of an input, of any type."""
        number: int | float | bool = self._single(key, self._constants(key))
        return number

    def _single(self, key: Any, numbers: tuple[Any, ...]) -> Any:
        if len(numbers) != 1:
            self.fail(f"input {key} holds {len(numbers)} numbers, needs one")
        return numbers[0]

    def _constants(self, key: Any) -> tuple[Any, ...]:
        value = self.value(key)
        if value.type.size <= MAX_DECIDING:
            value = self.writer.read(value)
        if value.constant is None:
            self.refuse(f"input {key} is computed at run time; shapes, axes and sizes must be constants")
        if value.type.size > MAX_READ or value.constant.sparsity is not None:
            self.refuse(f"input {key} of {value.type} is too large for a shape, an axis or a size")
        return value.numbers()

    def axes(self, key: Any, rank: int) -> tuple[int, ...]:
        """The numbers of an input as axes from 0, each once."""
        return tuple(dict.fromkeys(self.axis(a, rank) for a in self.integers(key)))

    # ---- checks of options

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from 0, as -1 is the last."""
        if not -rank <= axis < rank:
            self.fail(f"axis {axis} is not one of {rank} axes")
        return axis % rank

    def chosen(self, name: str, allowed: Collection[str], default: str = "") -> str:
        """A word that must be one of those allowed; another one is refused."""
        word = self.word(name, default)
        if word not in allowed:
            self.refuse(f"{name} {safe_name(word)}")
        return word

    def finite(self, name: str, number: float) -> float:
        """The option's number, which must not be infinite."""
        if not math.isfinite(number):
            self.fail(f"{name} is {number}, must be a finite number")
        return number

    # ---- nodes and errors

    def emit(self, op: Op, inputs: Sequence[Value | None], attrs: Any) -> Value:
        """The only result of a new node; of one that reads nothing, what is known of it."""
        known = of_nothing(op, inputs, attrs, self.emit)
        if known is not None:
            return known
        (value,) = self.emit_all(op, inputs, attrs)
        return value

    def emit_all(self, op: Op, inputs: Sequence[Value | None], attrs: Any) -> list[Value]:
        """The results of a new node."""
        label, name = self.label(op)
        return self.writer.add(apply(op, inputs, attrs, label=label, name=name), self)

    def fail(self, problem: str) -> NoReturn:
        """Ends the conversion: the file breaks a rule."""
        raise ModelFormatError(f"{self.what}: {problem}")

    def refuse(self, reason: str) -> NoReturn:
        """Ends the conversion of this operator: it is not supported."""
        raise Refusal(reason)

    def bind(self, results: Sequence[Value], made: Collection[Value]) -> None:
        """Makes the results the values of the operator's outputs; what it `made` itself gets the name in the file."""
        if len(results) < len(self.outputs):
            self.fail(f"{len(self.outputs)} outputs are listed, the operator has {len(results)}")
        for i, (key, value) in enumerate(zip(self.outputs, results, strict=False)):
            self.accept(i, value)
            if value in made:
                value.name = self.name_of(key)
            self.scope[key] = value


AnyOperation = TypeVar("AnyOperation", bound=BaseOperation)
Convert = Callable[[AnyOperation], Value | Sequence[Value]]


Stopped = Callable[[int, tuple[int, ...], DataDependentValue], bool]


def convert_all(
    steps: Iterable[tuple[AnyOperation, Convert[AnyOperation] | None, str]], problems: Problems,
    stopped: Stopped | None = None,
) -> None:  # fmt: skip
    """Converts operators in the file's order; what is not supported is added to `problems`, and the walk goes on.

    Each operator comes with its converter and with the obstacle that keeps it from being converted, "" if none.
    `stopped` is told the first operator that depends on data: its number, the writer's mark before it and the error. It
    says whether to go on, to find what is not supported.

    Raises:  ModelFormatError if the file breaks a rule; LimitError; DataDependentValue if the rest depends on data and
             nothing is unsupported
    """
    waiting: DataDependentValue | None = None
    for number, (operation, convert, obstacle) in enumerate(steps):
        mark = operation.writer.mark()
        operation.writer.count_operator()
        guessed, before = problems.guessed(operation.inputs), operation.writer.position
        if convert is None or obstacle:
            _note(operation, (obstacle,), problems)
        else:
            try:
                results = convert(operation)
                results = [results] if isinstance(results, Value) else list(results)
                operation.bind(results, operation.writer.made_since(before))
            except Refusal as refusal:
                _note(operation, () if guessed else refusal.reasons, problems)
            except DataDependentValue as unknown:
                if waiting is None and stopped is not None and not stopped(number, mark, unknown):
                    raise
                waiting = waiting or unknown  # the walk goes on, to find what is not supported
                _note(operation, (), problems)
            except operation.wrong as error:
                if not guessed:
                    raise operation.located(error) from error
                _note(operation, (), problems)
    if waiting is not None and not problems.lines():
        raise waiting


def _note(operation: BaseOperation, reasons: Iterable[str], problems: Problems) -> None:
    for reason in reasons:
        problems.add(operation.problem(reason), operation.index)
    problems.guess(operation.outputs)
    for key in operation.outputs:  # stand-ins, so that what follows is looked at too
        if key not in operation.scope and (value := operation.stand_in(key)) is not None:
            operation.scope[key] = value
