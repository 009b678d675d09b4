"""ATen operators that reduce dimensions, and those that look along one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from .call import AtenCall, TensorValue, at, bound, variables
from .converter import Converter

NONZERO = "where({} != 0, 1, 0)"


class Reduced:
    """Index variables of a tensor that is reduced along some dimensions.

    A tensor without dimensions has one of one element in the symbol, which is reduced.
    """

    def __init__(
        self, call: AtenCall, data: TensorValue, axes: Sequence[int], *, keep: bool | None = None
    ) -> None:
        keep = bool(call.get("keepdim", False)) if keep is None else keep
        shape = data.shape or (1,)
        axes, names = axes if data.rank else (0,), variables(len(shape))
        self.all = at("data", names)
        self.inner = bound([names[axis] for axis in axes])
        self.kept = [name for axis, name in enumerate(names) if axis not in axes]
        listed = [f"one{axis}" if axis in axes else name for axis, name in enumerate(names)]
        outer = [name for axis, name in enumerate(listed) if keep or axis not in axes]
        self.binders = ", ".join(f"{name}=1" if name.startswith("one") else name for name in outer) or "one=1"
        self.stage_binders = bound(self.kept)
        self.count = prod(shape[axis] for axis in axes)

    def stage(self, name: str) -> str:
        """Return the element of a stage that keeps the other dimensions."""
        return at(name, self.kept)


def _reduction(reducer: str, item: str = "{}") -> Converter:
    def convert(call: AtenCall) -> TensorValue:
        data = call.tensor("self")
        names = Reduced(call, data, call.axes("dim", data.rank))
        body = item.format(names.all)
        return call.described(
            {"data": data}, f"lambda {names.binders}: {reducer}(lambda {names.inner}: {body})"
        )

    return convert


def mean(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    if not data.rank:
        return data
    names = Reduced(call, data, call.axes("dim", data.rank))
    body = f"Sum(lambda {names.inner}: {names.all}) / {names.count}"
    return call.described({"data": data}, f"lambda {names.binders}: {body}")


def _moments(call: AtenCall, *, root: bool = False) -> tuple[TensorValue, TensorValue]:
    """Return the variance, or its root, and the mean."""
    data = call.tensor("self")
    names = Reduced(call, data, call.axes("dim", data.rank))
    correction = call.get("correction", 1)
    if call.has("unbiased"):
        correction = int(call.get("unbiased"))
    average = f"Sum(lambda {names.inner}: {names.all}) / {names.count}"
    squares = (
        f"Sum(lambda {names.inner}: square({names.all} - {names.stage('mean')}))"
        f" / {max(names.count - correction, 0)}"
    )
    stages = [f"mean = lambda {names.stage_binders}: {average}"]
    result = f"lambda {names.binders}: {squares}"
    if root:
        stages.append(f"var = lambda {names.stage_binders}: {squares}")
        result = f"lambda {names.binders}: {root_of(names.stage('var'))}"
    spread = call.described({"data": data}, result, stages=stages)
    if len(call.results) == 1:
        return spread, spread
    return spread, call.described({"data": data}, f"lambda {names.binders}: {average}", step="mean")


def root_of(total: str, root: str = "sqrt({})") -> str:
    """Return the root of a total. That of zero has no gradient, as in PyTorch."""
    return f"where({total} == 0, 0, {root.format(f'where({total} == 0, 1, {total})')})"


def variance(call: AtenCall) -> TensorValue:
    return _moments(call)[0]


def deviation(call: AtenCall) -> TensorValue:
    return _moments(call, root=True)[0]


def variance_and_mean(call: AtenCall) -> Sequence[TensorValue]:
    return _moments(call)


def log_sum_exp(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    names = Reduced(call, data, call.axes("dim", data.rank))
    body = f"lambda {names.stage_binders}: Max(lambda {names.inner}: {names.all})"
    top = call.described({"data": data}, body, shape=(), step="max")
    top, element = call.library("BlockGrad", top, shape=(), step="peak"), at("peak", names.kept)
    peak = f"where(abs({element}) == inf, 0, {element})"
    stage = f"total = lambda {names.stage_binders}: Sum(lambda {names.inner}: exp({names.all} - {peak}))"
    result = f"lambda {names.binders}: log({names.stage('total')}) + {peak}"
    return call.described({"data": data, "peak": top}, result, stages=[stage])


def _cumulative(reducer: str, neutral: str) -> Converter:
    def convert(call: AtenCall) -> TensorValue:
        data = call.tensor("self")
        if not data.rank:
            return data
        axis = call.axis("dim", data.rank)
        names = variables(data.rank)
        inner = [*names[:axis], "k", *names[axis + 1 :]]
        binders = [f"{name}={data.shape[axis]}" if d == axis else name for d, name in enumerate(names)]
        body = f"{reducer}(lambda k: where(k <= {names[axis]}, {at('data', inner)}, {neutral}))"
        return call.described({"data": data}, f"lambda {', '.join(binders)}: {body}")

    return convert


def _softmax(operator: str) -> Converter:
    def convert(call: AtenCall) -> TensorValue:
        data = call.tensor("self")
        return call.library(operator, data, axis=call.axis("dim", data.rank))

    return convert


def top(call: AtenCall) -> Sequence[TensorValue]:
    """Return the largest elements along a dimension and their places, in order."""
    data = call.tensor("self")
    axis = call.axis("dim", data.rank, -1)
    both = call.apply(
        "topk",
        data,
        axis=axis,
        k=call.get("k"),
        ret_typ="both",
        is_ascend=not call.get("largest", True),
    )
    return [TensorValue(part, r.shape, r.kind) for part, r in zip(both, call.results, strict=True)]


def sort(call: AtenCall) -> Sequence[TensorValue]:
    data = call.tensor("self")
    axis = call.axis("dim", data.rank, -1)
    ascending, count = not call.get("descending", False), (data.shape or (1,))[axis]
    both = call.apply("topk", data, axis=axis, k=count, ret_typ="both", is_ascend=ascending)
    return [TensorValue(part, r.shape, r.kind) for part, r in zip(both, call.results, strict=True)]


def argsort(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    ascending = not call.get("descending", False)
    return call.library("argsort", data, axis=call.axis("dim", data.rank, -1), is_ascend=ascending)


CONVERTERS: Mapping[str, Converter] = {
    "sum": _reduction("Sum"),
    "nansum": _reduction("Sum", "where({0} == {0}, {0}, 0)"),
    "prod": _reduction("Prod"),
    "any": _reduction("Max", NONZERO),
    "all": _reduction("Min", NONZERO),
    "count_nonzero": _reduction("Sum", NONZERO),
    "mean": mean,
    "var": variance,
    "std": deviation,
    "var_mean": variance_and_mean,
    "logsumexp": log_sum_exp,
    "cumsum": _cumulative("Sum", "0"),
    "cumprod": _cumulative("Prod", "1"),
    "softmax": _softmax("softmax"),
    "_softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "_log_softmax": _softmax("log_softmax"),
    "topk": top,
    "sort": sort,
    "argsort": argsort,
}
