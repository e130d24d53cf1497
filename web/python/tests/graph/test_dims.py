"""Sizes that are symbols: arithmetic as integers have it, and guards that say for which sizes an answer holds."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from webinfer.graph.dims import Size, has_size, minimum, with_sizes
from webinfer.graph.ir import TensorType
from webinfer.graph.stored_trace import restored, written
from webinfer.graph.trace import AskedAboutSpareError, Expressions, Trace

OPERATORS: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("+", lambda a, b: a + b), ("-", lambda a, b: a - b), ("*", lambda a, b: a * b), ("//", lambda a, b: a // b),
    ("%", lambda a, b: a % b), ("ceil", lambda a, b: -(-a // b)), ("min", min), ("max", max), ("minimum", minimum),
)  # fmt: skip


def computed(draw: random.Random, numbers: list[Any], steps: int) -> list[Any]:
    """Numbers computed from numbers, by the same steps for equal draws; what divides by 0 or grows is left out."""
    found = [*numbers, 2, 3, 7]
    for _ in range(steps):
        (_, operator), a, b = draw.choice(OPERATORS), draw.randrange(len(found)), draw.randrange(len(found))
        try:
            made = operator(found[a], found[b])
        except ZeroDivisionError:
            made = 1
        found.append(made if abs(made) < 10**6 else 5)
    return found


def decided(numbers: list[Any], draw: random.Random) -> list[bool]:
    """Answers to questions about numbers."""
    pairs = [(draw.choice(numbers), draw.choice(numbers)) for _ in range(4)]
    return [answer for a, b in pairs for answer in (a == b, a < b, a >= b, bool(a))]


@pytest.mark.parametrize("seed", range(60))
def test_what_a_trace_gives_holds_for_all_sizes_for_which_its_guards_do(seed: int) -> None:
    hints = {name: random.Random(seed + i).randint(1, 20) for i, name in enumerate("abc")}
    trace = Trace(hints)
    with trace.active():
        numbers = computed(random.Random(seed), [trace.size(name) for name in hints], 14)
        answers = decided(numbers, random.Random(seed))
        expressions = Expressions(trace)
        places = [expressions.number(n) if isinstance(n, Size) else None for n in numbers]
    holds, met = trace.compile_guards(), 0
    assert holds(list(hints.values()))
    draw = random.Random(seed)
    for _ in range(300):
        sizes = [max(1, hint + draw.randint(-3, 3)) for hint in hints.values()]
        if not holds(sizes):
            continue
        met += 1
        plain = computed(random.Random(seed), list(sizes), 14)
        values = expressions.evaluate(sizes)
        assert [n if place is None else values[place] for n, place in zip(numbers, places, strict=True)] == plain
        assert answers == decided(plain, random.Random(seed))
    assert met


def test_equal_expressions_are_equal_without_a_guard() -> None:
    trace = Trace({"t": 37})
    with trace.active():
        t, before = trace.size("t"), len(trace.guards)
        assert (t * 4 + 8) // 4 == t + 2
        assert (t * 384) % 384 == 0
        assert (t * 12 * 384) // (t * 12) == 384
        assert t * t * 3 // (t * 3) == t
        assert ((t + 1) * 64) // (t + 1) == 64
        assert -(-(t * 8) // 8) == t
        assert (t // 4 + 1) // 2 == (t + 4) // 8
        assert t + 1 != t
        assert t > 0
        assert {(t, 1): "kept"}[trace.size("t") + 0, 1] == "kept"
        assert len(trace.guards) == before


def test_bounds_that_are_known_are_not_asked_again() -> None:
    trace = Trace({"t": 37})
    with trace.active():
        t = trace.size("t")
        assert t >= 8
        before = len(trace.guards)
        assert t > 3
        assert t * 4 + 1 > 20
        assert -(-t // 4) >= 2
        assert not t == 5
        assert len(trace.guards) == before
    holds = trace.compile_guards()
    assert [holds([size]) for size in (7, 8, 100, 0)] == [False, True, True, False]


def test_a_symbol_that_equals_another_or_a_number_is_replaced() -> None:
    trace = Trace({"a": 5, "b": 5, "c": 1})
    with trace.active():
        a, b, c = map(trace.size, "abc")
        assert a == b
        assert c == 1
        assert str(b * 2) == "2*a"
        assert (b * c) - a == 0
        assert type(c * 3) is int
        assert hash(c) == hash(1)
    assert trace.open_symbols == ["a", "b"]
    holds = trace.compile_guards()
    assert [holds(sizes) for sizes in ([9, 9, 1], [9, 8, 1], [9, 9, 2])] == [True, False, False]


@pytest.mark.parametrize(
    "leak", [int, float, lambda t: range(t), lambda t: t / 2, lambda t: [0] * t, lambda t: math.sqrt(t)]
)
def test_who_needs_a_number_gets_the_hint_and_the_trace_holds_for_it_alone(leak: Callable[[Any], Any]) -> None:
    trace = Trace({"t": 6})
    with trace.active():
        assert leak(trace.size("t")) == leak(6)
    assert trace.open_symbols == []
    assert [trace.compile_guards()([size]) for size in (5, 6, 7)] == [False, True, False]


def test_whole_factors_of_floats_stay_symbols() -> None:
    trace = Trace({"t": 6})
    with trace.active():
        t = trace.size("t")
        assert math.floor(t * 2.0) == 2 * t
        assert math.ceil(2 * t / t) == 2
        assert t < math.inf
        assert not t > 1e9
        assert t > 0.5
        assert t.bit_length() == 3
    assert trace.open_symbols == ["t"]
    assert [trace.compile_guards()([size]) for size in (3, 4, 7, 8)] == [False, True, True, False]


def test_a_question_after_the_trace_is_an_error() -> None:
    trace = Trace({"t": 6})
    with trace.active():
        t = trace.size("t")
    with pytest.raises(RuntimeError, match="after its trace has ended"):
        assert t == 9


def test_a_guard_that_divides_by_nothing_does_not_hold() -> None:
    trace = Trace({"a": 7, "b": 3})
    with trace.active():
        a, b = map(trace.size, "ab")
        assert a // (b - 2) == 7
    assert trace.compile_guards()([7, 3])
    assert not trace.compile_guards()([7, 2])


def test_numbers_take_the_place_of_sizes_at_any_depth() -> None:
    trace = Trace({"t": 6})
    with trace.active():
        t: Any = trace.size("t")
        thing: dict[str, Any] = {"type": TensorType((1, t, 4)), "list": [t + 1, (2, t * t)], "plain": TensorType((3,))}
    assert has_size(thing)
    assert not has_size(thing["plain"])
    assert with_sizes(thing, lambda size: trace.hint_of(size.poly)) == {
        "type": TensorType((1, 6, 4)), "list": [7, (2, 36)], "plain": TensorType((3,)),
    }  # fmt: skip


def test_spare_rows_are_what_a_memory_has_beyond_those_needed_and_nobody_asks_about_them() -> None:
    trace = Trace({"past": 4, "new": 2})
    with trace.active():
        total = trace.size("past") + trace.size("new")
        rows, others = total + trace.spare(total), total * 2 + trace.spare(total * 2)
        assert rows >= total  # for all sizes
        assert not rows == trace.size("new")
        with pytest.raises(AskedAboutSpareError):
            assert rows == total
        with pytest.raises(AskedAboutSpareError):
            assert (rows * 3) // 2 > total
        expressions = Expressions(trace)
        for size in (rows, others, 8 * rows + 1):
            expressions.number(size)
    assert all("spare" not in guard for guard in trace.guards)
    again, listed = restored(written(trace, expressions))
    for found in (expressions, listed):
        assert found.evaluate([5, 3]) == [8, 16, 65]
        assert found.evaluate([5, 3, 20, 17]) == [20, 17, 161]
        assert found.evaluate([5, 3, 7, 0]) == [8, 16, 65]  # memories that have to grow first
    assert trace.compile_guards()([5, 3])
    assert again.compile_guards()([5, 3])
