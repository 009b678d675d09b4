"""Gathers and scatters: sums over a choice by equality, whatever part of them a box takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu import tdl
from tofu.operators import get
from tofu.operators.derive import derive
from tofu.operators.derive.nodes.ir import Reduction, walk
from tofu.operators.derive.pieces.pieces import pieces
from tofu.operators.derive.program import rows
from tofu.operators.derive.reductions.ahead import planned
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.kernels.workspace import Workspace
from tofu.operators.stages.stage import derived
from tofu.tdl.ast import Reducer

Shapes = dict[str, tuple[int, ...]]
ROWS: Shapes = {"row": (40,), "x": (40, 3)}
TABLE: Shapes = {"row": (40,), "x": (9, 3)}
SIDES: Shapes = {**TABLE, "y": (9,), "z": (40,)}
SLOTS: Shapes = {"row": (40,), "slot": (40,), "x": (40, 3), "w": (40,)}
SLOT_TABLE: Shapes = {"row": (40,), "slot": (40,), "x": (9, 6, 3), "w": (40,)}

SCATTERS: dict[str, tuple[str, Shapes]] = {
    "rows": ("lambda v=9, j: Sum(lambda b: where(row[b] == v, x[b, j], 0))", ROWS),
    "rows turned round": ("lambda j, v=9: Sum(lambda b: where(v == row[b], x[b, j], 0))", ROWS),
    "columns": ("lambda j, v=9: Sum(lambda b: where(row[b] == v, x[j, b], 0))", {"row": (40,), "x": (3, 40)}),
    "numbers": ("lambda v=9: Sum(lambda b: where(row[b] == v, x[b, 0], 0))", ROWS),
    "count": ("lambda v=9: Sum(lambda b: row[b] == v) + 0 * x[0, 0]", ROWS),
    "count twice": ("lambda v=9: Sum(lambda b: where(row[b] == v, 2, 0)) + 0 * x[0, 0]", ROWS),
    "of anything": ("lambda v=9, j: Sum(lambda b: where(row[b] == v, abs(x[b, j]) * x[b, j] + j, 0))", ROWS),
    "shifted": ("lambda v=9, j: Sum(lambda b: where(2 * row[b] + 1 == v + 3, x[b, j], 0))", ROWS),
    "opposite": ("lambda v=9, j: Sum(lambda b: where(row[b] == 5 - v, x[b, j], 0))", ROWS),
    "other conditions": (
        "lambda v=9, j: Sum(lambda b: where(row[b] == v and x[b, 0] > 0 and v != 4, x[b, j], 0))",
        ROWS,
    ),
    "not unequal": ("lambda v=9, j: Sum(lambda b: where(not row[b] != v, x[b, j], 0))", ROWS),
    "factor of the row": ("lambda v=9, j: Sum(lambda b: where(row[b] == v, x[v, j] * x[b, j], 0))", ROWS),
    "two equalities": (
        "lambda e=9, j, p=6: Sum(lambda n: where(row[n] == e and slot[n] == p, x[n, j] * w[n], 0))",
        SLOTS,
    ),
    "batch": ("lambda i, v=9: Sum(lambda b: where(x[i, b] == v, y[b], 0))", {"x": (4, 30), "y": (30,)}),
    "inner sum": ("lambda v=9: Sum(lambda b, j: where(row[b] == v, x[b, j], 0))", ROWS),
    "several positions": ("lambda v=9: Sum(lambda b, j: where(x[b, j] == v, b, 0))", {"x": (40, 3)}),
    "index": ("lambda v=60, j: Sum(lambda b: where(b + 7 == v, x[b, j], 0))", {"x": (40, 3)}),
    "index and data": ("lambda v=9, j: Sum(lambda b: where(row[b] + j == v, x[b, j], 0))", ROWS),
    "maximum": ("lambda v=9, j: Max(lambda b: where(row[b] == v, x[b, j], -inf))", ROWS),
    "minimum of numbers": ("lambda v=9: Min(lambda b: where(row[b] == v, x[b, 0], inf))", ROWS),
    "product": ("lambda v=9, j: Prod(lambda b: where(row[b] == v, x[b, j] > -4, 1))", ROWS),
}

GATHERS: dict[str, tuple[str, Shapes]] = {
    "rows": ("lambda b, j: Sum(lambda v: where(row[b] == v, x[v, j], 0))", TABLE),
    "columns": ("lambda b, j: Sum(lambda v: where(row[b] == v, x[j, v], 0))", {"row": (40,), "x": (4, 9)}),
    "of anything": ("lambda b, j: Sum(lambda v: where(row[b] == v, x[v, j] * v + j, 0))", TABLE),
    "shifted": (
        "lambda b, j: Sum(lambda v: where(row[b] == v - 2 or 0, x[v, j], 0))".replace(" or 0", ""),
        TABLE,
    ),
    "weighted": ("lambda b, j: Sum(lambda v: where(row[b] == v, row[b] * x[v, j], 0))", TABLE),
    "other conditions": (
        "lambda b, j: Sum(lambda v: where(row[b] == v and b != 7 and x[v, 0] > 0, x[v, j], 0))",
        TABLE,
    ),
    "two equalities": (
        "lambda n, j: Sum(lambda e, p: where(row[n] == e and slot[n] == p, w[n] * x[e, p, j], 0))",
        SLOT_TABLE,
    ),
    "outer sum": (
        "lambda n: Sum(lambda j, e, p: where(row[n] == e and slot[n] == p, x[e, p, j], 0)) * w[n]",
        SLOT_TABLE,
    ),
    "outer variable": (
        "lambda j: Sum(lambda n, e, p: where(row[n] == e and slot[n] == p, w[n] * x[e, p, j], 0))",
        SLOT_TABLE,
    ),
    "pick": ("lambda b: Sum(lambda v=9: where(row[b] == v, x[b, v], 0))", {"row": (20,), "x": (20, 9)}),
    "in range": ("lambda b: Sum(lambda v=9: row[b] == v) + 0 * x[0, 0]", TABLE),
    "index": ("lambda b=20, j: Sum(lambda v: where(b - 4 == v, x[v, j], 0))", {"x": (9, 3)}),
    "maximum": ("lambda b, j: Max(lambda v: where(row[b] == v, x[v, j], -inf))", TABLE),
    "compared": ("lambda b: Sum(lambda v: where(row[b] == v and z[b] >= y[v], x[v, 0], 0))", SIDES),
    "compared in rows": (
        "lambda b, j: Sum(lambda v: where(row[b] == v and w[b, j] == x[v, j] and b != 7, v + 1, 0))",
        {**TABLE, "w": (40, 3)},
    ),
    "compared if equal": (
        "lambda b: Sum(lambda v: where(where(row[b] == v, z[b], -inf) == y[v] and row[b] == v, x[v, 1], 0))",
        SIDES,
    ),
    "counted if equal": (
        "lambda b: Sum(lambda v: where(row[b] == v and z[b] == 2 * y[v] + v, 1, 0))",
        {"row": (40,), "y": (9,), "z": (40,)},
    ),
    "gather and scatter": (
        "lambda e=9, j: Sum(lambda n, p: where(row[n] == e and slot[n] == p, w[n] * x[p, j], 0))",
        {**SLOT_TABLE, "x": (6, 3)},
    ),
}
CASES = {f"scatter, {name}": case for name, case in SCATTERS.items()} | {
    f"gather, {name}": case for name, case in GATHERS.items()
}


def tensors_of(shapes: Shapes) -> dict[str, Any]:
    """Return tensors whose indices are partly fractions, outside of all ranges, infinite or NaN."""
    rng = np.random.default_rng(5)
    tensors = {name: rng.integers(-4, 5, shape).astype(np.float64) for name, shape in shapes.items()}
    for name in ("row", "slot"):
        if name in tensors:
            tensors[name] = rng.integers(-1, 8, shapes[name]).astype(np.float64)
            tensors[name][[3, 5]] = 2.5, 1e30
    return tensors


def bound_of(body: str, shapes: Shapes) -> Any:
    return derived(tdl.parse(f"def f({', '.join(shapes)}): return {body}")).bind(shapes)


def is_planned(bound: Any) -> bool:
    box = tuple((0, extent) for extent in bound.extents.values())
    nodes = [node for piece in pieces(bound, box) for node in walk(piece.lowered.outputs[0].value)]
    return any(isinstance(node, Reduction) and planned(node, bound.extents) for node in nodes)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_sums_of_whole_numbers_are_exact(case: str, dtype: str, check_kernel: Any) -> None:
    body, shapes = CASES[case]
    bound = bound_of(body, shapes)
    check_kernel(bound, derive, tensors_of(shapes), boxes=25, dtype=dtype)
    assert is_planned(bound)


@pytest.mark.parametrize("other", ["s == i + 1", "k == m[s]", "m[s] == i", "x[s, k] == i"])
def test_a_scan_next_to_an_equality_that_repays_nothing(other: str, check_kernel: Any) -> None:
    body = f"lambda t=17, i=3: Sum(lambda s, k: where({other} and s <= t, x[s, k] * m[s], 0)) + i"
    shapes: Shapes = {"x": (18, 4), "m": (18,)}
    check_kernel(bound_of(body, shapes), derive, tensors_of(shapes))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_indices_that_are_no_number_match_nothing(value: float, check_kernel: Any) -> None:
    for case in ("scatter, rows", "scatter, count", "gather, rows", "gather, two equalities"):
        body, shapes = CASES[case]
        tensors = tensors_of(shapes)
        tensors["row"][::3] = value
        check_kernel(bound_of(body, shapes), derive, tensors)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("case", ["scatter, rows", "scatter, numbers", "gather, rows", "gather, weighted"])
def test_terms_that_are_not_chosen_spoil_nothing(case: str, value: float, check_kernel: Any) -> None:
    body, shapes = CASES[case]
    tensors = tensors_of(shapes)
    if case.startswith("scatter"):
        tensors["x"][~np.isin(tensors["row"], range(9))] = value
    else:
        tensors["x"][8] = value  # a row that no index names
        tensors["x"][0, 1] = value
    check_kernel(bound_of(body, shapes), derive, tensors, boxes=12)


def test_an_infinite_constant_spoils_no_rows_without_terms(check_kernel: Any) -> None:
    body = "lambda v=9: Sum(lambda b: where(row[b] == v, inf, 0))"
    check_kernel(bound_of(body, {"row": (40,)}), derive, tensors_of({"row": (40,)}), boxes=12)


def test_a_factor_of_rows_without_terms_spoils_nothing(check_kernel: Any) -> None:
    body = "lambda v=9, j: Sum(lambda b: where(row[b] == v, w[v] * x[b, j], 0))"
    shapes: Shapes = {**ROWS, "w": (9,)}
    tensors = tensors_of(shapes)
    tensors["w"][8] = np.inf
    check_kernel(bound_of(body, shapes), derive, tensors, boxes=12)


def test_whole_indices_of_integer_type() -> None:
    bound = bound_of(*SCATTERS["rows"])
    tensors = tensors_of(ROWS)
    tensors["row"] = np.random.default_rng(3).integers(-2, 12, 40)
    out = np.empty((9, 3))
    inputs = {"row": tensors["row"], "x": tensors["x"]}
    regions = {name: tuple((0, n) for n in array.shape) for name, array in inputs.items()}
    derive(KernelCall(bound, {n: (0, e) for n, e in bound.extents.items()}, inputs, regions, (out,)))()
    np.testing.assert_array_equal(out, bound.interpret(tensors)[0])


@pytest.mark.parametrize(
    ("operator", "attributes", "table", "shapes"),
    [
        ("Embedding", {"input_dim": 60, "output_dim": 4}, "weight", {"data": (3, 25), "weight": (60, 4)}),
        ("take", {}, "a", {"a": (60, 4), "indices": (3, 25)}),
        ("take", {"axis": 1, "mode": "wrap"}, "a", {"a": (2, 30, 3), "indices": (17,)}),
    ],
)
def test_gradients_of_picked_rows(
    operator: str, attributes: Any, table: str, shapes: Any, check_kernel: Any
) -> None:
    (stage,) = get(operator).stages(attributes, shapes)
    (adjoint,) = stage.adjoint(table)
    rng = np.random.default_rng(8)
    tensors = {name: rng.integers(-3, 70, shape).astype(np.float64) for name, shape in shapes.items()}
    tensors["grad_0"] = rng.integers(-3, 4, stage.bind(shapes).output_shapes[0]).astype(np.float64)
    needed = {name: tensors[name] for name in adjoint.inputs}
    bound = adjoint.bind({name: array.shape for name, array in needed.items()})
    assert is_planned(bound)
    check_kernel(bound, derive, needed, boxes=12)


MEMORY: dict[str, tuple[str, Shapes]] = {
    "scatter": (
        "lambda v=1024, j: Sum(lambda b: where(row[b] == v, x[b, j], 0))",
        {"row": (4000,), "x": (4000, 8)},
    ),
    "count": ("lambda v=256: Sum(lambda b: row[b] == v)", {"row": (20000,)}),
    "gather": (
        "lambda b, j: Sum(lambda v: where(row[b] == v, x[v, j], 0))",
        {"row": (4000,), "x": (2000, 8)},
    ),
    "weights": (
        "lambda b: Sum(lambda j, v: where(row[b] == v, g[b, j] * x[v, j], 0))",
        {"row": (4000,), "x": (2000, 8), "g": (4000, 8)},
    ),
}


@pytest.mark.parametrize("case", MEMORY)
def test_little_memory(case: str) -> None:
    body, shapes = MEMORY[case]
    bound = bound_of(body, shapes)
    inputs = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    out = np.empty(bound.output_shapes[0], np.float32)
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    regions = {name: tuple((0, n) for n in shape) for name, shape in shapes.items()}
    workspace = Workspace()
    derive(KernelCall(bound, box, inputs, regions, (out,), workspace))()
    most = 4 * (out.nbytes + sum(array.nbytes for array in inputs.values()))
    assert workspace.used_bytes <= most
    assert workspace.kept_bytes <= most


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=60),
    st.integers(1, 3),
    st.integers(1, 20),
    st.sampled_from([Reducer.SUM, Reducer.MAX, Reducer.MIN]),
)
def test_rows_are_added_up_whatever_the_runs(
    codes: list[int], width: int, room: int, reducer: Reducer
) -> None:
    """`9` is nowhere; runs of any lengths, in any room that has a row for each of them."""
    values = np.random.default_rng(len(codes)).integers(-4, 5, (len(codes), width)).astype(float)
    spare = [np.empty((max(room, 9), width)) for _ in range(2)]
    out = np.full((9, width), -77.0)
    rows.add_up(reducer, np.array(codes), values, *spare, out=out)
    combine = {Reducer.SUM: np.sum, Reducer.MAX: np.max, Reducer.MIN: np.min}[reducer]
    nothing = {Reducer.SUM: 0.0, Reducer.MAX: -np.inf, Reducer.MIN: np.inf}[reducer]
    for row in range(9):
        own = values[np.array(codes) == row]
        np.testing.assert_array_equal(out[row], combine(own, axis=0) if len(own) else nothing)


@given(st.lists(st.integers(0, 1 << 40), max_size=50))
def test_codes_of_any_size_are_ordered(codes: list[int]) -> None:
    numbers = np.array(codes, np.int64)
    np.testing.assert_array_equal(rows._order(numbers, 1 << 40), np.argsort(numbers, kind="stable"))
