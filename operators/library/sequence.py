"""Sequences whose lengths may differ: SequenceLast, SequenceMask, SequenceReverse.

Data is `[time, batch, ...]`, or for the first two `[batch, time, ...]` with axis=1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...analyzer.indices.region import Shape
from ...errors import OperatorError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, flag, integer, number
from ..stages.definition import Fixed, Variant, variant
from .texts import check_rank

LAST = "lambda n, *i: data[{0}, *i]"
MASK = "lambda {0}, *i: where(t < sequence_length[n], data[{0}, *i], value)"
REVERSE = (
    "lambda t={0}.shape[0], n, *i: {0}[where(t < sequence_length[n], sequence_length[n] - 1 - t, t), n, *i]"
)
REVERSE_ALL = "lambda t={0}.shape[0], n, *i: {0}[{0}.shape[0] - 1 - t, n, *i]"


def _arguments(attributes: Attributes) -> tuple[str, ...]:
    return ("data", "sequence_length") if attributes.flag("use_sequence_length") else ("data",)


def _hints(
    operator: str, attributes: Attributes, shapes: Mapping[str, PartialShape]
) -> Mapping[str, PartialShape]:
    data = shapes["data"]
    if data is None or not attributes.flag("use_sequence_length"):
        return {}
    time = _time(operator, attributes)
    check_rank(operator, "data", len(data), "batch, time, ..." if time else "time, batch, ...")
    return {"sequence_length": (data[1 - time],)}


def _time(operator: str, attributes: Attributes) -> int:
    """Return the dimension of time. Raises OperatorError for any but the first two."""
    axis = attributes.integer("axis") if "axis" in attributes else 0
    if axis not in (0, 1):
        raise OperatorError(f"{operator}: axis={axis} is not supported; sequences lie along dimension 0 or 1")
    return axis


def _last(attributes: Attributes) -> Variant:
    time = _time("SequenceLast", attributes)
    lengths = attributes.flag("use_sequence_length")
    end = "sequence_length[n] - 1" if lengths else f"data.shape[{time}] - 1"
    tensors = "data, sequence_length" if lengths else "data"
    place = f"n, {end}" if time == 1 else f"{end}, n"
    return variant(f"def SequenceLast({tensors}):\n    return {LAST.format(place)}")


def _mask(attributes: Attributes) -> Variant:
    if not attributes.flag("use_sequence_length"):
        return variant("def SequenceMask(data):\n    return lambda *i: data[*i]")
    place = "n, t" if _time("SequenceMask", attributes) == 1 else "t, n"
    return variant(
        f"def SequenceMask(data, sequence_length, *, value):\n    return {MASK.format(place)}",
        {"value": attributes.number("value")},
    )


def _reverse(attributes: Attributes) -> Variant:
    if attributes.flag("use_sequence_length"):
        return variant(f"def SequenceReverse(data, sequence_length):\n    return {REVERSE.format('data')}")
    return variant(f"def SequenceReverse(data):\n    return {REVERSE_ALL.format('data')}")


def _reverse_back(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the gradient by reversing again, which is cheaper than the derived sum over all times."""
    lengths = attributes.flag("use_sequence_length")
    template, tensors = (REVERSE, "grad_0, sequence_length") if lengths else (REVERSE_ALL, "grad_0")
    return variant(
        f"def SequenceReverse_grad({tensors}):\n    return {template.format('grad_0')}",
        targets={"data": "output_0"},
    )


LENGTHS = flag("use_sequence_length", False)
TIME = integer("axis", 0)
EXAMPLE = Example(
    {"data": (3, 4, 2), "sequence_length": (4,)},
    {"use_sequence_length": True},
    {"sequence_length": (1, 4)},
)

OPERATORS = (
    Operator(
        name="SequenceLast",
        definition=Fixed(_last),
        argument_names=_arguments,
        specs=(LENGTHS, TIME),
        hints=partial(_hints, "SequenceLast"),
        example=EXAMPLE,
    ),
    Operator(
        name="SequenceMask",
        definition=Fixed(_mask),
        argument_names=_arguments,
        specs=(LENGTHS, number("value", 0.0), TIME),
        hints=partial(_hints, "SequenceMask"),
        example=EXAMPLE,
    ),
    Operator(
        name="SequenceReverse",
        definition=Fixed(_reverse),
        argument_names=_arguments,
        specs=(LENGTHS,),
        gradient_definition=_reverse_back,
        hints=partial(_hints, "SequenceReverse"),
        example=EXAMPLE,
    ),
)
