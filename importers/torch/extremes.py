"""ATen's greatest and least elements, and their places. Gradients at ties are those of PyTorch.

of all, or of dimensions    ties share the gradient evenly (`amax`, `amin`, `max()`, `min()`)
along a dimension           the first of them has it (`max(dim)`, `min(dim)`), and is the place
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .call import AtenCall, TensorValue, elementwise
from .converter import Converter


def extreme_value(call: AtenCall, data: TensorValue, reducer: str, ties: str = "shared") -> TensorValue:
    """Return the extreme value; `ties` says which of several has the gradient."""
    axes, keeps = call.axes("dim", data.rank), bool(call.get("keepdim", False))
    return call.library(reducer.lower(), data, axis=axes, keepdims=keeps, ties=ties) if data.rank else data


def _shared(reducer: str) -> Converter:
    return lambda call: extreme_value(call, call.tensor("self"), reducer)


def _place(call: AtenCall, reducer: str, step: str = "") -> TensorValue:
    """Return the first place of the extreme value along a dimension, or in row-major order."""
    data, axis = call.tensor("self"), call.get("dim")
    settings = {"axis": axis, "keepdims": bool(call.get("keepdim", False))} if data.rank else {}
    shape = call.results[-1].shape
    return call.library(f"arg{reducer.lower()}", data, shape=shape, kind="int", step=step, **settings)


def _extreme(reducer: str) -> Converter:
    """Return the extreme value of all elements, of each pair, or along a dimension with its place."""

    def convert(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
        if call.has("other"):
            body = "maximum({0}, {1})" if reducer == "Max" else "minimum({0}, {1})"
            return elementwise(call, body, call.operand("self"), call.operand("other"))
        if call.has("dim"):
            value = extreme_value(call, call.tensor("self"), reducer, "first")
            return value, _place(call, reducer, step="place")
        return extreme_value(call, call.tensor("self"), reducer)

    return convert


CONVERTERS: Mapping[str, Converter] = {
    "amax": _shared("Max"),
    "amin": _shared("Min"),
    "max": _extreme("Max"),
    "min": _extreme("Min"),
    "argmax": lambda call: _place(call, "Max"),
    "argmin": lambda call: _place(call, "Min"),
}
