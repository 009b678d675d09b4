"""Pooling: the maximum, sum or average over sliding windows or over all space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ...analyzer.indices.region import Shape
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, flag, ignored, shape
from ..stages.definition import ByShape, Constant, Variant, variant
from .arguments import arguments
from .convolution import check_space, per_dimension
from .texts import flat_index, joined, names, product_of_extents


def _pooling(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    return _over_space(attributes, shapes["data"]) if attributes.flag("global_pool") else _sliding(attributes)


def _over_space(attributes: Attributes, data: Shape) -> Variant:
    axes = range(2, len(data))
    ones = joined([f"x{d}=1" for d in range(len(axes))])
    space = joined(names("k", len(axes)))
    reducer = "Max" if attributes.text("pool_type") == "max" else "Sum"
    average = f" / ({product_of_extents('data', axes)})" if attributes.text("pool_type") == "avg" else ""
    return variant(
        "def Pooling(data):\n"
        f"    return lambda n, c, {ones}: {reducer}(lambda {space}: data[n, c, {space}]){average}"
    )


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows that slide over the spatial dimensions, as pieces of text."""

    kernel: tuple[int, ...]
    """The extents of a window."""

    stride: tuple[int, ...]
    """The distances of neighbouring windows."""

    padding: tuple[int, ...]
    """How far windows reach out of the tensor on either side."""

    full: bool
    """Whether the last window may lie partly outside."""

    @property
    def dimensions(self) -> range:
        return range(len(self.kernel))

    @property
    def constants(self) -> dict[str, Constant]:
        return {"kernel": self.kernel, "stride": self.stride, "padding": self.padding}

    @property
    def places(self) -> str:
        """Binders of the windows. With the `full` convention the last one may lie partly outside."""
        slack = " + stride[{d}] - 1" if self.full else ""
        extent = "x{d}=(data.shape[{axis}] + 2 * padding[{d}] - kernel[{d}]" + slack + ") // stride[{d}] + 1"
        return joined([extent.format(d=d, axis=d + 2) for d in self.dimensions])

    @property
    def taps(self) -> str:
        """Binders of the places in a window."""
        return joined([f"k{d}=kernel[{d}]" for d in self.dimensions])

    @property
    def tap(self) -> str:
        """The number of a place in its window, row-major."""
        return flat_index(names("k", len(self.kernel)), self.kernel)

    def element(self, outside: str) -> str:
        indices = joined([f"x{d} * stride[{d}] + k{d} - padding[{d}]" for d in self.dimensions])
        item = f"data[n, c, {indices}]"
        return f"pad({item}, {outside})" if self.full or any(self.padding) else item

    def size(self, padded: bool) -> str:
        """Return how many elements an average counts: those in the tensor and, if `padded`, in
        its padding.
        """
        return " * ".join(self._extent(d) if padded else self._inner(d) for d in self.dimensions)

    def _extent(self, d: int) -> str:
        if not self.full:
            return f"kernel[{d}]"
        return f"minimum(kernel[{d}], data.shape[{d + 2}] + 2 * padding[{d}] - x{d} * stride[{d}])"

    def _inner(self, d: int) -> str:
        start = f"x{d} * stride[{d}] - padding[{d}]"
        return f"(minimum({start} + kernel[{d}], data.shape[{d + 2}]) - maximum({start}, 0))"


def _windows_of(attributes: Attributes) -> _Windows:
    return _Windows(
        attributes.shape("kernel"),
        per_dimension("Pooling", attributes, "stride", 1),
        per_dimension("Pooling", attributes, "pad", 0),
        attributes.text("pooling_convention") == "full",
    )


def _sliding(attributes: Attributes) -> Variant:
    windows = _windows_of(attributes)
    match attributes.text("pool_type"):
        case "max":
            body = f"Max(lambda {windows.taps}: {windows.element('-inf')})"
        case "avg":
            size = windows.size(attributes.flag("count_include_pad"))
            body = f"Sum(lambda {windows.taps}: {windows.element('0')}) / ({size})"
        case _:
            body = f"Sum(lambda {windows.taps}: {windows.element('0')})"
    return variant(
        f"def Pooling(data, *, kernel, stride, padding):\n    return lambda n, c, {windows.places}: {body}",
        windows.constants,
    )


def _first_maximum(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant | None:
    """Return a maximum's gradient: to the first element that attains it, as in MXNet. Else return None."""
    if attributes.text("pool_type") != "max":
        return None
    if attributes.flag("global_pool"):
        return _first_of_all(shapes["data"])
    windows = _windows_of(attributes)
    places = joined(names("x", len(windows.kernel)))
    numerators = [f"(y{d} + padding[{d}] - k{d})" for d in windows.dimensions]
    source = joined([f"{numerators[d]} // stride[{d}]" for d in windows.dimensions])
    conditions = [f"{numerators[d]} % stride[{d}] == 0" for d in windows.dimensions if windows.stride[d] > 1]
    conditions.append(f"pad(first[n, c, {source}], -1) == {windows.tap}")
    space = joined([f"y{d}=data.shape[{d + 2}]" for d in windows.dimensions])
    return variant(
        "def Pooling_grad(grad_0, output_0, data, *, kernel, stride, padding):\n"
        f"    first = lambda n, c, {windows.places}: Min(lambda {windows.taps}: "
        f"where({windows.element('-inf')} == output_0[n, c, {places}], {windows.tap}, "
        f"{prod(windows.kernel)}))\n"
        f"    return lambda n, c, {space}: Sum(lambda {windows.taps}: "
        f"where({' and '.join(conditions)}, pad(grad_0[n, c, {source}], 0), 0))",
        windows.constants,
        targets={"data": "output_0"},
    )


def _first_of_all(data: Shape) -> Variant:
    space = names("k", len(data) - 2)
    ones, zeros = joined([f"x{d}=1" for d in range(len(space))]), joined(["0"] * len(space))
    element, place = f"data[n, c, {joined(space)}]", flat_index(space, data[2:])
    return variant(
        "def Pooling_grad(grad_0, output_0, data):\n"
        f"    first = lambda n, c, {ones}: Min(lambda {joined(space)}: "
        f"where({element} == output_0[n, c, {zeros}], {place}, {prod(data[2:])}))\n"
        f"    return lambda n, c, {joined([f'{k}=data.shape[{d + 2}]' for d, k in enumerate(space)])}: "
        f"where(first[n, c, {zeros}] == {place}, grad_0[n, c, {zeros}], 0)",
        targets={"data": "output_0"},
    )


def _check_rank(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    if not attributes.flag("global_pool"):
        check_space("Pooling", attributes, shapes["data"])
    return {}


OPERATORS = (
    Operator(
        name="Pooling",
        definition=ByShape(_pooling, lambda a: ("data",) if a.flag("global_pool") else ()),
        argument_names=arguments("data"),
        specs=(
            flag("global_pool", False),
            shape("kernel", ()),
            choice("pool_type", "max", "avg", "sum"),
            choice("pooling_convention", "valid", "full", default="valid"),
            shape("stride", ()),
            shape("pad", ()),
            flag("count_include_pad", True),
            choice("layout", "NCW", "NCHW", "NCDHW", "None", default="None"),
            ignored("cudnn_off"),
        ),
        gradient_definition=_first_maximum,
        hints=_check_rank,
        example=Example({"data": (2, 3, 6, 6)}, {"kernel": (2, 2), "stride": (2, 2), "pool_type": "max"}),
    ),
)
