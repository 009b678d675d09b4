"""Sequences `[time, batch, ...]` whose lengths may differ: SequenceLast, SequenceMask, SequenceReverse."""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.region import Shape
from ..attributes import Attributes, flag, number
from ..definition import Fixed, Variant, variant
from ..operator import Example, Operator
from ..shape_solver import PartialShape

LAST = "lambda n, *i: data[sequence_length[n] - 1, n, *i]"
LAST_OF_ALL = "lambda n, *i: data[data.shape[0] - 1, n, *i]"
MASK = "lambda t, n, *i: where(t < sequence_length[n], data[t, n, *i], value)"
REVERSE = (
    "lambda t={0}.shape[0], n, *i: {0}[where(t < sequence_length[n], sequence_length[n] - 1 - t, t), n, *i]"
)
REVERSE_ALL = "lambda t={0}.shape[0], n, *i: {0}[{0}.shape[0] - 1 - t, n, *i]"


def _arguments(attributes: Attributes) -> tuple[str, ...]:
    return ("data", "sequence_length") if attributes.flag("use_sequence_length") else ("data",)


def _hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    data = shapes["data"]
    if data is None or not attributes.flag("use_sequence_length"):
        return {}
    return {"sequence_length": (data[1],)}


def _by_length(name: str, with_lengths: str, without: str) -> Fixed:
    def describe(attributes: Attributes) -> Variant:
        if attributes.flag("use_sequence_length"):
            return variant(f"def {name}(data, sequence_length):\n    return {with_lengths}")
        return variant(f"def {name}(data):\n    return {without}")

    return Fixed(describe)


def _mask(attributes: Attributes) -> Variant:
    if not attributes.flag("use_sequence_length"):
        return variant("def SequenceMask(data):\n    return lambda *i: data[*i]")
    return variant(
        f"def SequenceMask(data, sequence_length, *, value):\n    return {MASK}",
        {"value": attributes.number("value")},
    )


def _reverse_back(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Reversing is its own inverse, which the derived gradient, a sum over all times, does not know."""
    lengths = attributes.flag("use_sequence_length")
    template, tensors = (REVERSE, "grad_0, sequence_length") if lengths else (REVERSE_ALL, "grad_0")
    return variant(
        f"def SequenceReverse_grad({tensors}):\n    return {template.format('grad_0')}",
        targets={"data": "output_0"},
    )


LENGTHS = flag("use_sequence_length", False)
EXAMPLE = Example(
    {"data": (3, 4, 2), "sequence_length": (4,)},
    {"use_sequence_length": True},
    {"sequence_length": (1, 4)},
)

OPERATORS = (
    Operator(
        name="SequenceLast",
        definition=_by_length("SequenceLast", LAST, LAST_OF_ALL),
        argument_names=_arguments,
        specs=(LENGTHS,),
        hints=_hints,
        example=EXAMPLE,
    ),
    Operator(
        name="SequenceMask",
        definition=Fixed(_mask),
        argument_names=_arguments,
        specs=(LENGTHS, number("value", 0.0)),
        hints=_hints,
        example=EXAMPLE,
    ),
    Operator(
        name="SequenceReverse",
        definition=_by_length("SequenceReverse", REVERSE.format("data"), REVERSE_ALL.format("data")),
        argument_names=_arguments,
        specs=(LENGTHS,),
        gradient_definition=_reverse_back,
        hints=_hints,
        example=EXAMPLE,
    ),
)
