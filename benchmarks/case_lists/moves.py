"""Elements moved, repeated or surrounded, and tensors made from nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from .case import Case, Values, case

RESHAPES = (
    ((2, 3, 4), {"shape": (-1,)}),
    ((2, 3, 4), {"shape": (4, -1)}),
    ((2, 3, 4), {"shape": (0, -1)}),
    ((2, 3, 4), {"shape": (0, 0, 2, 2)}),
    ((2, 3, 4), {"shape": (-2,)}),
    ((2, 3, 4), {"shape": (2, -2)}),
    ((2, 3, 4), {"shape": (-2, 1, 1)}),
    ((2, 3, 4), {"shape": (-3, 4)}),
    ((2, 3, 4), {"shape": (0, -3)}),
    ((2, 3, 4), {"shape": (-3, -2)}),
    ((2, 3, 4, 5), {"shape": (-3, -3)}),
    ((2, 3, 4), {"shape": (-4, 1, 2, -2)}),
    ((2, 3, 4), {"shape": (2, -4, -1, 3, -2)}),
    ((2, 3, 4), {"shape": (-1, 0, 2)}),
    ((2, 3, 4), {"shape": (0, 0, -4, 2, -1)}),
    ((2, 3, 4), {"shape": (6, 1, -1)}),
    ((8, 3), {"shape": (-4, -1, 4, 0)}),
    ((10, 5, 4), {"shape": (-1, 0), "reverse": True}),
    ((2, 3, 4), {"shape": (0, -1), "reverse": True}),
    ((2, 3, 4), {"shape": (-3, 0), "reverse": True}),
    ((2, 3, 4), {"shape": (-2,), "reverse": True}),
    ((2, 3, 8), {"shape": (0, 0, 2, -1), "reverse": True}),
    ((2, 3, 4), {"target_shape": (2, 0)}),
    ((2, 3, 4), {"target_shape": (0, 12), "keep_highest": True}),
    ((1, 3, 1), {"shape": (3,)}),
)
SLICES = (
    ((5,), {"begin": (1,), "end": (4,)}),
    ((4, 5), {"begin": (1,), "end": (3,)}),
    ((4, 5), {"begin": (-3, 1), "end": (-1, -2)}),
    ((4, 5), {"begin": (None, 2), "end": (None, None)}),
    ((4, 5), {"begin": (0, None), "end": (2, 3)}),
    ((4, 5), {"begin": (0, 1), "end": (4, 5), "step": (2, 3)}),
    ((4, 5), {"begin": (None, 4), "end": (None, 0), "step": (1, -2)}),
    ((4, 5), {"begin": (None, None), "end": (None, None), "step": (-1, -1)}),
    ((4, 5), {"begin": (1, 1), "end": (10, 3)}),
    ((2, 3, 4), {"begin": (0, 0, 1), "end": (1, 3, 3)}),
)
WIDTHS = ((0, 0, 0, 0, 1, 2, 2, 1), (0, 0, 0, 0, 0, 0, 0, 3), (0, 0, 0, 0, 2, 2, 0, 0))


def cases(values: Values) -> Iterator[Case]:
    yield from _reshaped(values)
    yield from _joined(values)
    yield from _cut(values)
    yield from _repeated(values)
    yield from _made()


def _reshaped(values: Values) -> Iterator[Case]:
    for shape, attributes in RESHAPES:
        yield case("Reshape", attributes, data=values.signed(*shape))
    for shape in ((2,), (2, 3), (2, 3, 4), (1, 2, 3, 2)):
        yield case("Flatten", data=values.signed(*shape))
        yield case("transpose", data=values.signed(*shape))
        for axis in range(-len(shape) - 1, len(shape) + 1):
            yield case("expand_dims", {"axis": axis}, data=values.signed(*shape))
    for axes in permutations(range(3)):
        yield case("transpose", {"axes": axes}, data=values.signed(2, 3, 4))
    yield case("transpose", {"axes": (0, 2, -3, 3)}, data=values.signed(2, 3, 4, 2))
    for one, other in ((0, 1), (1, 2), (2, 0), (1, 1), (-1, 0)):
        yield case("SwapAxis", {"dim1": one, "dim2": other}, data=values.signed(2, 3, 4))
    yield case("SwapAxis", data=values.signed(2, 3))


def _joined(values: Values) -> Iterator[Case]:
    for rank, dim in ((1, 0), (2, 0), (2, 1), (3, 2), (3, -1), (3, -3), (4, 1)):
        parts = {}
        for number, extent in enumerate((2, 1, 3)):
            shape = [2] * rank
            shape[dim] = extent
            parts[f"arg{number}"] = values.signed(*shape)
        yield case("Concat", {"num_args": 3, "dim": dim}, **parts)
    yield case("Concat", {"num_args": 2}, arg0=values.signed(2, 3), arg1=values.signed(2, 1))
    yield case("Concat", {"num_args": 1}, arg0=values.signed(2, 3))
    for axis in (0, 1, 2, -1, -2, -3):
        parts = {f"arg{number}": values.signed(2, 3) for number in range(3)}
        yield case("stack", {"num_args": 3, "axis": axis}, **parts)
    yield case("stack", {"num_args": 2}, arg0=values.signed(4), arg1=values.signed(4))
    yield case("stack", {"num_args": 1}, arg0=values.signed(4))


def _cut(values: Values) -> Iterator[Case]:
    for shape, attributes in SLICES:
        data = values.signed(*shape)
        yield case("slice", attributes, data=data)
        yield case("_crop_assign_scalar", {**attributes, "scalar": -1.5}, data=data)
        box = tuple(
            slice(*bounds)
            for bounds in zip(
                attributes["begin"],
                attributes["end"],
                attributes.get("step", (None,) * len(shape)),
                strict=False,
            )
        )
        yield case("_slice_assign", attributes, lhs=data, rhs=values.signed(*data[box].shape))
    for axis, begin, end in ((0, 1, 3), (1, 0, None), (-1, -3, -1), (1, 2, 5), (-2, -2, None), (0, 0, 1)):
        bounds = {"axis": axis, "begin": begin, "end": end}
        yield case("slice_axis", bounds, data=values.signed(4, 5))
    for shape, attributes in (
        ((2, 6), {"num_outputs": 3}),
        ((2, 6), {"num_outputs": 1}),
        ((4, 3), {"num_outputs": 2, "axis": 0}),
        ((2, 3, 4), {"num_outputs": 2, "axis": -1}),
        ((2, 3), {"num_outputs": 3, "squeeze_axis": True}),
        ((2, 3, 2), {"num_outputs": 2, "axis": 0, "squeeze_axis": True}),
        ((2, 2, 3), {"num_outputs": 3, "axis": -1, "squeeze_axis": True}),
    ):
        yield case("SliceChannel", attributes, data=values.signed(*shape))
    for axis in ((0,), (1,), (0, 2), (-1,), (2, 1, 0)):
        yield case("reverse", {"axis": axis}, data=values.signed(2, 3, 4))
    yield case("reverse", {"axis": 1}, data=values.signed(2, 3))


def _repeated(values: Values) -> Iterator[Case]:
    for shape, reps in (
        ((3,), (2,)),
        ((2, 3), (2,)),
        ((2, 3), (1, 2)),
        ((2, 3), (2, 1, 2)),
        ((2, 1, 3), (1, 3, 2)),
        ((3,), (2, 2)),
        ((2, 3), ()),
    ):
        yield case("tile", {"reps": reps}, data=values.signed(*shape))
    for axis in (None, 0, 1, -1, -2):
        yield case("repeat", {"repeats": 2, "axis": axis}, data=values.signed(2, 3))
    yield case("repeat", {"repeats": 3}, data=values.signed(2, 2, 2))
    yield case("repeat", {"repeats": 1, "axis": 0}, data=values.signed(3))
    for width in WIDTHS:
        for mode in ("constant", "edge", "reflect"):
            mode_width = {"mode": mode, "pad_width": width}
            yield case("Pad", mode_width, data=values.signed(2, 2, 4, 4))
            yield case("Pad", {**mode_width, "pad_width": (*width, 1, 2)}, data=values.signed(1, 2, 4, 3, 3))
        constant = {"mode": "constant", "constant_value": -1.5, "pad_width": width}
        yield case("Pad", constant, data=values.signed(2, 2, 3, 3))


def _made() -> Iterator[Case]:
    for shape in ((3,), (2, 3), (1, 2, 2)):
        yield case("_zeros", {"shape": shape})
        yield case("_ones", {"shape": shape})
    for attributes in (
        {"start": 0, "stop": 5},
        {"start": 5},
        {"start": 0, "stop": 1, "step": 0.25},
        {"start": 1, "stop": 8, "step": 3},
        {"start": 5, "stop": 0, "step": -2},
        {"start": 0, "stop": 3, "repeat": 2},
        {"start": 2.5, "stop": None},
        {"start": 0, "stop": 1, "step": 0.3, "repeat": 3},
    ):
        yield case("_arange", attributes)
