"""Reshape, Flatten, expand_dims: the same elements in the same order under another shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, flag, integer, shape
from ..stages.definition import ByRank, ByShape, Variant, variant
from .arguments import arguments, of_data
from .texts import axis_in, check_rank, element, flat_index, joined, names, sized, unflattened


def reshaped(tensor: str, before: Shape, after: Shape) -> str:
    """Return the lambda that reads `tensor` of shape `before` in the shape `after` of as many elements,
    row-major.

    Dimensions that pass through unchanged are bare indices; only groups that merge or split are
    addressed through floor quotients of their flat index.
    """
    variables = names("i", len(after))
    indices: list[str] = []
    if not prod(before):
        return f"lambda {sized(variables, after)}: {element(tensor, ['0'] * len(before))}"
    for old, new in _groups(before, after):
        index = flat_index([variables[axis] for axis in new], [after[axis] for axis in new])
        indices += unflattened(index, [before[axis] for axis in old])
    return f"lambda {sized(variables, after)}: {element(tensor, indices)}"


def _groups(before: Shape, after: Shape) -> Iterator[tuple[list[int], list[int]]]:
    """Yield shortest runs of dimensions with equal sizes: `(2, 3, 4) -> (6, 4)` gives `[0, 1],
    [0]`, `[2], [1]`.
    """
    old = new = 0
    while old < len(before) or new < len(after):
        first_old, first_new = old, new
        left = right = 1
        if old < len(before):
            left, old = before[old], old + 1
        if new < len(after) and not (left == 1 and after[new] != 1):
            right, new = after[new], new + 1
        while left != right:
            if left < right:
                left, old = left * before[old], old + 1
            else:
                right, new = right * after[new], new + 1
        yield list(range(first_old, old)), list(range(first_new, new))


def target_shape(codes: Sequence[int], data: Shape) -> Shape:
    """Return the shape that Reshape's codes ask for.

    0 keeps a dimension, -1 is what remains, -2 keeps all that follow, -3 merges two, and -4 splits one
    into the two codes after it. Raises ShapeError.
    """
    result: list[int] = []
    unknown: int | None = None
    source = 0
    pending = iter(codes)
    for code in pending:
        if code in (0, -3, -4) and source + (code == -3) >= len(data):
            raise ShapeError(f"Reshape: code {code} of shape={tuple(codes)} has no dimension left in {data}")
        match code:
            case 0:
                result.append(data[source])
                source += 1
            case -1:
                unknown = _only_unknown(unknown, len(result), codes)
                result.append(1)
                source += 1
            case -2:
                result += data[source:]
                source = len(data)
            case -3:
                result.append(data[source] * data[source + 1])
                source += 2
            case -4:
                result += _split(data[source], next(pending, 0), next(pending, 0), codes)
                source += 1
            case _ if code > 0:
                result.append(code)
                source += 1
            case _:
                raise OperatorError(
                    f"Reshape: {code} in shape={tuple(codes)} is not an extent or a code (0 to -4)"
                )
    if unknown is not None:
        known = prod(result)
        if known == 0 or prod(data) % known:
            raise ShapeError(f"Reshape: {prod(data)} elements of {data} cannot take shape={tuple(codes)}")
        result[unknown] = prod(data) // known
    if prod(result) != prod(data):
        raise ShapeError(f"Reshape: {prod(data)} elements of {data} cannot take shape={tuple(codes)}")
    return tuple(result)


def _only_unknown(before: int | None, place: int, codes: Sequence[int]) -> int:
    if before is not None:
        raise OperatorError(f"Reshape: shape={tuple(codes)} has -1 twice; only one can be inferred")
    return place


def _split(extent: int, first: int, second: int, codes: Sequence[int]) -> tuple[int, int]:
    if first == -1 and second > 0:
        first = extent // second
    elif second == -1 and first > 0:
        second = extent // first
    if first * second != extent or first < 0:
        raise ShapeError(f"Reshape: -4 in shape={tuple(codes)} splits {extent} into {first} x {second}")
    return first, second


def _target(attributes: Attributes, data: Shape) -> Shape:
    codes = attributes.shape("shape") or _legacy_codes(attributes)
    if not attributes.flag("reverse"):
        return target_shape(codes, data)
    return target_shape(codes[::-1], data[::-1])[::-1]


def _legacy_codes(attributes: Attributes) -> Shape:
    """Return the codes of `target_shape`: 0 is what remains; `keep_highest` keeps the first dimension."""
    target = attributes.shape("target_shape")
    codes = tuple(extent or -1 for extent in target)
    return (0, *codes[1:]) if attributes.flag("keep_highest") else codes


def _reshape(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data = shapes["data"]
    return variant(f"def Reshape(data):\n    return {reshaped('data', data, _target(attributes, data))}")


def _flatten(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data = shapes["data"]
    check_rank("Flatten", "data", len(data), "batch, ...")
    flat = reshaped("data", data, (data[0], prod(data[1:])))
    return variant(f"def Flatten(data):\n    return {flat}")


def _shape_back(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    back = reshaped("grad_0", shapes["output_0"], shapes["data"])
    return variant(f"def Reshape_grad(grad_0):\n    return {back}", targets={"data": "output_0"})


def _expand_dims(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    variables = names("i", ranks["data"])
    axis = axis_in("expand_dims", attributes.integer("axis"), len(variables) + 1)
    binders = [*variables[:axis], "one=1", *variables[axis:]]
    return variant(
        f"def expand_dims(data):\n    return lambda {joined(binders)}: {element('data', variables)}"
    )


OPERATORS = (
    Operator(
        name="Reshape",
        aliases=("reshape",),
        definition=ByShape(_reshape, of_data),
        argument_names=arguments("data"),
        specs=(
            shape("shape", ()),
            flag("reverse", False),
            shape("target_shape", ()),
            flag("keep_highest", False),
        ),
        gradient_definition=_shape_back,
        example=Example({"data": (2, 6)}, {"shape": (0, -4, 2, -1)}),
    ),
    Operator(
        name="Flatten",
        aliases=("flatten",),
        definition=ByShape(_flatten, of_data),
        argument_names=arguments("data"),
        gradient_definition=_shape_back,
        example=Example({"data": (2, 3, 4)}),
    ),
    Operator(
        name="expand_dims",
        definition=ByRank(_expand_dims),
        argument_names=arguments("data"),
        specs=(integer("axis"),),
        gradient_definition=_shape_back,
        example=Example({"data": (2, 3)}, {"axis": 1}),
    ),
)
