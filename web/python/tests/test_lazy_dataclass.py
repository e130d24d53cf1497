"""The engine's `dataclass` beside the standard library's: the same classes, with methods compiled on first use."""

import ast
import copy
import dataclasses
import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

import webinfer
from webinfer import lazy_dataclass


def made(dataclass: Any) -> dict[str, Any]:
    """Classes of every kind that the engine has, made by one of the two decorators."""

    @dataclass(frozen=True, slots=True)
    class Point:
        """A place."""

        x: int
        y: float = 0.5
        names: list[str] = dataclasses.field(default_factory=list, compare=False)

    @dataclass(frozen=True)
    class Base:
        a: int
        b: str = "b"

    @dataclass(frozen=True)
    class Derived(Base):
        c: tuple[int, ...] = dataclasses.field(default=(), repr=False, hash=False)
        made: int = dataclasses.field(default=7, init=False)
        d: str = dataclasses.field(default="d", kw_only=True)

    @dataclass(slots=True)
    class Counter:
        count: int = 0
        seen: set[int] = dataclasses.field(default_factory=set, init=False)

        def __post_init__(self) -> None:
            self.count += 1

    @dataclass(slots=True, eq=False)
    class Own:
        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

        def __hash__(self) -> int:
            return 3

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

    @dataclass
    class Empty:
        pass

    plain = type("Plain", (Base,), {})  # is no dataclass: it has attributes of its own
    return {kind.__name__: kind for kind in (Point, Base, Derived, Counter, Own, Empty, plain)}


def told(call: Any) -> Any:
    """What a call returns, or its error."""
    try:
        return repr(call())
    except (TypeError, AttributeError) as error:
        return type(error).__name__, str(error).replace("lazy_dataclass.", "")


QUESTIONS = {
    "positions": lambda k: k["Point"](1, 2.0, ["n"]),
    "defaults": lambda k: k["Point"](x=1),
    "no argument": lambda k: k["Point"](),
    "unknown argument": lambda k: k["Point"](1, z=2),
    "fresh lists": lambda k: k["Point"](1).names is k["Point"](1).names,
    "equal": lambda k: (k["Point"](1, 2, ["a"]) == k["Point"](1, 2, []), k["Point"](1) == k["Point"](2)),
    "other kinds": lambda k: (k["Base"](1) == k["Derived"](1), k["Base"](1) == 1),
    "hash": lambda k: hash(k["Point"](1)) == hash(k["Point"](1, 0.5, ["a"])) == hash((1, 0.5)),
    "hash without a field": lambda k: hash(k["Derived"](1, c=(2,))) == hash(k["Derived"](1)),
    "no hash": lambda k: hash(k["Counter"]()),
    "derived": lambda k: k["Derived"](1, "z", (2,), d="e"),
    "keyword only": lambda k: k["Derived"](1, "z", (2,), "e"),
    "not of init": lambda k: k["Derived"](1, made=2),
    "value not of init": lambda k: k["Derived"](1).made,
    "after init": lambda k: k["Counter"](4),
    "mutable": lambda k: setattr(k["Counter"](), "count", 9),
    "own methods": lambda k: (k["Own"]("n"), hash(k["Own"]("n")), k["Own"]("n") == k["Own"]("m")),
    "empty": lambda k: (k["Empty"](), k["Empty"]() == k["Empty"]()),
    "assigning": lambda k: setattr(k["Point"](1), "x", 2),
    "deleting": lambda k: delattr(k["Base"](1), "a"),
    "assigning in a plain subclass": lambda k: setattr(k["Plain"](1), "a", 2),
    "an attribute of a plain subclass": lambda k: setattr(k["Plain"](1), "more", 2),
    "replace": lambda k: dataclasses.replace(k["Point"](1, 2.0), y=3.0),
    "asdict": lambda k: dataclasses.asdict(k["Derived"](1)),
    "fields": lambda k: [(f.name, f.init, f.repr) for f in dataclasses.fields(k["Derived"])],
    "copy": lambda k: (copy.copy(k["Point"](1)), copy.deepcopy(k["Derived"](1)), copy.copy(k["Counter"]())),
    "signature": lambda k: list(inspect.signature(k["Derived"]).parameters),
    "signature of a plain subclass": lambda k: list(inspect.signature(k["Plain"]).parameters),
    "match": lambda k: (k["Point"].__match_args__, k["Derived"].__match_args__),
    "doc": lambda k: k["Point"].__doc__,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_class_answers_as_one_of_the_standard_library_does(question: str) -> None:
    ask = QUESTIONS[question]
    ours, theirs = made(lazy_dataclass._dataclass), made(dataclasses.dataclass)
    first = told(lambda: ask(ours))
    assert first == told(lambda: ask(theirs))
    assert first == told(lambda: ask(ours)), "another answer once the methods are compiled"


@lazy_dataclass._dataclass(frozen=True, slots=True)
class Pickled:
    x: int
    names: tuple[str, ...] = ()


def test_a_frozen_class_with_slots_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(3, ("a",)))) == Pickled(3, ("a",))


def test_methods_are_compiled_once_and_on_first_use() -> None:
    kinds = made(lazy_dataclass._dataclass)
    point = kinds["Point"]
    waiting = vars(point)["__init__"]
    point(1)
    compiled = vars(point)["__init__"]
    assert compiled is not waiting
    point(2)
    assert vars(point)["__init__"] is compiled
    lazy_dataclass.compile_all()
    assert not lazy_dataclass._pending


def test_the_engine_defines_its_classes_with_it() -> None:
    folder = Path(webinfer.__file__).parent
    wrong = [
        file.relative_to(folder)
        for file in folder.rglob("*.py")
        if file.name != "lazy_dataclass.py"
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        if any(name.name == "dataclass" for name in node.names)
    ]
    assert not wrong, "these compile methods that nobody calls: import dataclass from webinfer.lazy_dataclass"
