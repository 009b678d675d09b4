"""Prefix and suffix reductions, whatever part of them a box takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu import tdl
from tofu.operators.derive import derive
from tofu.operators.derive.nodes.ir import Reduction, walk
from tofu.operators.derive.pieces.pieces import pieces
from tofu.operators.derive.program import recurrence
from tofu.operators.derive.reductions.ahead import planned
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.kernels.workspace import Workspace
from tofu.operators.stages.stage import derived

from ...conftest import kernel_call

Shapes = dict[str, tuple[int, ...]]
X: Shapes = {"x": (3, 23)}

EXACT: dict[str, tuple[str, Shapes]] = {
    "prefix": ("lambda i, t=23: Sum(lambda s: where(s <= t, x[i, s], 0))", X),
    "strict": ("lambda i, t=23: Sum(lambda s: where(s < t, x[i, s], 0))", X),
    "turned round": ("lambda i, t=23: Sum(lambda s: where(t >= s, x[i, s], 0))", X),
    "shifted": ("lambda i, t=30: Sum(lambda s: where(s <= t - 4, x[i, s], 0))", X),
    "far": ("lambda i, t=9: Sum(lambda s: where(s <= t + 18, x[i, s], 0))", X),
    "suffix": ("lambda i, t=23: Sum(lambda s: where(s >= t, x[i, s], 0))", X),
    "strict suffix": ("lambda i, t=26: Sum(lambda s: where(t - 2 < s, x[i, s], 0))", X),
    "opposite": ("lambda i, t=23: Sum(lambda s: where(s + t <= 20, x[i, s], 0))", X),
    "opposite suffix": ("lambda i, t=23: Sum(lambda s: where(20 < s + t, x[i, s], 0))", X),
    "every third": ("lambda i, t=9: Sum(lambda s: where(s <= 3 * t - 1, x[i, s], 0))", X),
    "negated": ("lambda i, t=23: Sum(lambda s: where(not s > t, x[i, s], 0))", X),
    "kept if the order fails": ("lambda i, t=23: Sum(lambda s: where(s > t, 0, x[i, s]))", X),
    "as a factor": ("lambda i, t=23: Sum(lambda s: (s <= t) * x[i, s])", X),
    "masked factor": ("lambda i, t=23: Sum(lambda s: where(s <= t, 1, 0) * x[i, s] * 2)", X),
    "conjunction": ("lambda i, t=23: Sum(lambda s: where(s <= t and x[i, s] > 0 and t != 5, x[i, s], 0))", X),
    "factor of t": ("lambda i, t: Sum(lambda s: where(s <= t, x[i, t] * x[i, s], 0))", X),
    "count": ("lambda i, t=23: Sum(lambda s=23: where(s <= t, x[i, 0], 0))", X),
    "inner sum": (
        "lambda t=23: Sum(lambda s, k: where(s <= t, x[k, s], 0))",
        X,
    ),
    "outer sum": ("lambda i: Sum(lambda t, s: where(s <= t, x[i, s] * x[i, t], 0))", X),
    "inside": ("lambda i, t: x[i, t] + 2 * Sum(lambda s: where(s <= t, x[i, s], 0))", X),
    "first axis": ("lambda t=23, j: Sum(lambda s: where(s <= t, x[s, j], 0))", {"x": (23, 4)}),
    "maximum": ("lambda i, t=23: Max(lambda s: where(s <= t, x[i, s] + 1, -inf))", X),
    "minimum": ("lambda i, t=23: Min(lambda s, i: where(s >= t, x[i, s], inf))".replace("i, t", "t"), X),
    "product": ("lambda i, t=23: Prod(lambda s: where(s <= t, x[i, s] > -4, 1))", X),
    "distance": ("lambda i, t=23: Sum(lambda s: where(s <= t, (t - s) * x[i, s], 0))", X),
    "distance and more": (
        "lambda i, t=30: Sum(lambda s: where(s <= t, x[i, s] * (2 * t - 2 * s + 3), 0))",
        X,
    ),
    "not a prefix": ("lambda i, t=23: Sum(lambda s: where(s <= t and s > t - 3, x[i, s], 0))", X),
    "mixed": ("lambda i, t: Sum(lambda s: where(s <= t, abs(x[i, s] - x[i, t]), 0))", X),
}

BASES = {"x": (2, 23, 3), "a": (3,)}
ROUNDED: dict[str, tuple[str, Shapes]] = {
    "decay": ("lambda b, t=23, c: Sum(lambda s: where(s <= t, a[c] ** (t - s) * x[b, s, c], 0))", BASES),
    "shifted": ("lambda b, t=30, c: Sum(lambda s: where(s < t, a[c] ** (t - s - 1) * x[b, s, c], 0))", BASES),
    "raised": (
        "lambda b, t=23, c: Sum(lambda s: where(s <= t, a[c] ** (2 * t - 2 * s + 1) * x[b, s, c], 0))",
        BASES,
    ),
    "suffix": ("lambda b, t=23, c: Sum(lambda s: where(s >= t, a[c] ** (s - t) * x[b, s, c], 0))", BASES),
    "constant": ("lambda i, t=40: Sum(lambda s: where(s <= t, 0.75 ** (t - s) * x[i, s], 0))", X),
    "rate": ("lambda b, t=23, c: Sum(lambda s: where(s <= t, exp(-a[c] * (t - s)) * x[b, s, c], 0))", BASES),
    "time": (
        "lambda b, t=23, c: Sum(lambda s: where(s <= t, exp((s - t) / (2 + a[c])) * x[b, s, c], 0))",
        BASES,
    ),
    "two": (
        "lambda b, t=23, c: Sum(lambda s: where(s <= t, a[c] ** (t - s) * 0.5 ** (t - s) * x[b, s, c], 0))",
        BASES,
    ),
    "weighted": (
        "lambda b, t=40, c: Sum(lambda s: where(s <= t, (t - s + 2) * a[c] ** (t - s) * x[b, s, c], 0))",
        BASES,
    ),
}


def tensors_of(shapes: Shapes) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    tensors = {name: rng.integers(-4, 5, shape).astype(np.float64) for name, shape in shapes.items()}
    if "a" in tensors:
        tensors["a"] = np.array([0.5, -0.75, 0.0])
    return tensors


def bound_of(body: str, shapes: Shapes) -> Any:
    return derived(tdl.parse(f"def f({', '.join(shapes)}): return {body}")).bind(shapes)


def plans(bound: Any) -> list[Any]:
    box = tuple((0, extent) for extent in bound.extents.values())
    nodes = [node for piece in pieces(bound, box) for node in walk(piece.lowered.outputs[0].value)]
    return [planned(node, bound.extents) for node in nodes if isinstance(node, Reduction)]


@pytest.mark.parametrize("case", EXACT)
def test_sums_of_whole_numbers_are_exact(case: str, check_kernel: Any) -> None:
    body, shapes = EXACT[case]
    bound = bound_of(body, shapes)
    check_kernel(bound, derive, tensors_of(shapes), boxes=25)
    assert any(plans(bound)) == (case not in ("not a prefix", "mixed"))


@pytest.mark.parametrize("case", ROUNDED)
def test_decays(case: str, check_kernel: Any) -> None:
    """Also for a base of zero and a negative one."""
    body, shapes = ROUNDED[case]
    bound = bound_of(body, shapes)
    check_kernel(bound, derive, tensors_of(shapes), boxes=25, dtype="float64", tolerance=1e-12)
    assert any(plans(bound))


@pytest.mark.parametrize("reader", ["s <= t", "s > t"])
@pytest.mark.parametrize("case", ["a[c] ** (t - s)", "exp(-a[c] * (t - s))", "(1 - a[c]) * a[c] ** (t - s)"])
def test_gradients_of_decays(case: str, reader: str, check_kernel: Any) -> None:
    body = f"lambda b, t=23, c: Sum(lambda s: where({reader}, {case} * x[b, s, c], 0))"
    stage = derived(tdl.parse(f"def f(x, a): return {body}"))
    tensors = {**tensors_of(BASES), "grad_0": np.random.default_rng(6).random((2, 23, 3))}
    tensors["a"] = np.array([0.5, -0.75, 1.25])
    for name in ("x", "a"):
        (adjoint,) = stage.adjoint(name)
        needed = {key: tensors[key] for key in adjoint.inputs}
        bound = adjoint.bind({key: array.shape for key, array in needed.items()})
        assert any(plans(bound))
        check_kernel(bound, derive, needed, boxes=12, dtype="float64", tolerance=1e-10)


@given(
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(-80, 80),
    st.sampled_from(["<", "<=", ">", ">="]),
    st.data(),
)
@settings(max_examples=60)
def test_any_order_of_any_ranges(terms: int, count: int, shift: int, order: str, data: Any) -> None:
    sign = data.draw(st.sampled_from(["", "-", "2 * ", "-3 * "]))
    decay = data.draw(st.sampled_from(["", "0.5 ** abs(1) * ", "w[()] ** DISTANCE * "]))
    distance = f"({sign}t + {shift} - s)" if "<" in order else f"(s - ({sign}t + {shift}))"
    body = f"{decay.replace('DISTANCE', distance)}x[s]"
    bound = bound_of(
        f"lambda t={count}: Sum(lambda s: where(s {order} {sign}t + {shift}, {body}, 0)) + 0 * w[()]",
        {"x": (terms,), "w": ()},
    )
    box = {name: sorted(data.draw(st.tuples(*[st.integers(0, n)] * 2))) for name, n in bound.extents.items()}
    if box["t"][0] == box["t"][1]:
        return
    tensors = {"x": np.random.default_rng(terms).integers(-4, 5, terms).astype(float), "w": np.array(0.5)}
    call = kernel_call(bound, np.array(list(box.values())), tensors, "float64")
    derive(call)()
    expected = tdl.interpret(bound.description, bound.extents, tensors, bound.shapes, dict(call.box), {})
    np.testing.assert_allclose(call.outputs[0], expected[0], 1e-12, 1e-12)


def test_what_comes_later_is_not_read() -> None:
    x = np.array([1.0, 2, np.nan, 4, np.inf, 5, 6, 7])
    bound = bound_of("lambda t=8: Sum(lambda s: where(s <= t, x[s], 0))", {"x": (8,)})
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(bound.compute({"x": x})[0], np.cumsum(x))


def test_a_base_above_one_does_not_overflow_before_its_result_does() -> None:
    bound = bound_of("lambda t=500: Sum(lambda s: where(s <= t, 1.5 ** (t - s) * x[s], 0))", {"x": (500,)})
    x = np.zeros(500, np.float32)
    x[300:] = 1.0
    (result,) = bound.compute({"x": x})
    assert np.isfinite(result).all()
    np.testing.assert_allclose(result[300:320], 2 * (1.5 ** np.arange(1, 21) - 1), rtol=1e-5)


@pytest.mark.parametrize("case", ["prefix", "suffix", "opposite", "maximum", "outer sum"])
def test_little_memory(case: str) -> None:
    """Less than the inputs and the output take: nothing is as large as the conditions."""
    bound = bound_of(EXACT[case][0].replace("23", "2000"), {"x": (3, 2000)})
    x, out = np.ones((3, 2000), np.float32), np.empty(bound.output_shapes[0], np.float32)
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    workspace = Workspace()
    derive(KernelCall(bound, box, {"x": x}, {"x": ((0, 3), (0, 2000))}, (out,), workspace))()
    assert workspace.used_bytes <= 4 * (x.nbytes + out.nbytes)
    assert workspace.kept_bytes <= 4 * (x.nbytes + out.nbytes)


@given(st.integers(0, 600), st.integers(0, 3))
def test_recurrences_of_any_length(length: int, width: int) -> None:
    values = np.random.default_rng(length).integers(-4, 5, (length, width)).astype(float)
    found = values.copy()
    recurrence.accumulate(np.maximum, 0, found, out=found)
    np.testing.assert_array_equal(found, np.maximum.accumulate(values, axis=0))
