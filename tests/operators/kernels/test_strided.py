"""Functions on strided views: right at every stride, whatever loops NumPy has for it.

The oracle is the same function on contiguous copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.operators.derive.nodes.functions import LOOPS, LoopTypes
from tofu.operators.derive.steps.fold import Fold
from tofu.operators.derive.steps.select import select, spread_bits
from tofu.operators.kernels.kernel import Array
from tofu.operators.kernels.loops import is_right
from tofu.operators.kernels.strided import bound, copied_bytes, on_copies, trusted
from tofu.operators.kernels.workspace import Workspace
from tofu.tdl.reducers import UFUNCS

ROWS = 19
REACH_BYTES = 256
FLOATS = tuple(map(np.dtype, (np.float32, np.float64)))
HALF, INTEGER, BOOL = map(np.dtype, (np.float16, np.int64, np.bool_))
OF_KIND = {
    LoopTypes.NUMBER: (*FLOATS, INTEGER),
    LoopTypes.FLOAT: FLOATS,
    LoopTypes.COMPARISON: (*FLOATS, INTEGER),
    LoopTypes.LOGICAL: (BOOL,),
}
KERNELS_OWN = {
    np.square: (*FLOATS, INTEGER),
    np.bitwise_and: (INTEGER, np.dtype(np.int32)),
    np.bitwise_xor: (INTEGER, np.dtype(np.int32)),
    np.greater_equal: (HALF,),
    np.add: (HALF,),
    np.multiply: (HALF,),
    np.negative: (HALF, np.dtype(np.int32)),
    np.maximum: (HALF,),
}
"""Functions and types that kernels use besides the language's."""


def arity(function: Any) -> int:
    """How many arrays a function of the kernels takes; those that are not NumPy's take one."""
    return function.nin if isinstance(function, np.ufunc) else 1


def made_by(function: Any, *arguments: Any) -> Any:
    """Return the result of a function in a new array."""
    if isinstance(function, np.ufunc):
        return function(*arguments)
    out = np.empty(np.shape(arguments[0]), np.asarray(arguments[0]).dtype)
    function(*map(np.asarray, arguments), out=out)
    return out


def cases() -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}
    for name, loop in LOOPS.items():
        for dtype in OF_KIND[loop.kind]:
            found[f"{getattr(loop.run, '__name__', name)}-{dtype}"] = (loop.run, dtype)
    for function, dtypes in KERNELS_OWN.items():
        found |= {f"{function.__name__}-{dtype}": (function, dtype) for dtype in dtypes}
    return found


CASES = cases()


def values(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    """Small numbers, none of them zero."""
    drawn = np.random.default_rng(seed).integers(1, 12, shape)
    return (
        drawn % 2 == 0
        if dtype == BOOL
        else (drawn / 8).astype(dtype)
        if dtype.kind == "f"
        else drawn.astype(dtype)
    )


def spaced(array: Array, row: int, column: int) -> Array:
    """Return a copy of a matrix with these strides, in elements: negative ones run backwards, 0 repeats."""
    rows, columns = array.shape
    before = [max(0, -step * (count - 1)) for step, count in ((row, rows), (column, columns))]
    reach = abs(row) * (rows - 1) + abs(column) * (columns - 1) + 1
    memory = np.zeros(reach, array.dtype)
    size = array.itemsize
    view: Array = np.ndarray(
        array.shape, array.dtype, memory, sum(before) * size, (row * size, column * size)
    )
    view[...] = array
    return view


def agree(found: Array, expected: Array) -> None:
    if expected.dtype.kind == "f":
        tolerance = 16 * float(np.finfo(expected.dtype).eps)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, expected)


def contiguous(operand: Any) -> Any:
    return np.array(operand, order="C") if isinstance(operand, np.ndarray) else operand


def check(function: Callable[..., Any], arguments: Sequence[Any], out: Array) -> None:
    """The bound function on these views against the function on contiguous copies."""
    expected = np.zeros(out.shape, out.dtype)
    function(*map(contiguous, arguments), out=expected)
    bound(function, arguments, out, Workspace())()
    agree(out, expected)


@pytest.mark.parametrize("name", CASES)
def test_a_function_is_right_on_some_columns_of_matrices_of_any_width(name: str) -> None:
    function, dtype = CASES[name]
    drawn = [values((ROWS, 20), dtype, number) for number in range(arity(function))]
    with np.errstate(all="ignore"):
        for width in range(1, REACH_BYTES // dtype.itemsize + 1):
            columns = slice(0, 1 if width % 2 == 0 else width % 20)
            inputs = [spaced(matrix[:, columns], width, 1) for matrix in drawn]
            made = made_by(function, *inputs)
            agree(made, made_by(function, *map(contiguous, inputs)))
            check(function, inputs, spaced(np.zeros_like(made), width, 1))


@st.composite
def operands(draw: st.DrawFn, dtype: Any, columns: int) -> Any:
    """A view of any layout, or a number."""
    matrix = values((ROWS, columns), dtype, draw(st.integers(0, 3)))
    match draw(st.sampled_from(["spaced", "row", "column", "number", "transposed"])):
        case "row":
            return np.broadcast_to(matrix[:1], matrix.shape)
        case "column":
            return np.broadcast_to(matrix[:, :1], matrix.shape)
        case "number":
            return matrix[0, 0].item()
        case "transposed":
            return np.asfortranarray(matrix)
        case _:
            return spaced(matrix, draw(st.integers(-40, 40)), draw(st.sampled_from([1, 2, 3, -1])))


@st.composite
def targets(draw: st.DrawFn, columns: int, dtype: Any) -> Any:
    """A view whose elements are apart from each other."""
    column = draw(st.sampled_from([1, 2, 3, -1]))
    row = draw(st.sampled_from([1, -1])) * (columns * abs(column) + draw(st.integers(0, 20)))
    return spaced(values((ROWS, columns), dtype, 4), row, column)


@settings(max_examples=200)
@given(st.sampled_from(sorted(CASES)), st.integers(1, 20), st.data())
def test_a_function_is_right_in_any_layout(name: str, columns: int, data: st.DataObject) -> None:
    function, dtype = CASES[name]
    first, *others = [data.draw(operands(dtype, columns)) for _ in range(arity(function))]
    with np.errstate(all="ignore"):
        result = np.broadcast_to(made_by(function, first, *others), (ROWS, columns))
        check(function, (first, *others), data.draw(targets(columns, result.dtype)))
        if result.dtype == dtype:
            within = data.draw(targets(columns, dtype))
            expected = np.broadcast_to(
                made_by(function, contiguous(within), *map(contiguous, others)), within.shape
            )
            bound(function, (within, *others), within, Workspace())()
            agree(within, expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_reductions_are_right_on_some_columns_of_matrices_of_any_width(dtype: Any) -> None:
    for width, ufunc in product(range(1, REACH_BYTES // dtype.itemsize + 1), UFUNCS.values()):
        for count in {1, min(width, 3), min(width, 20)}:
            body = spaced(values((ROWS, count), dtype, width) * 0 + 1, width, 1)
            body[::7] = 2
            for axes in ((0,), (1,), (0, 1)):
                fold = Fold(ufunc, axes, dtype)
                made = ufunc.reduce(contiguous(body), axis=axes, keepdims=True)
                out = spaced(np.zeros_like(made), width, 1)
                assert trusted(ufunc, (out, body), out)
                fold(body, out)
                np.testing.assert_array_equal(out, made)
            starts = [0, 1, 7]
            made = np.add.reduceat(contiguous(body.T), starts, axis=1).T
            np.testing.assert_array_equal(np.add.reduceat(body, starts, axis=0), made)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_copies_and_matrix_products_are_right_at_any_stride(dtype: Any) -> None:
    right = values((5, 3), dtype, 1)
    for width, count in product(range(1, REACH_BYTES // dtype.itemsize + 1), (1, 5)):
        left = spaced(values((ROWS, count), dtype, width), max(width, count), 1)
        out = spaced(np.zeros((ROWS, count), dtype), max(width, count), 1)
        np.copyto(out, left)
        np.testing.assert_array_equal(out, contiguous(left))
        product_out = spaced(np.zeros((ROWS, 3), dtype), max(width, 3), 1)
        np.matmul(left, right[:count], out=product_out)
        agree(product_out, contiguous(left) @ right[:count])


def test_bits_are_spread_and_chosen_by_at_any_stride() -> None:
    x, y = (values((ROWS, 3), FLOATS[1], seed) for seed in range(2))
    condition = x > y
    for width in range(3, 33):
        mask = spaced(np.zeros((ROWS, 3), np.int64), width, 1)
        check(spread_bits, (spaced(condition, width, 1),), mask)
        out = spaced(x * 0, width, 1)
        check(select, (mask, spaced(x, width, 1), 0.0), out)
        check(select, (mask, spaced(x, width, 1), spaced(y, width, 1)), out)
        np.testing.assert_array_equal(out, np.where(condition, x, y))


def wrong_at(stride: int) -> Callable[..., Any]:
    """A negative that gives the first element for all, where elements of its argument are `stride` apart."""

    def negative(x: Any, out: Any) -> None:
        np.copyto(out, -x)
        if isinstance(x, np.ndarray) and x.strides[0] == stride:
            out[...] = -x[:1]

    return negative


def test_a_function_that_is_wrong_at_a_stride_computes_on_copies() -> None:
    x = values((ROWS, 8), FLOATS[1], 0)
    out, workspace = np.zeros_like(x), Workspace()
    negative = wrong_at(64)
    assert not trusted(negative, (x[:, :1],), out[:, :1])
    assert trusted(negative, (x,), out)
    assert trusted(negative, (x[:, :2],), out[:, :2]), "its inner loop is that over columns"
    bound(negative, (x[:, :1],), out[:, :1], workspace)()
    np.testing.assert_array_equal(out, -x * (np.arange(8) == 0))
    assert workspace.used_bytes == copied_bytes((x[:, :1],), out[:, :1]) == 2 * 192


def test_a_function_that_writes_between_elements_computes_on_copies() -> None:
    def careless(x: Any, out: Any) -> None:
        np.copyto(out, -x)
        if out.strides[0] > out.itemsize:
            np.lib.stride_tricks.as_strided(out, (len(out), 2), (out.strides[0], out.itemsize))[:, 1] = 0

    x = values((ROWS, 4), FLOATS[0], 0)
    assert not trusted(careless, (x[:, :1],), np.zeros_like(x)[:, :1])
    assert trusted(careless, (x,), np.zeros_like(x))


def test_copies_repeat_what_is_broadcast_and_leave_numbers() -> None:
    row, column, out = values((1, 5), FLOATS[1], 0), values((4, 1), FLOATS[1], 1), np.zeros((9, 5))[::2][:4]
    memory = np.empty(copied_bytes((row, column), out), np.uint8)
    on_copies(np.add, memory, row, column, out=out)
    np.testing.assert_array_equal(out, row + column)
    on_copies(np.power, memory, out, 2, out=out)
    np.testing.assert_array_equal(out, (row + column) ** 2)


def test_a_layout_is_tried_once() -> None:
    x, out = np.zeros((9, 7, 3)), np.zeros((9, 7, 5))
    for _ in range(3):
        before = is_right.cache_info().misses
        trusted(np.tan, (x[..., 0],), out[..., 1])
    assert is_right.cache_info().misses == before


def test_contiguous_arrays_are_not_tried() -> None:
    before = is_right.cache_info()
    for turned in (False, True):
        x = np.zeros((4, 5, 6), np.float32)
        x = x.T if turned else x
        assert trusted(np.tanh, (x,), np.zeros_like(x))
        assert trusted(np.add, (x, 2.0), x)
    assert is_right.cache_info() == before
