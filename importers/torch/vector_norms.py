"""ATen's norms of vectors and distances of rows, of any order. Where one is zero, so is its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from .call import AtenCall, TensorValue, at, bound, literal, stretched, variables
from .converter import Converter
from .extremes import extreme_value
from .reductions import NONZERO, Reduced, root_of


class Norm(NamedTuple):
    """How the norm of one order reduces a vector."""

    reducer: str
    """The reduction."""

    term: str
    """The term of an element."""

    root: str | None = None
    """The root of the total; None if the total is the norm."""


NORMS = {
    0.0: Norm("Sum", NONZERO),
    1.0: Norm("Sum", "abs({})"),
    2.0: Norm("Sum", "square({})", "sqrt({})"),
    inf: Norm("Max", "abs({})"),
    -inf: Norm("Min", "abs({})"),
}
"""The norms whose order needs no power, by it."""


def _of_order(order: float) -> Norm:
    if order in NORMS:
        return NORMS[order]
    term = f"abs({{0}}) ** {literal(order)}"
    if order < 1:  # the slope at zero is infinite; PyTorch takes zero
        zero = 0 if order > 0 else "inf"
        term = f"where({{0}} == 0, {zero}, {term.format('where({0} == 0, 1, {0})')})"
    return Norm("Sum", term, f"{{}} ** {literal(1 / order)}")


def norm(call: AtenCall) -> TensorValue:
    """Return the norm of vectors."""
    data, found = call.tensor("self"), _of_order(float(call.get("ord", call.get("p", 2))))
    if found.reducer != "Sum":
        term = f"lambda *i: {found.term.format('data[*i]')}"
        size = call.described({"data": data}, term, shape=data.shape, step="size")
        return extreme_value(call, size, found.reducer)
    names = Reduced(call, data, call.axes("dim", data.rank))
    total = f"Sum(lambda {names.inner}: {found.term.format(names.all)})"
    if found.root is None:
        return call.described({"data": data}, f"lambda {names.binders}: {total}")
    body = root_of(names.stage("total"), found.root)
    stage = f"total = lambda {names.stage_binders}: {total}"
    return call.described({"data": data}, f"lambda {names.binders}: {body}", stages=[stage])


def pairwise_distance(call: AtenCall) -> TensorValue:
    """Return the distance of each row from each other row."""
    first, second = call.tensor("x1"), call.tensor("x2")
    found = _of_order(float(call.get("p", 2.0)))
    shape = call.result.shape
    names = variables(len(shape))
    batch = shape[:-2]
    reads = [
        stretched(
            name,
            (*each.shape[:-2], shape[row], each.shape[-1]),
            (*batch, shape[row], each.shape[-1]),
            [*names[:-2], names[row], "k"],
        )
        for name, each, row in (("first", first, -2), ("second", second, -1))
    ]
    difference = f"({reads[0]} - {reads[1]})"
    tensors, binders = {"first": first, "second": second}, bound(names, shape)
    total = f"{found.reducer}(lambda k: {found.term.format(difference)})"
    if found.root is None:
        return call.described(tensors, f"lambda {binders}: {total}")
    body = root_of(at("total", names), found.root)
    return call.described(tensors, f"lambda {binders}: {body}", stages=[f"total = lambda {binders}: {total}"])


CONVERTERS: Mapping[str, Converter] = {
    **dict.fromkeys(("linalg_vector_norm", "norm"), norm),
    **dict.fromkeys(("_cdist_forward", "cdist"), pairwise_distance),
}
