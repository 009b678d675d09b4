"""ATen's operators that order or compare: places in sorted numbers, order statistics, cumulative extremes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from .call import AtenCall, TensorValue, UnsupportedCallError, at, bound, variables
from .converter import Converter
from .moves import viewed


def bucket(call: AtenCall) -> TensorValue:
    """Count the boundaries before each element: those that are smaller or, on request, equal."""
    data = call.tensor("self")
    bounds = call.tensor("boundaries" if call.has("boundaries") else "sorted_sequence")
    if call.has("sorter"):
        raise UnsupportedCallError(f"{call.target} with a sorter")
    if bounds.rank > 1 and bounds.rank != data.rank:
        raise UnsupportedCallError(f"{call.target} of {data.shape} in {bounds.shape}")
    names = variables(data.rank)
    relation = "<=" if call.get("right", False) or call.get("side") == "right" else "<"
    place = at("bounds", [*(names[:-1] if bounds.rank > 1 else ()), "k"])
    body = f"Sum(lambda k: where({place} {relation} {at('data', names)}, 1, 0))"
    return call.described({"data": data, "bounds": bounds}, f"lambda {bound(names, data.shape)}: {body}")


def _along(call: AtenCall) -> tuple[TensorValue, list[str], str, str]:
    """Return a tensor, its variables, and an element up to the present one along a dimension with its
    condition.
    """
    data = call.tensor("self")
    if not data.rank:
        raise UnsupportedCallError(f"{call.target} of a tensor without dimensions")
    names, axis = variables(data.rank), call.axis("dim", data.rank)
    return data, names, at("data", [*names[:axis], "k", *names[axis + 1 :]]), f"k <= {names[axis]}"


def _cumulative_extreme(reducer: str, neutral: str) -> Converter:
    """Return the extreme element up to each, and its place: the last of equal ones, or of NaN."""

    def convert(call: AtenCall) -> Sequence[TensorValue | None]:
        data, names, element, before = _along(call)
        binders, axis = bound(names, data.shape), call.axis("dim", data.rank)
        extreme = f"extreme = lambda {binders}: {reducer}(lambda k: where({before}, {element}, {neutral}))"
        found = f"{before} and ({element} == {at('extreme', names)} or {element} != {element})"
        text = f"lambda {binders}: Max(lambda k: where({found}, k, 0))"
        place = call.described({"data": data}, text, stages=[extreme], kind="int", step="place")
        read = at("data", [at("place", names) if d == axis else name for d, name in enumerate(names)])
        return [call.described({"data": data, "place": place}, f"lambda {binders}: {read}"), place]

    return convert


def cumulative_log_sum(call: AtenCall) -> TensorValue:
    """Return the logarithms of sums of exponentials; each is scaled by the greatest of its terms."""
    data, names, element, before = _along(call)
    binders = bound(names, data.shape)
    top = at("top", names)
    stages = [f"top = lambda {binders}: Max(lambda k: where({before}, {element}, -inf))"]
    body = f"log(Sum(lambda k: where({before}, exp(minimum({element} - {top}, 0)), 0))) + {top}"
    return call.described({"data": data}, f"lambda {binders}: {body}", stages=stages)


def order_statistic(call: AtenCall) -> Sequence[TensorValue]:
    """Return the k-th smallest element along a dimension, and its place; a median is the lower of two.

    A median without a dimension is that of all elements, and has no place.
    """
    data = call.tensor("self")
    if len(call.results) == 1 or not data.rank:
        data = viewed(call, data, (prod(data.shape),), "row")
    axis, keeps = call.axis("dim", data.rank, -1), call.get("keepdim", False) and call.result.shape != ()
    number = call.get("k", (data.shape[axis] + 1) // 2)
    parts = call.apply("topk", data, axis=axis, k=number, ret_typ="both", is_ascend=True, step="sorted")
    names = variables(data.rank)
    indices = [str(number - 1) if d == axis else name for d, name in enumerate(names)]
    kept = [name for d, name in enumerate(names) if d != axis]
    shape = [extent for d, extent in enumerate(data.shape) if d != axis]
    binders = bound(names, call.result.shape) if keeps else bound(kept, shape)
    found = []
    for symbol, result in zip(parts, call.results, strict=False):
        part = TensorValue(symbol, (*data.shape[:axis], number, *data.shape[axis + 1 :]), result.kind)
        text = f"lambda {binders}: {at('data', indices)}"
        found.append(call.described({"data": part}, text, shape=result.shape, kind=result.kind))
    return found


CONVERTERS: Mapping[str, Converter] = {
    **dict.fromkeys(("bucketize", "searchsorted"), bucket),
    "cummax": _cumulative_extreme("Max", "-inf"),
    "cummin": _cumulative_extreme("Min", "inf"),
    "logcumsumexp": cumulative_log_sum,
    **dict.fromkeys(("kthvalue", "median"), order_statistic),
}
