"""ATen's greatest and least elements, and their places. Gradients at ties are those of PyTorch.

    of all, or of dimensions    ties share the gradient evenly (`amax`, `amin`, `max()`, `min()`)
    along a dimension           the first of them has it (`max(dim)`, `min(dim)`), and is the place

The value itself has no gradient. The chosen elements less the value, which is zero, have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from .call import AtenCall, TensorValue, at, elementwise
from .converter import Converter
from .reductions import Reduced


def _shared(call: AtenCall, reducer: str) -> TensorValue:
    """Return the extreme value. Ties share its gradient."""
    data = call.tensor("self")
    if not data.rank:
        return data
    names = Reduced(call, data, call.axes("dim", data.rank))
    peak = at("peak", names.kept)
    ties = f"maximum(Sum(lambda {names.inner}: where({names.all} == {peak}, 1, 0)), 1)"
    stage = f"ties = lambda {names.stage_binders}: {ties}"
    return _value(call, data, names, reducer, f"{names.all} == {peak}", stage, f" / {names.stage('ties')}")


def _along(call: AtenCall, reducer: str) -> Sequence[TensorValue | None]:
    """Return the extreme value along a dimension, and its first place, which has the gradient."""
    data = call.tensor("self")
    place = _place(call, reducer, step="place")
    if not data.rank:
        return data, place
    names = Reduced(call, data, call.axes("dim", data.rank))
    first = f"Min(lambda {names.inner}: {_where_extreme(data, call, names, at('peak', names.kept))})"
    stage, chosen = (
        f"first = lambda {names.stage_binders}: {first}",
        f"{_order(data, call)} == {names.stage('first')}",
    )
    return _value(call, data, names, reducer, chosen, stage), place


def _value(
    call: AtenCall, data: TensorValue, names: Reduced, reducer: str, chosen: str, stage: str, share: str = ""
) -> TensorValue:
    """Return the extreme value, whose gradient goes to the chosen elements."""
    peak = at("peak", names.kept)
    zero = f"Sum(lambda {names.inner}: where({chosen} and abs({peak}) < inf, {names.all} - {peak}, 0))"
    return call.described(
        {"data": data, "peak": names.extreme(call, data, reducer)},
        f"lambda {names.binders}: {peak} + {zero}{share}",
        stages=[stage],
    )


def _order(data: TensorValue, call: AtenCall) -> str:
    """Return the place of an element in the dimensions that are reduced, in row-major order."""
    axes = call.axes("dim", data.rank)
    return " + ".join(
        f"i{axis} * {prod(data.shape[other] for other in axes if other > axis)}" for axis in axes
    )


def _where_extreme(data: TensorValue, call: AtenCall, names: Reduced, extreme: str) -> str:
    """Return the place of an element that is the extreme or not a number, else the number of places."""
    found = f"{names.all} == {extreme} or {names.all} != {names.all}"
    return f"where({found}, {_order(data, call)}, {names.count})"


def _place(call: AtenCall, reducer: str, step: str = "") -> TensorValue:
    """Return the first place of the extreme value along a dimension, or in row-major order."""
    data = call.tensor("self")
    if not data.rank:
        return call.described({"data": data}, "lambda one: 0 * data[one]", shape=(), kind="int", step=step)
    names = Reduced(call, data, call.axes("dim", data.rank))
    found = _where_extreme(data, call, names, names.stage("extreme"))
    return call.described(
        {"data": data},
        f"lambda {names.binders}: Min(lambda {names.inner}: {found})",
        stages=[f"extreme = lambda {names.stage_binders}: {reducer}(lambda {names.inner}: {names.all})"],
        shape=call.results[-1].shape,
        kind="int",
        step=step,
    )


def _extreme(reducer: str) -> Converter:
    """Return the extreme value of all elements, of each pair, or along a dimension with its place."""

    def convert(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
        if call.has("other"):
            body = "maximum({0}, {1})" if reducer == "Max" else "minimum({0}, {1})"
            return elementwise(call, body, call.operand("self"), call.operand("other"))
        return _along(call, reducer) if call.has("dim") else _shared(call, reducer)

    return convert


CONVERTERS: Mapping[str, Converter] = {
    "amax": lambda call: _shared(call, "Max"),
    "amin": lambda call: _shared(call, "Min"),
    "max": _extreme("Max"),
    "min": _extreme("Min"),
    "argmax": lambda call: _place(call, "Max"),
    "argmin": lambda call: _place(call, "Min"),
}
