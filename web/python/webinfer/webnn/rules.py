"""What a call must fulfil besides its operator's own declaration: the shapes that the interface says of its arguments.

A call becomes several operators, of which some would take more than the interface allows: a bias that broadcasts, a
weight with rows that nobody reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webinfer.errors import InputError

Found = Mapping[str, Any]  # operands by name
Rule = Callable[[Found, Found], None]  # of operands and arguments
PAIRS = ("strides", "dilations", "windowDimensions", "outputPadding", "outputSizes")
MAX_SIDE = 2**31 - 1


def check_call(name: str, operands: Found, arguments: Found) -> None:
    """Nothing, if the method's own rule holds.

    Raises:  InputError saying what does not fit
    """
    if rule := RULES.get(name):
        rule(operands, arguments)


def _shape(operands: Found, name: str, *allowed: Sequence[int]) -> None:
    if name in operands and operands[name].type.shape not in [tuple(shape) for shape in allowed]:
        needed = " or ".join(str(list(shape)) for shape in allowed)
        raise InputError(f"{name} has shape {list(operands[name].type.shape)}, needs {needed}")


def _clamp(operands: Found, arguments: Found) -> None:
    low, high = arguments.get("minValue", -math.inf), arguments.get("maxValue", math.inf)
    if low > high:
        raise InputError(f"minValue {low} is above maxValue {high}")


def _windows(operands: Found, arguments: Found) -> None:
    """Options of convolutions and pools: how many numbers, and which of them start at 1."""
    for name in PAIRS:
        given = arguments.get(name)
        if given is not None and len(given) != 2:
            raise InputError(f"{name} has {len(given)} numbers, needs 2")
        if given is not None and name != "outputPadding" and min(given) < 1:
            raise InputError(f"{name} is {given}, needs numbers from 1")
    padding = arguments.get("padding")
    if padding is not None and len(padding) != 4:
        raise InputError(f"padding has {len(padding)} numbers, needs 4")
    if arguments.get("groups") == 0:
        raise InputError("groups is 0, needs a number from 1")


def _transposed(operands: Found, arguments: Found) -> None:
    _windows(operands, arguments)
    extra, strides = arguments.get("outputPadding"), arguments.get("strides", (1, 1))
    if extra is not None and arguments.get("outputSizes") is None:
        if any(size >= stride for size, stride in zip(extra, strides, strict=True)):
            raise InputError(f"outputPadding {extra} is not less than strides {list(strides)}")


def _batch(operands: Found, arguments: Found) -> None:
    shape, axis = operands["input"].type.shape, arguments.get("axis", 1)
    if axis >= len(shape):
        raise InputError(f"axis {axis} is not one of {len(shape)} axes")
    for name in ("mean", "variance", "scale", "bias"):
        _shape(operands, name, (shape[axis],))


def _instance(operands: Found, arguments: Found) -> None:
    channels = operands["input"].type.shape[3 if arguments.get("layout") == "nhwc" else 1]
    for name in ("scale", "bias"):
        _shape(operands, name, (channels,))


def _layer(operands: Found, arguments: Found) -> None:
    shape = operands["input"].type.shape
    axes = arguments.get("axes", range(1, len(shape)))
    if any(axis >= len(shape) for axis in axes) or len(set(axes)) < len(axes):
        raise InputError(f"axes {list(axes)} are not distinct axes of {list(shape)}")
    for name in ("scale", "bias"):
        _shape(operands, name, [shape[axis] for axis in axes])


def _pad(operands: Found, arguments: Found) -> None:
    rank = operands["input"].type.rank
    for name in ("beginningPadding", "endingPadding"):
        if len(arguments[name]) != rank:
            raise InputError(f"{name} has {len(arguments[name])} numbers, the input {rank} axes")


def _quantized(operands: Found, arguments: Found) -> None:
    _shape(operands, "zeroPoint", operands["scale"].type.shape)


def _cell(gates: int, states: Sequence[str]) -> Rule:
    """Recurrent cells. Shapes:  input [batch, I], weight [gates*H, I], states [batch, H]"""

    def rule(operands: Found, arguments: Found) -> None:
        batch, size = operands["input"].type.shape
        hidden = _hidden(arguments, gates)
        _shape(operands, "weight", (gates * hidden, size))
        _shape(operands, "recurrentWeight", (gates * hidden, hidden))
        for name in states:
            _shape(operands, name, (batch, hidden))
        for name in ("bias", "recurrentBias"):
            _shape(operands, name, (gates * hidden,))
        _shape(operands, "peepholeWeight", (3 * hidden,))

    return rule


def _sequence(gates: int, states: Sequence[str]) -> Rule:
    """Recurrent layers. Shapes:  input [steps, batch, I], weight [D, gates*H, I], states [D, batch, H]"""

    def rule(operands: Found, arguments: Found) -> None:
        steps, batch, size = operands["input"].type.shape
        hidden, ways = _hidden(arguments, gates), 2 if arguments.get("direction") == "both" else 1
        if arguments["steps"] != steps:
            raise InputError(f"steps is {arguments['steps']}, the input has {steps}")
        _shape(operands, "weight", (ways, gates * hidden, size))
        _shape(operands, "recurrentWeight", (ways, gates * hidden, hidden))
        for name in states:
            _shape(operands, name, (ways, batch, hidden))
        for name in ("bias", "recurrentBias"):
            _shape(operands, name, (ways, gates * hidden))
        _shape(operands, "peepholeWeight", (ways, 3 * hidden))

    return rule


def _hidden(arguments: Found, gates: int) -> int:
    hidden: int = arguments["hiddenSize"]
    if not 0 < hidden * gates <= MAX_SIDE:
        raise InputError(f"hiddenSize is {hidden}, needs a number from 1 to {MAX_SIDE // gates}")
    return hidden


def _resample(operands: Found, arguments: Found) -> None:
    for name in ("scales", "sizes", "axes"):
        given = arguments.get(name)
        if given is not None and len(given) != 2:
            raise InputError(f"{name} has {len(given)} numbers, needs 2")
        if given is not None and name != "axes" and min(given) <= 0:
            raise InputError(f"{name} is {given}, needs positive numbers")


def _slice(operands: Found, arguments: Found) -> None:
    shape, starts, sizes = operands["input"].type.shape, arguments["starts"], arguments["sizes"]
    strides = arguments.get("strides", [1] * len(shape))
    if not len(starts) == len(sizes) == len(strides) == len(shape):
        raise InputError(f"starts, sizes and strides need {len(shape)} numbers each")
    for start, size, stride, whole in zip(starts, sizes, strides, shape, strict=True):
        if size < 1 or stride < 1 or start + size > whole:
            raise InputError(f"{size} elements from {start} by {stride} are not within {whole}")


def _tile(operands: Found, arguments: Found) -> None:
    if len(arguments["repetitions"]) != operands["input"].type.rank or 0 in arguments["repetitions"]:
        raise InputError(f"repetitions {arguments['repetitions']} need a number from 1 for each axis")


RULES: dict[str, Rule] = {
    **dict.fromkeys(("averagePool2d", "conv2d", "l2Pool2d", "maxPool2d"), _windows),
    "batchNormalization": _batch,
    "clamp": _clamp,
    "convTranspose2d": _transposed,
    **dict.fromkeys(("dequantizeLinear", "quantizeLinear"), _quantized),
    "gru": _sequence(3, ("initialHiddenState",)),
    "gruCell": _cell(3, ("hiddenState",)),
    "instanceNormalization": _instance,
    "layerNormalization": _layer,
    "lstm": _sequence(4, ("initialHiddenState", "initialCellState")),
    "lstmCell": _cell(4, ("hiddenState", "cellState")),
    "pad": _pad,
    "resample2d": _resample,
    "slice": _slice,
    "tile": _tile,
}
