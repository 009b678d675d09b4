"""Reductions over dimensions: sum, mean, prod, max, min, norm, argmax, argmin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...errors import OperatorError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, flag, integer, shape
from ..stages.definition import ByRank, Variant, variant
from .arguments import arguments
from .texts import axis_in, element, joined, names, product_of_extents


class _Axes(NamedTuple):
    """Binders of the output and of the reducer, and the dimensions that are reduced."""

    kept: str
    reduced: str
    axes: tuple[int, ...]


def _axes(operator: str, attributes: Attributes, rank: int) -> _Axes:
    axis = attributes["axis"]
    listed = () if axis is None else (axis,) if isinstance(axis, int) else attributes.shape("axis")
    axes = {axis_in(operator, a, rank) for a in listed} or set(range(rank))
    if listed and attributes.get("exclude"):
        axes = set(range(rank)) - axes
    variables = names("i", rank)
    keep = attributes.flag("keepdims")
    kept = [f"one{d}=1" if d in axes else v for d, v in enumerate(variables) if keep or d not in axes]
    reduced = [v for d, v in enumerate(variables) if d in axes]
    return _Axes(joined(kept) or "one=1", joined(reduced), tuple(sorted(axes)))


def _reduction(name: str, reducer: str, item: str = "{}", *, mean: bool = False) -> ByRank:
    def describe(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
        kept, reduced, axes = _axes(name, attributes, ranks["data"])
        body = item.format(element("data", names("i", ranks["data"])))
        if axes:
            body = f"{reducer}(lambda {reduced}: {body})"
        if mean:
            body += f" / ({product_of_extents('data', axes)})"
        return variant(f"def {name}(data):\n    return lambda {kept}: {body}")

    return ByRank(describe)


def _norm(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    """Return the sum of absolute values, or the root of that of squares, which is a separate stage."""
    order = attributes.integer("ord")
    if order not in (1, 2):
        raise OperatorError(f"norm: ord={order} is not supported, as in MXNet; use 1 or 2")
    kept, reduced, _ = _axes("norm", attributes, ranks["data"])
    item = element("data", names("i", ranks["data"]))
    if order == 1:
        return variant(f"def norm(data):\n    return lambda {kept}: Sum(lambda {reduced}: abs({item}))")
    outer = joined([binder.partition("=")[0] for binder in kept.split(", ")])
    return variant(
        "def norm(data):\n"
        f"    squares = lambda {kept}: Sum(lambda {reduced}: {item} * {item})\n"
        f"    return lambda {outer}: sqrt(squares[{outer}])"
    )


def _argmax_channel(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    """Return argmax over dimension 1."""
    along_channels = Attributes({"axis": 1, "keepdims": False})
    return _position("argmax_channel", "Max").describe(along_channels, ranks)


def _position(name: str, reducer: str) -> ByRank:
    """Return the first position along the axis, or in flattened data, where the extreme value stands."""

    def describe(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
        rank = ranks["data"]
        kept, reduced, axes = _axes(name, attributes, rank)
        variables = names("i", rank)
        data = element("data", variables)
        outer = joined([v for d, v in enumerate(variables) if d not in axes]) or "0"
        stage_binders = outer if outer != "0" else "one=1"
        place = " + ".join(
            " * ".join((variables[axis], *(f"data.shape[{d}]" for d in axes if d > axis))) for axis in axes
        )
        found = f"where({data} == extreme[{outer}], {place}, {product_of_extents('data', axes)})"
        return variant(
            f"def {name}(data):\n"
            f"    extreme = lambda {stage_binders}: {reducer}(lambda {reduced}: {data})\n"
            f"    return lambda {kept}: Min(lambda {reduced}: {found})"
        )

    return ByRank(describe)


AXIS = shape("axis", ())
AXES = (AXIS, flag("keepdims", False), flag("exclude", False))
EXAMPLE = Example({"data": (2, 3, 4)}, {"axis": (1,)})


def _operator(name: str, definition: ByRank, *aliases: str) -> Operator:
    return Operator(
        name=name,
        aliases=aliases,
        definition=definition,
        argument_names=arguments("data"),
        specs=AXES,
        example=EXAMPLE,
    )


OPERATORS = (
    _operator("sum", _reduction("sum", "Sum"), "sum_axis"),
    _operator("mean", _reduction("mean", "Sum", mean=True)),
    _operator("prod", _reduction("prod", "Prod")),
    _operator("max", _reduction("max", "Max"), "max_axis"),
    _operator("min", _reduction("min", "Min"), "min_axis"),
    _operator("nansum", _reduction("nansum", "Sum", "where({0} == {0}, {0}, 0)")),
    _operator("nanprod", _reduction("nanprod", "Prod", "where({0} == {0}, {0}, 1)")),
    Operator(
        name="norm",
        definition=ByRank(_norm),
        argument_names=arguments("data"),
        specs=(integer("ord", 2), AXIS, flag("keepdims", False)),
        example=Example({"data": (2, 3)}),
    ),
    *(
        Operator(
            name=name,
            definition=_position(name, reducer),
            argument_names=arguments("data"),
            specs=(integer("axis", optional=True), flag("keepdims", False)),
            differentiable=False,
            example=Example({"data": (2, 5)}, {"axis": 1}),
        )
        for name, reducer in (("argmax", "Max"), ("argmin", "Min"))
    ),
    Operator(
        name="argmax_channel",
        definition=ByRank(_argmax_channel),
        argument_names=arguments("data"),
        differentiable=False,
        example=Example({"data": (2, 5)}),
    ),
)
