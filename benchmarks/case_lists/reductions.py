"""Reductions along dimensions, positions of extremes, norms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Values, case, listed

NAMES = ("sum", "mean", "prod", "max", "min", "nansum", "nanprod")
AXES = (
    {},
    {"axis": 0},
    {"axis": -1},
    {"axis": (1,)},
    {"axis": (0, 2)},
    {"axis": (-1, -3)},
    {"axis": (0, 1, 2)},
    {"axis": ()},
)


def cases(values: Values) -> Iterator[Case]:
    for name in NAMES:
        for axes in AXES:
            yield case(name, axes, data=values.signed(2, 3, 4))
            yield case(name, {**axes, "keepdims": True}, data=values.signed(2, 3, 4))
            yield case(name, {**axes, "exclude": True}, data=values.signed(2, 3, 4))
        yield case(name, {"axis": 1, "exclude": True, "keepdims": True}, data=values.signed(2, 3, 2, 2))
        yield case(name, data=values.signed(5))
        yield case(name, {"axis": 0}, data=values.signed(5))
        yield case(name, {"axis": 1}, data=listed(1, 2, 2, -1, 3, 3, 0.5, 0.5).reshape(2, 4))
    for name in ("nansum", "nanprod"):
        data = values.signed(3, 4)
        data[0, 1] = data[1] = np.nan
        yield case(name, {"axis": 1}, data=data)
        yield case(name, data=data)
    yield from _norms(values)
    yield from _positions(values)


def _norms(values: Values) -> Iterator[Case]:
    for shape in ((4,), (2, 3), (2, 2, 3)):
        yield case("norm", data=values.signed(*shape))
    for attributes in (
        {"axis": 1},
        {"axis": -1, "keepdims": True},
        {"axis": (0, 2)},
        {"ord": 1},
        {"ord": 1, "axis": 1},
        {"ord": 2, "axis": (1, 2), "keepdims": True},
    ):
        yield case("norm", attributes, data=values.signed(2, 3, 4))


def _positions(values: Values) -> Iterator[Case]:
    for name in ("argmax", "argmin"):
        for axis in (0, 1, 2, -1, -2):
            yield case(name, {"axis": axis}, data=values.distinct(2, 3, 4))
            yield case(name, {"axis": axis, "keepdims": True}, data=values.distinct(2, 3, 4))
        yield case(name, data=values.distinct(2, 3))
        yield case(name, {"axis": None}, data=values.distinct(3, 4))
        yield case(name, {"axis": None, "keepdims": True}, data=values.distinct(3, 4))
        yield case(name, {"axis": 0}, data=values.distinct(6))
        yield case(name, {"axis": 1}, data=listed(1, 3, 3, 0, 0, 2, 2, 0).reshape(2, 4))
    yield case("argmax_channel", data=values.distinct(3, 5))
    yield case("argmax_channel", data=values.distinct(2, 5, 2))
    yield case("argmax_channel", data=values.distinct(2, 3, 2, 2))
