"""ATen's operators that write elements at places: an element of the result says which writes it takes.

Places that are written twice have the mean of what is written, if nothing says how to reduce it. PyTorch
leaves open which of the values is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from ...analyzer.indices.region import Shape
from .call import (
    AtenCall,
    Operand,
    TensorValue,
    UnsupportedCallError,
    as_element,
    at,
    bound,
    literal,
    stretched,
    variables,
)
from .converter import Converter
from .moves import inside, viewed
from .picking import IndexedPlaces, is_mask

REDUCERS = {"sum": ("Sum", "0"), "prod": ("Prod", "1"), "amax": ("Max", "-inf"), "amin": ("Min", "inf")}
"""By the name of a reduction, that of TDL and its value for nothing."""

JOINED = {"sum": "{} + {}", "prod": "{} * {}", "amax": "maximum({}, {})", "amin": "minimum({}, {})"}
"""By the name of a reduction, how it joins two numbers."""

NAMES = {"add": "sum", "multiply": "prod", "mean": "mean"}
"""Other names of reductions."""


@dataclass(frozen=True, slots=True)
class ScatteredWrites:
    """Writes into a tensor, in the index notation of its elements."""

    binders: str
    """The variables that go over the writes that an element may take."""

    hit: str
    """Whether a write is for the element."""

    value: str
    """The value that is written."""

    axes: tuple[int, ...]
    """The dimensions of the element that `hit` depends on."""

    def reduced(self, reducer: str, neutral: str) -> str:
        return f"{reducer}(lambda {self.binders}: where({self.hit}, {self.value}, {neutral}))"

    def count(self) -> str:
        return f"Sum(lambda {self.binders}: where({self.hit}, 1, 0))"

    def counted(self, names: Sequence[str], shape: Shape) -> tuple[str, str]:
        """Return the stage that counts the writes of an element, and the count of one."""
        axes = [names[axis] for axis in self.axes]
        binders = bound(axes, [shape[axis] for axis in self.axes])
        return f"count = lambda {binders}: {self.count()}", at("count", axes)

    def summed(self, names: Sequence[str], shape: Shape) -> tuple[str, str]:
        """Return the stage that adds up what is written to an element, and the sum of one."""
        return f"total = lambda {bound(names, shape)}: {self.reduced('Sum', '0')}", at("total", names)


def _written(
    call: AtenCall,
    data: TensorValue,
    tensors: Mapping[str, TensorValue],
    writes: ScatteredWrites,
    reduction: str | None = None,
    includes_data: bool = True,
) -> TensorValue:
    """Return a tensor after writes. Without a reduction they replace its elements. The sum of truth values is
    their "or", and means of whole numbers are rounded down.
    """
    if reduction == "sum" and data.kind == "bool":
        reduction = "amax"
    names = variables(data.rank)
    own, binders = at("data", names), bound(names, data.shape)
    given = {"data": data, **tensors}
    count, here = writes.counted(names, data.shape)
    stages = [count]
    if reduction in (None, "mean"):
        stage, total = writes.summed(names, data.shape)
        stages.append(stage)
        divided = "//" if data.kind == "int" else "/"
        mean = f"{total} {divided} maximum({here}, 1)"
        if reduction == "mean" and includes_data:
            mean = f"({own} + {total}) {divided} (1 + {here})"
        body = mean if reduction == "mean" and includes_data else f"where({here} > 0, {mean}, {own})"
        return call.described(given, f"lambda {binders}: {body}", stages=stages)
    if reduction not in REDUCERS:
        raise UnsupportedCallError(f"{call.target} with {reduction}")
    found = writes.reduced(*REDUCERS[reduction])
    if includes_data:
        return call.described(given, f"lambda {binders}: {JOINED[reduction].format(own, found)}")
    stages.append(f"found = lambda {binders}: {found}")
    body = f"where({here} > 0, {at('found', names)}, {own})"
    return call.described(given, f"lambda {binders}: {body}", stages=stages)


def scatter(call: AtenCall) -> TensorValue:
    """Write along one dimension, at places that another tensor holds for each element."""
    data, index = call.tensor("self"), call.tensor("index")
    source: Operand = call.tensor("src") if call.has("src") else as_element(call.operand("value"), data.kind)
    names, axis = variables(data.rank), call.axis("dim", data.rank)
    if not data.rank:
        raise UnsupportedCallError(f"{call.target} of a tensor without dimensions")
    there = [*names[:axis], "k", *names[axis + 1 :]]
    shorter = any(index.shape[d] < data.shape[d] for d in range(data.rank) if d != axis)
    place = f"pad({at('index', there)}, -1)" if shorter else at("index", there)
    tensors = {"index": index}
    value = literal(source) if not isinstance(source, TensorValue) else at("source", there)
    if isinstance(source, TensorValue):
        tensors["source"] = source
        larger = any(source.shape[d] < data.shape[d] for d in range(data.rank) if d != axis)
        value = f"pad({value}, 0)" if shorter and larger else value
    axes = tuple(range(data.rank))
    writes = ScatteredWrites(f"k={index.shape[axis]}", f"{place} == {names[axis]}", value, axes)
    reduction = call.get("reduce")
    if call.target.startswith("aten.scatter_add"):
        reduction = "sum"
    reduction, includes_data = NAMES.get(reduction, reduction), call.get("include_self", True)
    if reduction == "prod" and isinstance(source, TensorValue):
        return _multiplied(call, data, index, source, writes, includes_data)
    return _written(call, data, tensors, writes, reduction, includes_data)


def _multiplied(
    call: AtenCall,
    data: TensorValue,
    index: TensorValue,
    source: TensorValue,
    writes: ScatteredWrites,
    includes_data: bool,
) -> TensorValue:
    """Return a tensor whose elements are multiplied by what is written, or replaced by its product."""
    names, axis = variables(data.rank), call.axis("dim", data.rank)
    if source.shape != index.shape:
        text = f"lambda {bound(names, index.shape)}: {at('source', names)}"
        source = call.described({"source": source}, text, shape=index.shape, step="read")
    size = data.shape[axis]
    shape = (*index.shape[:axis], size, *index.shape[axis + 1 :])
    products = call.library("scatter_prod", source, index, axis=axis, size=size, shape=shape, step="products")
    own, found = at("data", names), at("products", names)
    if shape != data.shape:
        found = f"pad({found}, 1)"
    given, binders = {"data": data, "products": products}, bound(names, data.shape)
    if includes_data:
        return call.described(given, f"lambda {binders}: {own} * {found}")
    count, here = writes.counted(names, data.shape)
    body = f"where({here} > 0, {found}, {own})"
    return call.described({**given, "index": index}, f"lambda {binders}: {body}", stages=[count])


def index_put(call: AtenCall) -> TensorValue:
    """Write at places in some dimensions, which are broadcast against each other, or where a mask is set."""
    data, given = call.tensor("self"), call.get("indices")
    first, *others = (axis for axis, each in enumerate(given) if each is not None)
    if not others and is_mask(given[first]):
        return _masked(call, data, given[first], first)
    places, names = IndexedPlaces.of(call, data), variables(data.rank)
    before, after = ([names[axis] for axis in axes] for axes in (places.before, places.after))
    shape = (*(data.shape[axis] for axis in places.before), *places.common)
    shape += tuple(data.shape[axis] for axis in places.after)
    source, tensors = call.operand("values"), dict(places.tensors)
    value = literal(source) if not isinstance(source, TensorValue) else ""
    if isinstance(source, TensorValue):
        tensors["source"] = source
        value = stretched("source", source.shape, shape, [*before, *places.rows, *after])
    hits = [f"{place} == {names[axis]}" for axis, place in places.picked.items()]
    axes = tuple(sorted(places.picked))
    writes = ScatteredWrites(bound(places.rows, places.common), " and ".join(hits), value, axes)
    return _written(call, data, tensors, writes, "sum" if call.get("accumulate", False) else None)


def _masked(call: AtenCall, data: TensorValue, given: Any, first: int) -> TensorValue:
    """Write where a mask of some dimensions is set, the first of which is given."""
    mask, source, names = call.as_tensor(given), call.operand("values"), variables(data.rank)
    tensors, stop = {"data": data, "mask": mask}, first + mask.rank
    value = literal(source) if not isinstance(source, TensorValue) else ""
    if isinstance(source, TensorValue):
        tensors["source"] = source
        place, count = "0", max(source.shape[: max(source.rank - data.rank + stop, 0)][-1:], default=1)
        if count > 1:
            tensors["place"], place = _numbers(call, given), at("place", names[first:stop])
        common = (*data.shape[:first], count, *data.shape[stop:])
        value = stretched("source", source.shape, common, [*names[:first], place, *names[stop:]])
    new = f"{at('data', names)} + {value}" if call.get("accumulate", False) else value
    body = f"where({at('mask', names[first:stop])} != 0, {new}, {at('data', names)})"
    return call.described(tensors, f"lambda {bound(names, data.shape)}: {body}")


def _numbers(call: AtenCall, mask: Any) -> TensorValue:
    """Number the places that a mask sets, from zero. Another place has the number of one before it."""
    if not isinstance(mask, TensorValue):
        return call.constant((mask.flatten().cumsum(0) - 1).clamp(min=0).reshape(mask.shape))
    size = prod(mask.shape)
    flat = viewed(call, mask, (size,), step="flat")
    count = f"count = lambda i={size}: Sum(lambda k: where(k <= i, flat[k], 0))"
    text, shape = f"lambda i={size}: maximum(count[i] - 1, 0)", flat.shape
    found = call.described({"flat": flat}, text, stages=[count], shape=shape, kind="int", step="numbers")
    return viewed(call, found, mask.shape, step="places")


def masked_scatter(call: AtenCall) -> TensorValue:
    """Write the first values of a tensor where a mask is set, in order."""
    data, mask, source = (call.tensor(key) for key in ("self", "mask", "source"))
    shape, names = inside(call.result.shape), variables(len(inside(call.result.shape)))
    given = call.get("mask")
    if not isinstance(given, TensorValue):
        place = _numbers(call, given.expand(shape))
    elif mask.shape == shape:
        place = _numbers(call, mask)
    else:
        text = f"lambda {bound(names, shape)}: {stretched('mask', mask.shape, shape, names)}"
        place = _numbers(call, call.described({"mask": mask}, text, shape=shape, kind="bool", step="mask"))
    values = viewed(call, source, (prod(source.shape),), step="values")
    own, chosen = (stretched(key, each.shape, shape, names) for key, each in (("data", data), ("mask", mask)))
    text = f"lambda {bound(names, shape)}: where({chosen} != 0, values[{at('place', names)}], {own})"
    return call.described({"data": data, "mask": mask, "values": values, "place": place}, text)


def embedding_bag(call: AtenCall) -> Sequence[TensorValue | None]:
    """Reduce the rows of a table that each bag names. Bags of equal size read their own places alone."""
    call.only(scale_grad_by_freq=False)
    weight, places = call.tensor("weight"), call.tensor("indices")
    ends, count = call.arguments["offsets"], places.shape[0]
    last, tensors = call.get("include_last_offset", False), {"weight": weight, "data": places}
    bags = ends.shape[0] - last
    size = None if isinstance(ends, TensorValue) else _common_size(ends.tolist(), count, last)
    if size:
        place, inside, binder = f"b * {size} + k", "", f"k={size}"
    else:
        tensors["starts"] = call.as_tensor(ends)
        end = (
            "starts[b + 1]"
            if last
            else f"where(b + 1 == {bags}, {count}, starts[minimum(b + 1, {bags - 1})])"
        )
        place, inside, binder = "k", f"k >= starts[b] and k < {end}", f"k={count}"
    padding = call.get("padding_idx", -1)
    if padding >= 0:
        inside = " and ".join(filter(None, (inside, f"data[{place}] != {padding}")))
    mode = call.get("mode", 0)
    row = f"weight[data[{place}], j]"
    if call.has("per_sample_weights"):
        tensors["scale"] = call.tensor("per_sample_weights")
        row = f"{row} * scale[{place}]"
    if mode == 2:
        return [_greatest(call, tensors, (bags, binder, place, inside)), None, None, None]
    item = f"where({inside}, {row}, 0)" if inside else row
    total = f"Sum(lambda {binder}: {item})"
    if mode == 1:
        number = f"Sum(lambda {binder}: where({inside}, 1, 0))" if inside else str(size)
        stages = [f"count = lambda b={bags}: {number}", f"total = lambda b={bags}, j: {total}"]
        text = f"lambda b={bags}, j: total[b, j] / maximum(count[b], 1)"
        return [call.described(tensors, text, stages=stages), None, None, None]
    return [call.described(tensors, f"lambda b={bags}, j: {total}"), None, None, None]


def _common_size(starts: Sequence[int], count: int, last: bool) -> int | None:
    """Return how many places each bag has, None if they differ."""
    sizes = {after - start for start, after in pairwise(starts if last else [*starts, count])}
    return sizes.pop() if len(sizes) == 1 else None


def _greatest(
    call: AtenCall, tensors: Mapping[str, TensorValue], bag: tuple[int, str, str, str]
) -> TensorValue:
    """Return the greatest elements of bags, zero for those without any. The gradient is that of the first of
    equal ones.
    """
    bags, binder, place, inside = bag
    row = f"weight[data[{place}], j]"
    item = f"where({inside}, {row}, -inf)" if inside else row
    last = call.tensor("indices").shape[0] - 1
    found = " and ".join(filter(None, (inside, f"{row} == top[b, j]")))
    stages = [
        f"top = lambda b={bags}, j: Max(lambda {binder}: {item})",
        f"first = lambda b={bags}, j: Min(lambda {binder}: where({found}, {place}, {last}))",
    ]
    found = "weight[data[first[b, j]], j]"
    if inside:
        found = f"where(top[b, j] == -inf, 0, {found})"
    return call.described(tensors, f"lambda b={bags}, j: {found}", stages=stages)


CONVERTERS: Mapping[str, Converter] = {
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), scatter),
    **dict.fromkeys(("index_put", "_unsafe_index_put"), index_put),
    "masked_scatter": masked_scatter,
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), embedding_bag),
}
