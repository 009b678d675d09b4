"""ATen operators that move elements: shapes, slices, joins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from ...analyzer.indices.region import Shape
from ...operators.library.reshape import reshaped
from .call import (
    AtenCall,
    TensorValue,
    UnsupportedCallError,
    at,
    bound,
    elementwise,
    literal,
    variables,
)
from .converter import Converter
from .installed import installed


def inside(shape: Shape) -> Shape:
    """Return the shape that a tensor has in the symbol."""
    return shape or (1,)


def viewed(call: AtenCall, data: TensorValue, shape: Shape, step: str = "") -> TensorValue:
    """Return the elements in another shape."""
    if inside(data.shape) == inside(shape):
        return TensorValue(data.symbol, shape, data.kind)
    text = reshaped("data", inside(data.shape), inside(shape))
    return call.described({"data": data}, text, shape=shape, kind=data.kind, step=step)


def view(call: AtenCall) -> TensorValue:
    """Return the elements in the shape that PyTorch found."""
    return viewed(call, call.tensor("self"), call.result.shape)


def permuted(call: AtenCall, data: TensorValue, order: Sequence[int], step: str = "") -> TensorValue:
    """Return the tensor whose dimension `d` is dimension `order[d]` of the data."""
    if list(order) == list(range(data.rank)):
        return data
    names = variables(data.rank)
    binders = ", ".join(names[axis] for axis in order)
    shape = tuple(data.shape[axis] for axis in order)
    text = f"lambda {binders}: {at('data', names)}"
    return call.described({"data": data}, text, shape=shape, kind=data.kind, step=step)


def permute(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    return permuted(call, data, [axis % data.rank for axis in call.get("dims")])


def transpose(call: AtenCall) -> TensorValue:
    """Exchange two dimensions; without dimensions, those of a matrix."""
    data = call.tensor("self")
    order = list(range(data.rank))
    keys = ("axis0", "axis1") if call.has("axis0") else ("dim0", "dim1")
    first, second = (call.axis(key, data.rank, number) for number, key in enumerate(keys))
    if data.rank > 1:
        order[first], order[second] = order[second], order[first]
    return permuted(call, data, order)


def move_dimension(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    if not data.rank:
        return data
    given = [call.get(key) for key in ("source", "destination")]
    sources, targets = ([axis % data.rank for axis in ([g] if isinstance(g, int) else g)] for g in given)
    order = [axis for axis in range(data.rank) if axis not in sources]
    for target, source in sorted(zip(targets, sources, strict=True)):
        order.insert(target, source)
    return permuted(call, data, order)


def expand(call: AtenCall) -> TensorValue:
    """Repeat along dimensions of one element."""
    data = call.tensor("self")
    if data.shape == call.result.shape:
        return data
    return elementwise(call, "{0}", data, kind=data.kind)


def repeat(call: AtenCall) -> TensorValue:
    """Repeat a whole tensor along dimensions."""
    data, shape = call.tensor("self"), call.result.shape
    names = variables(len(shape))
    offset = len(shape) - data.rank
    indices = [
        names[offset + axis] if shape[offset + axis] == extent else f"{names[offset + axis]} % {extent}"
        for axis, extent in enumerate(data.shape)
    ]
    return call.described({"data": data}, f"lambda {bound(names, shape)}: {at('data', indices)}")


def repeat_interleave(call: AtenCall) -> TensorValue:
    """Repeat each element along a dimension, equally often or as constants say."""
    data, count = call.tensor("self"), call.get("repeats")
    if isinstance(count, TensorValue):
        raise UnsupportedCallError(f"{call.target} with counts that depend on data")
    if not call.has("dim"):
        data = viewed(call, data, (prod(data.shape),), "row")
    names, axis = variables(data.rank), call.axis("dim", data.rank, 0)
    tensors, place = {"data": data}, f"{names[axis]} // {count}"
    if not isinstance(count, int):
        places = installed().repeat_interleave(count.expand(data.shape[axis]))
        tensors["places"], place = call.constant(places), f"places[{names[axis]}]"
    indices = [place if d == axis else name for d, name in enumerate(names)]
    return call.described(tensors, f"lambda {bound(names, call.result.shape)}: {at('data', indices)}")


def cut(
    call: AtenCall, data: TensorValue, axis: int, start: int, stop: int, stride: int = 1, step: str = ""
) -> TensorValue:
    """Return every `stride`-th element of an interval of one dimension."""
    extent = max(-(-(stop - start) // stride), 0)
    shape = (*data.shape[:axis], extent, *data.shape[axis + 1 :])
    if shape == data.shape:
        return data
    if not extent:
        raise UnsupportedCallError(f"{call.target} without elements")
    names = variables(data.rank)
    place = names[axis] if stride == 1 else f"{stride} * {names[axis]}"
    indices = [f"{start} + {place}" if d == axis else name for d, name in enumerate(names)]
    if not start:
        indices[axis] = place
    binders = ", ".join(f"{name}={extent}" if d == axis else name for d, name in enumerate(names))
    text = f"lambda {binders}: {at('data', indices)}"
    return call.described({"data": data}, text, shape=shape, kind=data.kind, step=step)


def _clipped(position: int, extent: int) -> int:
    """Return a position that may count from the end, moved into the dimension."""
    return min(max(position + extent if position < 0 else position, 0), extent)


def slices(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    axis = call.axis("dim", data.rank, 0)
    extent = data.shape[axis]
    start, stop = _clipped(call.get("start", 0), extent), _clipped(call.get("end", extent), extent)
    return cut(call, data, axis, start, max(stop, start), call.get("step", 1))


def narrow(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    axis = call.axis("dim", data.rank)
    start = call.get("start") % data.shape[axis]
    return cut(call, data, axis, start, start + call.get("length"))


def selected(call: AtenCall, data: TensorValue, axis: int, place: int, step: str = "") -> TensorValue:
    """Return the elements at one place of a dimension, without the dimension."""
    names = variables(data.rank)
    indices = [str(place) if d == axis else name for d, name in enumerate(names)]
    binders = bound([name for d, name in enumerate(names) if d != axis])
    shape = (*data.shape[:axis], *data.shape[axis + 1 :])
    text = f"lambda {binders}: {at('data', indices)}"
    return call.described({"data": data}, text, shape=shape, kind=data.kind, step=step)


def select(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    axis = call.axis("dim", data.rank)
    return selected(call, data, axis, call.get("index") % data.shape[axis])


def unbind(call: AtenCall) -> Sequence[TensorValue]:
    data = call.tensor("self")
    axis = call.axis("dim", data.rank, 0)
    return [selected(call, data, axis, place, f"part{place}") for place in range(data.shape[axis])]


def split(call: AtenCall) -> Sequence[TensorValue]:
    """Cut a dimension into the parts that PyTorch found."""
    data = call.tensor("self")
    axis = call.axis("dim", data.rank, 0)
    parts, start = [], 0
    for number, result in enumerate(call.results):
        stop = start + result.shape[axis]
        parts.append(cut(call, data, axis, start, stop, step=f"part{number}"))
        start = stop
    return parts


def concatenated(call: AtenCall, tensors: Sequence[TensorValue], axis: int, step: str = "") -> TensorValue:
    extents = [tensor.shape[axis] for tensor in tensors]
    shape = (*tensors[0].shape[:axis], sum(extents), *tensors[0].shape[axis + 1 :])
    symbol = call.apply("Concat", *tensors, dim=axis, step=step)
    return TensorValue(symbol, shape, call.result.kind)


def concatenate(call: AtenCall) -> TensorValue:
    """Tensors without elements do not count."""
    tensors = [call.as_tensor(each) for each in call.get("tensors") if 0 not in each.shape]
    if len(tensors) == 1:
        return tensors[0]
    return concatenated(call, tensors, call.axis("dim", tensors[0].rank, 0))


def stack(call: AtenCall) -> TensorValue:
    tensors = call.tensors("tensors")
    axis = call.axis("dim", tensors[0].rank + 1, 0)
    shape = (*tensors[0].shape[:axis], 1, *tensors[0].shape[axis:])
    widened = [viewed(call, tensor, shape, f"part{number}") for number, tensor in enumerate(tensors)]
    return concatenated(call, widened, axis)


def flip(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    axes, names = call.axes("dims", data.rank), variables(data.rank)
    indices = [f"{data.shape[d] - 1} - {name}" if d in axes else name for d, name in enumerate(names)]
    text = f"lambda {bound(names, data.shape)}: {at('data', indices)}"
    return call.described({"data": data}, text)


def roll(call: AtenCall) -> TensorValue:
    """Move elements along dimensions; those that leave at one end come in at the other. Without dimensions
    they move along all, in row-major order.
    """
    data, axes = call.tensor("self"), call.get("dims") or [0]
    if not call.get("dims"):
        data = viewed(call, data, (prod(data.shape),), "row")
    shifts = Counter[int]()
    for axis, shift in zip(axes, call.get("shifts"), strict=True):
        shifts[axis % data.rank] += shift
    names = variables(data.rank)
    indices = [
        f"({name} + {-shifts[d] % data.shape[d]}) % {data.shape[d]}" if d in shifts else name
        for d, name in enumerate(names)
    ]
    text = f"lambda {bound(names, data.shape)}: {at('data', indices)}"
    moved = call.described(
        {"data": data}, text, shape=data.shape, step="moved" if not call.get("dims") else ""
    )
    return viewed(call, moved, call.result.shape)


def _triangle(comparison: str) -> Converter:
    def convert(call: AtenCall) -> TensorValue:
        data = call.tensor("self")
        names = variables(data.rank)
        condition = f"{names[-1]} - {names[-2]} {comparison} {literal(call.get('diagonal', 0))}"
        text = f"lambda {bound(names)}: where({condition}, {at('data', names)}, 0)"
        return call.described({"data": data}, text)

    return convert


def diagonal(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    first, second = call.axis("dim1", data.rank, 0), call.axis("dim2", data.rank, 1)
    offset = call.get("offset", 0)
    rest = [axis for axis in range(data.rank) if axis not in (first, second)]
    names = variables(data.rank)
    names[first] = f"{max(-offset, 0)} + k"
    names[second] = f"{max(offset, 0)} + k"
    binders = ", ".join([*(names[axis] for axis in rest), f"k={call.result.shape[-1]}"])
    return call.described({"data": data}, f"lambda {binders}: {at('data', names)}")


def diagonal_scatter(call: AtenCall) -> TensorValue:
    """Replace a diagonal by another tensor, whose last dimension goes along it."""
    data, source = call.tensor("self"), call.tensor("src")
    first, second = call.axis("dim1", data.rank, 0), call.axis("dim2", data.rank, 1)
    offset, names = call.get("offset", 0), variables(data.rank)
    inner = [name for d, name in enumerate(names) if d not in (first, second)]
    inner.append(f"{names[first]} - {max(-offset, 0)}")
    body = f"where({names[second]} - {names[first]} == {literal(offset)}, "
    body += f"pad({at('source', inner)}, 0), {at('data', names)})"
    return call.described({"data": data, "source": source}, f"lambda {bound(names, data.shape)}: {body}")


def slice_scatter(call: AtenCall) -> TensorValue:
    """Replace every `step`-th element of an interval by those of another tensor."""
    data, source = call.tensor("self"), call.tensor("src")
    axis = call.axis("dim", data.rank, 0)
    extent, stride = data.shape[axis], call.get("step", 1)
    start, stop = _clipped(call.get("start", 0), extent), _clipped(call.get("end", extent), extent)
    names = variables(data.rank)
    name = names[axis]
    inner = [f"({name} - {start}) // {stride}" if d == axis else each for d, each in enumerate(names)]
    condition = f"{name} >= {start} and {name} < {stop} and ({name} - {start}) % {stride} == 0"
    element = f"where({condition}, pad({at('source', inner)}, 0), {at('data', names)})"
    return call.described({"data": data, "source": source}, f"lambda {bound(names, data.shape)}: {element}")


def select_scatter(call: AtenCall) -> TensorValue:
    data, source = call.tensor("self"), call.tensor("src")
    axis = call.axis("dim", data.rank)
    place = call.get("index") % data.shape[axis]
    names = variables(data.rank)
    inner = [each for d, each in enumerate(names) if d != axis]
    element = f"where({names[axis]} == {place}, {at('source', inner)}, {at('data', names)})"
    return call.described({"data": data, "source": source}, f"lambda {bound(names)}: {element}")


def unfold(call: AtenCall) -> TensorValue:
    """Return the windows of one dimension; a new last dimension numbers the elements of a window."""
    data, stride = call.tensor("self"), call.get("step")
    axis = call.axis("dimension", data.rank)
    names = variables(data.rank)
    indices = [f"{stride} * {name} + k" if d == axis else name for d, name in enumerate(names)]
    binders = bound([*names, "k"], call.result.shape)
    return call.described({"data": data}, f"lambda {binders}: {at('data', indices)}")


def pixel_shuffle(call: AtenCall) -> TensorValue:
    data, factor = call.tensor("self"), call.get("upscale_factor")
    *batch, channels, height, width = data.shape
    outer = len(batch)
    split_shape = (*batch, channels // factor**2, factor, factor, height, width)
    order = [*range(outer), outer, outer + 3, outer + 1, outer + 4, outer + 2]
    parts = permuted(call, viewed(call, data, split_shape, "split"), order, "order")
    return viewed(call, parts, call.result.shape)


def broadcast_tensors(call: AtenCall) -> Sequence[TensorValue]:
    return [
        elementwise(call, "{0}", tensor, shape=result.shape, kind=tensor.kind, step=f"part{number}")
        for number, (tensor, result) in enumerate(zip(call.tensors("tensors"), call.results, strict=True))
    ]


VIEWS = (
    "view",
    "reshape",
    "_unsafe_view",
    "flatten",
    "unflatten",
    "squeeze",
    "unsqueeze",
    "view_as",
    "reshape_as",
    "_reshape_copy",
)

CONVERTERS: Mapping[str, Converter] = {
    **dict.fromkeys(VIEWS, view),
    "permute": permute,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), transpose),
    "t": transpose,
    "numpy_T": transpose,
    **dict.fromkeys(("movedim", "moveaxis"), move_dimension),
    "expand": expand,
    "expand_as": expand,
    "broadcast_to": expand,
    "repeat": repeat,
    "tile": repeat,
    "repeat_interleave": repeat_interleave,
    "slice": slices,
    "narrow": narrow,
    "select": select,
    "unbind": unbind,
    "split": split,
    "split_with_sizes": split,
    "chunk": split,
    "tensor_split": split,
    "cat": concatenate,
    "concat": concatenate,
    "stack": stack,
    "flip": flip,
    "roll": roll,
    "tril": _triangle("<="),
    "triu": _triangle(">="),
    "diagonal": diagonal,
    "diagonal_scatter": diagonal_scatter,
    "slice_scatter": slice_scatter,
    "select_scatter": select_scatter,
    "unfold": unfold,
    "pixel_shuffle": pixel_shuffle,
    "broadcast_tensors": broadcast_tensors,
}
