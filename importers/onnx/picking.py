"""ONNX nodes that read or write elements at places which another tensor holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from .compose import apply, described, picked, reshape
from .node import Adapter, OnnxNode
from .operand import OnnxOperand, UnsupportedNodeError


def gather(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Negative indices count from the back, which is to wrap. One constant index is a slice."""
    axis = node.axis(0)
    known = node[1].known
    data = node[0]
    if known is not None and known.size == 1:
        extent = data.shape[axis]
        chosen = int(known.reshape(()))
        if not -extent <= chosen < extent:
            raise UnsupportedNodeError(f"index {chosen} of an extent of {extent}")
        part = picked(data, axis, chosen % extent)
        return [reshape(part, (*data.shape[:axis], *known.shape, *data.shape[axis + 1 :]))]
    found = apply("take", data, node[1], axis=axis, mode="wrap")
    return [reshape(found, (*data.shape[:axis], *node[1].shape, *data.shape[axis + 1 :]))]


def gather_elements(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Each index replaces its own one along one dimension; negative ones count from the back. Rows without
    an index are cut off.
    """
    data, indices = node[0], node[1]
    axis = node.axis(0)
    read = tuple(None if d == axis else extent for d, extent in enumerate(indices.shape))
    if any(end not in (None, extent) for end, extent in zip(read, data.shape, strict=True)):
        data = apply("slice", data, begin=(None,) * data.ndim, end=read)
    variables = [f"i{d}" for d in range(data.ndim)]
    place = f"b[{', '.join(variables)}]"
    at = [*variables[:axis], from_front(place, data.shape[axis]), *variables[axis + 1 :]]
    sized = ", ".join(f"{v}={e}" for v, e in zip(variables, indices.shape, strict=True))
    return [
        described(f"def gather_elements(a, b):\n    return lambda {sized}: a[{', '.join(at)}]", data, indices)
    ]


def gather_nd(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Rows of the indices are places in the first dimensions, after those that are a batch."""
    data, indices, batch = node[0], node[1], node.integer("batch_dims", 0)
    depth = indices.shape[-1] if indices.ndim else 0
    if not 1 <= depth <= data.ndim - batch or indices.ndim <= batch:
        raise UnsupportedNodeError(f"GatherND of {data.shape} with indices of {indices.shape}")
    rows = [f"n{d}" for d in range(indices.ndim - 1)]
    rest = [f"i{d}" for d in range(batch + depth, data.ndim)]
    at = [from_front(f"b[{', '.join([*rows, str(d)])}]", data.shape[batch + d]) for d in range(depth)]
    extents = (*indices.shape[:-1], *data.shape[batch + depth :])
    sized = ", ".join(f"{v}={e}" for v, e in zip([*rows, *rest], extents, strict=True)) or "one=1"
    read = ", ".join([*rows[:batch], *at, *rest])
    return [described(f"def gather_nd(a, b):\n    return lambda {sized}: a[{read}]", data, indices)]


def from_front(place: str, extent: int) -> str:
    """Return a place counted from the front; negative ones count from the back."""
    return f"where({place} < 0, {place} + {extent}, {place})"


def scatter_elements(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Each element of the output takes the updates whose index along one dimension is its own."""
    data, indices, updates = node[0], node[1], node[2]
    axis = node.axis(0)
    variables = [f"i{d}" for d in range(data.ndim)]
    at = [*variables[:axis], "n", *variables[axis + 1 :]]
    place = f"b[{', '.join(at)}]"
    if any(e < data.shape[d] for d, e in enumerate(indices.shape) if d != axis):
        place = f"pad({place}, {-data.shape[axis] - 1})"
        new = f"pad(c[{', '.join(at)}], 0)"
    else:
        new = f"c[{', '.join(at)}]"
    hit = f"{from_front(place, data.shape[axis])} == {variables[axis]}"
    bound = f"n={indices.shape[axis]}"
    return [_scattered(node, variables, bound, hit, new, (data, indices, updates))]


def scatter(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Each element of the output says which updates it takes: those whose indices are its own."""
    data, indices, updates = node[0], node[1], node[2]
    depth = indices.shape[-1]
    rows = prod(indices.shape[:-1])
    flat = [reshape(indices, (rows, depth)), reshape(updates, (rows, *data.shape[depth:]))]
    variables = [f"i{d}" for d in range(data.ndim)]
    hit = " and ".join(f"{from_front(f'b[n, {d}]', data.shape[d])} == i{d}" for d in range(depth))
    new = f"c[{', '.join(['n', *variables[depth:]])}]"
    return [_scattered(node, variables, "n", hit, new, (data, *flat))]


def _scattered(
    node: OnnxNode,
    variables: Sequence[str],
    bound: str,
    hit: str,
    new: str,
    operands: Sequence[OnnxOperand],
) -> OnnxOperand:
    """Return data in which updates, found by a condition, replace elements or are reduced with them.

    An element that is written several times has the mean of what is written.
    """
    data, mode = operands[0], node.text("reduction", "none")
    own = f"a[{', '.join(variables)}]"
    total = f"Sum(lambda {bound}: where({hit}, {new}, 0))"
    match mode:
        case "none":
            hits = f"Sum(lambda {bound}: where({hit}, 1, 0))"
            body = f"where({hits} > 0, {total} / maximum({hits}, 1), {own})"
        case "add":
            body = f"{own} + {total}"
        case "mul":
            body = f"{own} * Prod(lambda {bound}: where({hit}, {new}, 1))"
        case "max":
            body = f"maximum({own}, Max(lambda {bound}: where({hit}, {new}, -inf)))"
        case "min":
            body = f"minimum({own}, Min(lambda {bound}: where({hit}, {new}, inf)))"
        case _:
            raise UnsupportedNodeError(f"{node.kind} with reduction {mode}")
    sized = ", ".join(f"{v}={e}" for v, e in zip(variables, data.shape, strict=True))
    return described(f"def scatter(a, b, c):\n    return lambda {sized}: {body}", *operands)


ADAPTERS: Mapping[str, Adapter] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter,
}
