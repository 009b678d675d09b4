"""ATen operators that read elements at places which another tensor holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...analyzer.indices.region import Shape
from ..grid_sampling import GridSampling, Interpolation, Outside
from .call import AtenCall, TensorValue, UnsupportedCallError, at, bound, elementwise, stretched, variables
from .converter import Converter
from .moves import cut, inside, selected, viewed


def index_select(call: AtenCall) -> TensorValue:
    data, index = call.tensor("self"), call.tensor("index")
    if not data.rank:
        return data
    index = viewed(call, index, inside(index.shape))
    axis = call.axis("dim", data.rank)
    names = variables(data.rank)
    indices = [f"index[{name}]" if d == axis else name for d, name in enumerate(names)]
    return call.described({"data": data, "index": index}, f"lambda {bound(names)}: {at('data', indices)}")


def gather(call: AtenCall) -> TensorValue:
    """Read elements at places along one dimension, which another tensor holds for each element.

    A tensor without dimensions is read as one of one element. Rows for which there is no place are cut off.
    """
    data, index = call.tensor("self"), call.tensor("index")
    axis, names = call.axis("dim", data.rank), variables(max(data.rank, 1))
    for d, extent in enumerate(index.shape):
        if d != axis:
            data = cut(call, data, d, 0, extent, step="read")
    indices = [at("index", names) if d == axis else name for d, name in enumerate(names)]
    text = f"lambda {bound(names, call.result.shape or (1,))}: {at('data', indices)}"
    return call.described({"data": data, "index": index}, text)


def _from_front(call: AtenCall, index: Any, extent: int, number: int) -> TensorValue:
    """Return places counted from the front. Places that are constants are counted so by PyTorch."""
    if not isinstance(index, TensorValue):
        return call.constant(index % extent)
    if index.kind == "bool":
        raise UnsupportedCallError(f"{call.target} with a mask, whose result depends on data")
    body = f"where({{0}} < 0, {{0}} + {extent}, {{0}})"
    return elementwise(call, body, index, shape=index.shape, kind="int", step=f"index{number}")


def is_mask(index: Any) -> bool:
    """Tell whether an index is a mask, which selects the elements that it sets."""
    return index.kind == "bool" if isinstance(index, TensorValue) else "bool" in str(index.dtype)


def _without_constant_masks(given: Sequence[Any]) -> list[Any]:
    """Return indices in which each mask that is a constant is replaced by the places that it sets."""
    found: list[Any] = []
    for each in given:
        constant = each is not None and not isinstance(each, TensorValue)
        found.extend(each.nonzero(as_tuple=True) if constant and is_mask(each) else (each,))
    return found


@dataclass(frozen=True, slots=True)
class IndexedPlaces:
    """Places in some dimensions of a tensor, which tensors hold that are broadcast against each other."""

    tensors: Mapping[str, TensorValue]
    """The tensors that hold them, by name."""

    common: Shape
    """Their shape, broadcast."""

    rows: Sequence[str]
    """The variables of that shape."""

    picked: Mapping[int, str]
    """By the number of such a dimension, the place in it."""

    before: Sequence[int]
    """The other dimensions that come before those of the common shape."""

    after: Sequence[int]
    """The other dimensions that come after them."""

    @classmethod
    def of(cls, call: AtenCall, data: TensorValue) -> IndexedPlaces:
        """Return the places that the `indices` of a call hold."""
        given = _without_constant_masks(call.get("indices"))
        axes = [axis for axis, each in enumerate(given) if each is not None]
        places = {axis: _from_front(call, given[axis], data.shape[axis], axis) for axis in axes}
        common: Shape = ()
        for tensor in places.values():
            common = _broadcast(common, tensor.shape)
        rows = variables(len(common), "k")
        first = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
        rest = [axis for axis in range(data.rank) if axis not in places]
        return cls(
            {f"index{axis}": tensor for axis, tensor in places.items()},
            common,
            rows,
            {axis: stretched(f"index{axis}", places[axis].shape, common, rows) for axis in axes},
            [axis for axis in rest if axis < first],
            [axis for axis in rest if axis >= first],
        )


def index(call: AtenCall) -> TensorValue:
    """Index dimensions by tensors, which are broadcast against each other."""
    data = call.tensor("self")
    places, names = IndexedPlaces.of(call, data), variables(data.rank)
    indices = [places.picked.get(axis, name) for axis, name in enumerate(names)]
    binders = [
        *(names[axis] for axis in places.before),
        *(f"{row}={extent}" for row, extent in zip(places.rows, places.common, strict=True)),
        *(names[axis] for axis in places.after),
    ]
    text = f"lambda {', '.join(binders) or 'one=1'}: {at('data', indices)}"
    return call.described({"data": data, **places.tensors}, text)


def masked_select(call: AtenCall) -> TensorValue:
    """Return the elements at the places that a mask sets, in a row. The mask is a constant."""
    data, mask = call.tensor("self"), call.arguments["mask"]
    common = _broadcast(data.shape, mask.shape)
    if data.shape != common:
        data = elementwise(call, "{0}", data, shape=common, kind=data.kind, step="stretched")
    return index(replace(call, arguments={"self": data, "indices": [mask.expand(common)]}))


def _broadcast(left: Shape, right: Shape) -> Shape:
    rank = max(len(left), len(right))
    widened = [(1,) * (rank - len(shape)) + shape for shape in (left, right)]
    return tuple(max(pair) for pair in zip(*widened, strict=True))


def embedding(call: AtenCall) -> TensorValue:
    """Rows of a table. The row of padding gets no gradient."""
    weight, places = call.tensor("weight"), call.tensor("indices")
    call.only(scale_grad_by_freq=False)
    rows, features = weight.shape
    padding = call.get("padding_idx", -1)
    if padding < 0 and not places.rank:
        return call.described({"weight": weight, "data": places}, "lambda j: weight[data[0], j]")
    if padding < 0:
        return call.library("Embedding", places, weight, input_dim=rows, output_dim=features)
    row = call.library(
        "BlockGrad", selected(call, weight, 0, padding, "row"), shape=(features,), step="padding"
    )
    names = variables(places.rank)
    number = at("data", names)
    text = f"lambda {', '.join([*names, 'j'])}: where({number} == {padding}, row[j], weight[{number}, j])"
    return call.described({"data": places, "weight": weight, "row": row}, text)


def one_hot(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    names = variables(data.rank)
    depth = call.result.shape[-1]
    text = f"lambda {', '.join([*names, f'k={depth}'])}: where({at('data', names)} == k, 1, 0)"
    return call.described({"data": data}, text)


def sample_grid(call: AtenCall) -> TensorValue:
    """Read an image at places between its pixels."""
    data, grid = call.tensor("input"), call.tensor("grid")
    interpolation = tuple(Interpolation)[call.get("interpolation_mode", 0)]
    outside = tuple(Outside)[call.get("padding_mode", 0)]
    sampling = GridSampling(data.shape, grid.shape, interpolation, outside, call.get("align_corners", False))
    return call.described({"data": data, "grid": grid}, sampling.result, stages=list(sampling.stages()))


CONVERTERS: Mapping[str, Converter] = {
    "index_select": index_select,
    "gather": gather,
    "index": index,
    "masked_select": masked_select,
    "embedding": embedding,
    "one_hot": one_hot,
    "grid_sampler": sample_grid,
    "grid_sampler_2d": sample_grid,
    "grid_sampler_3d": sample_grid,
}
