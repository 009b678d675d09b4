"""Indices read from data: rows taken and picked, order along a dimension."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Values, case, listed


def cases(values: Values) -> Iterator[Case]:
    yield from _rows(values)
    yield from _picks(values)
    yield from _orders(values)


def _rows(values: Values) -> Iterator[Case]:
    for places in ((4,), (2, 3), (1, 2, 2)):
        yield case(
            "Embedding",
            {"input_dim": 5, "output_dim": 3},
            fixed=("data",),
            data=values.whole(0, 5, *places),
            weight=values.signed(5, 3),
        )
        indices = values.whole(0, 5, *places)
        for table in ((5,), (5, 3), (5, 2, 2)):
            yield case("take", fixed=("indices",), a=values.signed(*table), indices=indices)
    beyond = {"data": listed(-2, 0, 2, 4, 9), "weight": values.signed(5, 3)}
    yield case("Embedding", {"input_dim": 5, "output_dim": 3}, fixed=("data",), **beyond)
    outside = listed(-7, -3, -1, 0, 2, 4, 5, 11)
    for mode in ("clip", "wrap"):
        for axis in (0, 1, -1, -2):
            attributes = {"axis": axis, "mode": mode}
            yield case("take", attributes, fixed=("indices",), a=values.signed(4, 3), indices=outside)
            grid = outside.reshape(2, 4)
            yield case("take", attributes, fixed=("indices",), a=values.signed(3, 4, 2), indices=grid)
    for attributes in ({}, {"on_value": 2.5, "off_value": -1.0}, {"dtype": "int32"}):
        for places in ((4,), (2, 3)):
            indices = values.whole(0, 5, *places)
            yield case("one_hot", {"depth": 5, **attributes}, fixed=("indices",), indices=indices)
    yield case("one_hot", {"depth": 3}, fixed=("indices",), indices=listed(-1, 0, 2, 3, 7))
    for indices in (values.whole(0, 4, 3), listed(-1, 0, 5)):
        rows = {"a": values.signed(3, 4), "indices": indices.astype(np.int32)}
        yield case("batch_take", fixed=("indices",), **rows)


def _picks(values: Values) -> Iterator[Case]:
    for axis, lacking, keeping in (
        (0, (3, 4), (1, 3, 4)),
        (1, (2, 4), (2, 1, 4)),
        (2, (2, 3), (2, 3, 1)),
        (-1, (2, 3), (2, 3, 1)),
        (-3, (3, 4), (1, 3, 4)),
    ):
        for shape in (lacking, keeping):
            for keepdims in (False, True):
                yield case(
                    "pick",
                    {"axis": axis, "keepdims": keepdims},
                    fixed=("index",),
                    data=values.signed(2, 3, 4),
                    index=values.whole(0, 2, *shape),
                )
    yield case("pick", fixed=("index",), data=values.signed(3, 4), index=listed(-2, 1, 9))
    wrapped = {"mode": "wrap"}
    yield case("pick", wrapped, fixed=("index",), data=values.signed(3, 4), index=listed(-2, 1, 9))


def _orders(values: Values) -> Iterator[Case]:
    for axis in (None, 0, 1, -1, -2):
        for ascending in (False, True):
            attributes = {"axis": axis, "is_ascend": ascending}
            data = values.distinct(3, 4)
            yield case("sort", attributes, data=data)
            yield case("argsort", attributes, data=data)
            for kind in ("value", "indices", "both", "mask"):
                for count in (1, 2, 0):
                    topk = {**attributes, "ret_typ": kind, "k": count}
                    if not (axis is None and count == 0):
                        yield case("topk", topk, data=data)
    yield case("topk", data=values.distinct(2, 3, 4))
    yield case("topk", {"axis": 1, "k": 2, "ret_typ": "both"}, data=values.distinct(2, 3, 4))
    yield case("sort", {"axis": 1}, data=values.distinct(2, 3, 4))
    yield case("sort", data=values.distinct(6))
    yield case("argsort", data=values.distinct(6))
    yield case("topk", {"k": 9, "ret_typ": "value"}, data=values.distinct(2, 4))
