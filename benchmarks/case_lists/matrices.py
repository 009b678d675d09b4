"""Matrix products and factors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from .case import Array, Case, Values, case

FLAGS = tuple(product((False, True), repeat=2))


def cases(values: Values) -> Iterator[Case]:
    yield from _dense(values)
    yield from _dots(values)
    yield from _gemms(values)
    yield from _triangles(values)


def _dense(values: Values) -> Iterator[Case]:
    for shape, attributes in (
        ((2, 3), {}),
        ((2, 3, 2), {}),
        ((2, 3, 2), {"flatten": False}),
        ((1, 2, 2, 3), {}),
        ((1, 2, 2, 3), {"flatten": False}),
    ):
        width = shape[-1] if "flatten" in attributes else int(np.prod(shape[1:]))
        tensors = {"data": values.signed(*shape), "weight": values.signed(4, width)}
        yield case("FullyConnected", {"num_hidden": 4, **attributes}, **tensors, bias=values.signed(4))
        yield case("FullyConnected", {"num_hidden": 4, "no_bias": True, **attributes}, **tensors)


def _dots(values: Values) -> Iterator[Case]:
    for a, b in FLAGS:
        flags = {"transpose_a": a, "transpose_b": b}
        lhs, rhs = ((3, 2) if a else (2, 3)), ((4, 3) if b else (3, 4))
        yield case("dot", flags, lhs=values.signed(*lhs), rhs=values.signed(*rhs))
        batch = {"lhs": values.signed(2, *lhs), "rhs": values.signed(2, *rhs)}
        yield case("batch_dot", flags, **batch)
        yield case("linalg_gemm2", flags, A=batch["lhs"], B=batch["rhs"])
        left, right = ((3, 2, 5) if a else (5, 2, 3)), ((4, 2, 3) if b else (3, 2, 4))
        yield case("dot", flags, lhs=values.signed(*left), rhs=values.signed(*right))
    yield case("dot", lhs=values.signed(3), rhs=values.signed(3))
    yield case("dot", lhs=values.signed(2, 3), rhs=values.signed(3))
    yield case("dot", lhs=values.signed(3), rhs=values.signed(3, 2))
    yield case("batch_dot", lhs=values.signed(1, 1, 3), rhs=values.signed(1, 3, 1))
    yield case("batch_dot", lhs=values.signed(2, 2, 2, 3), rhs=values.signed(2, 2, 3, 4))


def _gemms(values: Values) -> Iterator[Case]:
    for a, b in FLAGS:
        for batch in ((), (2,), (2, 2)):
            attributes = {"transpose_a": a, "transpose_b": b, "alpha": -0.5}
            tensors = {
                "A": values.signed(*batch, *((3, 2) if a else (2, 3))),
                "B": values.signed(*batch, *((4, 3) if b else (3, 4))),
            }
            yield case("linalg_gemm2", attributes, **tensors)
            yield case("linalg_gemm", {**attributes, "beta": 2.0}, **tensors, C=values.signed(*batch, 2, 4))
    yield case("linalg_gemm", A=values.unit(2, 2), B=values.unit(2, 2), C=values.unit(2, 2))


def _triangles(values: Values) -> Iterator[Case]:
    for batch in ((), (2,), (2, 2)):
        full = values.unit(*batch, 3, 3)
        positive = (full @ full.swapaxes(-1, -2) + np.eye(3)).astype(np.float32)
        triangle = _lower(values.unit(*batch, 3, 3))
        yield case("linalg_potrf", A=positive)
        yield case("linalg_potri", A=triangle)
        yield case("linalg_sumlogdiag", A=values.unit(*batch, 3, 3))
        for transpose, right in FLAGS:
            attributes = {"transpose": transpose, "rightside": right, "alpha": 1.5}
            other = values.signed(*batch, *((2, 3) if right else (3, 2)))
            for name in ("linalg_trmm", "linalg_trsm"):
                yield case(name, attributes, A=triangle, B=other)


def _lower(matrix: Array) -> Array:
    """Return the lower triangle with a heavier diagonal, so that it inverts well."""
    return (np.tril(matrix) + np.eye(matrix.shape[-1])).astype(np.float32)
