"""Reductions over dimensions: sum, mean, prod, max, min, norm, argmax, argmin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...analyzer.indices.region import Shape
from ...errors import OperatorError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, choice, flag, integer, shape
from ..stages.definition import ByRank, Variant, variant
from .arguments import arguments
from .texts import axis_in, element, joined, names, product_of_extents


class _Axes(NamedTuple):
    """Binders of the output and of the reducer, and the dimensions that are reduced."""

    kept: str
    reduced: str
    axes: tuple[int, ...]

    @property
    def place(self) -> str:
        """Return the row-major position of an element in the dimensions that are reduced."""
        return " + ".join(
            " * ".join((f"i{axis}", *(f"data.shape[{d}]" for d in self.axes if d > axis)))
            for axis in self.axes
        )

    def first(self, data: str, extreme: str) -> str:
        """Return the first position of the extreme value, or of what is not a number."""
        count = product_of_extents("data", self.axes)
        found = f"where({data} == {extreme} or {data} != {data}, {self.place}, {count})"
        return f"Min(lambda {self.reduced}: {found})"


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
        found = _axes(name, attributes, rank)
        variables = names("i", rank)
        data = element("data", variables)
        outer = joined([v for d, v in enumerate(variables) if d not in found.axes]) or "0"
        stage_binders = outer if outer != "0" else "one=1"
        return variant(
            f"def {name}(data):\n"
            f"    extreme = lambda {stage_binders}: {reducer}(lambda {found.reduced}: {data})\n"
            f"    return lambda {found.kept}: {found.first(data, f'extreme[{outer}]')}"
        )

    return ByRank(describe)


def _at_ties(name: str) -> Callable[[Attributes, Mapping[str, Shape]], Variant | None]:
    """Return the gradient of an extreme value that equal elements share, or that the first of them has."""

    def gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant | None:
        found, variables = _axes(name, attributes, len(shapes["data"])), names("i", len(shapes["data"]))
        ties = attributes.text("ties")
        if ties == "each" or not found.axes:
            return None
        data, keep = element("data", variables), attributes.flag("keepdims")
        indices = [
            "0" if d in found.axes else v for d, v in enumerate(variables) if keep or d not in found.axes
        ]
        at = joined(indices) or "0"
        if ties == "first":
            stage = f"first = lambda {found.kept}: {found.first(data, f'output_0[{at}]')}"
            body = f"where(first[{at}] == {found.place}, grad_0[{at}], 0)"
        else:
            equal = f"{data} == output_0[{at}]"
            stage = f"count = lambda {found.kept}: Sum(lambda {found.reduced}: where({equal}, 1, 0))"
            body = f"where({equal}, grad_0[{at}] / maximum(count[{at}], 1), 0)"
        binders = joined([f"{v}=data.shape[{d}]" for d, v in enumerate(variables)])
        return variant(
            f"def {name}_grad(grad_0, output_0, data):\n    {stage}\n    return lambda {binders}: {body}",
            targets={"data": "output_0"},
        )

    return gradient


AXIS = shape("axis", ())
AXES = (AXIS, flag("keepdims", False), flag("exclude", False))
TIES = choice("ties", "each", "shared", "first", default="each")
"""Which of several equal extreme elements has the gradient."""

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


def _extreme(name: str, reducer: str) -> Operator:
    found = _operator(name, _reduction(name, reducer), f"{name}_axis")
    return replace(found, specs=(*AXES, TIES), gradient_definition=_at_ties(name))


OPERATORS = (
    _operator("sum", _reduction("sum", "Sum"), "sum_axis"),
    _operator("mean", _reduction("mean", "Sum", mean=True)),
    _operator("prod", _reduction("prod", "Prod")),
    _extreme("max", "Max"),
    _extreme("min", "Min"),
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
