"""The numbers of the file format, compared with the schema that LiteRT ships."""

from __future__ import annotations

import re

import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tests.importers.tflite_writer import Writer

from webinfer.importers.tflite import schema as ours
from webinfer.importers.tflite.convert import CONVERTERS


def _numbers(name: str) -> dict[str, int]:
    return {key: value for key, value in vars(getattr(schema, name)).items() if isinstance(value, int)}


def test_operators_types_and_small_enums() -> None:
    operators = _numbers("BuiltinOperator")
    assert all(operators[name] == i for i, name in enumerate(ours.OPERATORS))
    assert operators["CUSTOM"] == ours.CUSTOM
    types = _numbers("TensorType")
    assert all(types[name] == i for i, name in enumerate(ours.TENSOR_TYPES))
    assert all(_numbers("ActivationFunctionType")[name] == i for i, name in enumerate(ours.ACTIVATIONS))
    assert all(_numbers("Padding")[name] == i for i, name in enumerate(ours.PADDINGS))
    assert all(_numbers("MirrorPadMode")[name.upper()] == i for i, name in enumerate(ours.MIRROR_PAD_MODES))
    assert (ours.DENSE, ours.SPARSE_CSR) == (
        _numbers("DimensionType")["DENSE"],
        _numbers("DimensionType")["SPARSE_CSR"],
    )
    assert _numbers("SparseIndexVector") == {"NONE": 0, **{name: tag for tag, name in ours.INDEX_VECTORS.items()}}
    assert _numbers("FullyConnectedOptionsWeightsFormat")["SHUFFLED4x16INT8"] == ours.SHUFFLED_WEIGHTS


def test_options_have_the_tags_of_the_union() -> None:
    second = _numbers("BuiltinOptions2")
    assert {tag: name for name, tag in second.items() if name in ours.OPTIONS_2.values()} == ours.OPTIONS_2
    tags = _numbers("BuiltinOptions")
    assert {tag: name for name, tag in tags.items() if name in ours.OPTIONS.values()} == ours.OPTIONS


@pytest.mark.parametrize("table", sorted(ours.SCHEMA))
def test_every_field_has_its_slot_and_default(table: str) -> None:
    blank = vars(getattr(schema, f"{table}T")())
    for name, field in ours.SCHEMA[table].items():
        camel = re.sub(r"_(\w)", lambda match: match[1].upper(), name)
        reader = getattr(getattr(schema, table), camel[0].upper() + camel[1:])
        offsets = [c for c in reader.__code__.co_consts if isinstance(c, int) and not isinstance(c, bool) and c >= 4]
        assert 4 + 2 * field.slot in offsets, f"{table}.{name} is not slot {field.slot}"
        default = blank[camel]
        if default is not None and not isinstance(default, list | str | bytes):
            assert default == field.default, f"{table}.{name}"


@pytest.mark.parametrize("op", sorted(CONVERTERS))
def test_newest_version_is_the_one_that_litert_runs(op: str) -> None:
    newest = ours.VERSIONS.get(op, 1)
    assert _registered(op, newest)
    assert not _registered(op, newest + 1)


def _registered(op: str, version: int) -> bool:
    w = Writer()
    x, y = w.input("x", (1,)), w.tensor("y", (1,))
    w.node(op, [x], [y], version)
    try:
        Interpreter(
            model_content=w.finish(y), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        )
    except (ValueError, RuntimeError) as error:
        return "Didn't find op" not in str(error)
    return True
