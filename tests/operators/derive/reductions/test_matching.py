"""Sums over the terms that equal a key: the gradients of running maxima and minima."""

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
from tofu.operators.derive.program import matches
from tofu.operators.derive.reductions.ahead import planned
from tofu.operators.derive.reductions.matching import Match
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.stage import derived

N = 37

RUNNING = {
    "maximum": f"lambda i, t={N}: Max(lambda s: where(s <= t, x[i, s], -inf))",
    "from the end": f"lambda i, t={N}: Max(lambda s: where(s >= t, x[i, s], -inf))",
    "minimum": f"lambda i, t={N}: Min(lambda s: where(s <= t, x[i, s], inf))",
    "shifted": f"lambda i, t={N + 9}: Max(lambda s: where(s < t - 3, x[i, s], -inf))",
    "far": f"lambda i, t=9: Max(lambda s: where(s <= t + {N - 12}, x[i, s], -inf))",
    "first axis": f"lambda t={N}, i: Min(lambda s: where(s >= t, x[i, s], inf))",
    "of an expression": f"lambda i, t={N}: 2 * Max(lambda s: where(s <= t, abs(x[i, s]), -inf))",
}


def has_match(bound: Any) -> bool:
    box = tuple((0, extent) for extent in bound.extents.values())
    nodes = [node for piece in pieces(bound, box) for node in walk(piece.lowered.outputs[0].value)]
    return any(
        isinstance(planned(node, bound.extents), Match) for node in nodes if isinstance(node, Reduction)
    )


def gradient(case: str, x: Any) -> tuple[Any, dict[str, Any]]:
    """The gradient of a case, and its tensors."""
    stage = derived(tdl.parse(f"def f(x): return {RUNNING[case]}"))
    forward = stage.bind({"x": x.shape})
    with np.errstate(invalid="ignore"):
        (output,) = forward.compute({"x": x})
    head = np.random.default_rng(3).integers(-4, 5, output.shape).astype(float)
    (adjoint,) = stage.adjoint("x")
    tensors = {"grad_0": head, "output_0": output, "x": x}
    needed = {name: tensors[name] for name in adjoint.inputs}
    return adjoint.bind({name: array.shape for name, array in needed.items()}), needed


@pytest.mark.parametrize("case", RUNNING)
def test_gradients_of_running_maxima(case: str, check_kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With many ties, on all parts of a box, and in linear time."""
    bound, tensors = gradient(case, np.random.default_rng(1).integers(-3, 20, (3, N)).astype(float))
    assert has_match(bound)
    monkeypatch.setattr(matches._Part, "add_one_by_one", None)
    check_kernel(bound, derive, tensors, boxes=25, dtype="float64")


@given(
    st.lists(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 1.0, 2.0, np.nan, np.inf]), min_size=12, max_size=40)
)
def test_whatever_the_maximum_is_of(values: list[float]) -> None:
    bound, tensors = gradient("maximum", np.resize(np.array(values), (1, N)))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(bound.compute(tensors)[0], bound.interpret(tensors)[0])


@given(st.integers(0, 3), st.integers(-12, 12), st.sampled_from(["<=", "<", ">", ">="]), st.data())
@settings(max_examples=60)
def test_any_data_in_any_order(seed: int, shift: int, order: str, data: Any) -> None:
    """References that are not running maxima, and numbers that are not finite."""
    sign = data.draw(st.sampled_from(["", "-", "2 * ", "-3 * "]))
    text = (
        f"def f(x, y, g): return lambda i, s: Sum(lambda t: where({sign}s + {shift} {order} t and "
        "x[i, s] == y[i, t], g[i, t] * 2, 0))"
    )
    bound = derived(tdl.parse(text)).bind({"x": (2, 24), "y": (2, 30), "g": (2, 30)})
    rng = np.random.default_rng(seed)
    tensors = {
        "x": rng.choice([0.0, 1.0, 2.0, np.nan, np.inf], (2, 24)),
        "y": rng.choice([0.0, 1.0, 2.0, np.nan, np.inf], (2, 30)),
        "g": rng.choice([0.0, 1.0, 2.0, 5.0], (2, 30)),
    }
    if data.draw(st.booleans()):
        tensors["y"] = np.maximum.accumulate(tensors["y"], axis=1)
    if data.draw(st.booleans()):
        tensors["y"] = tensors["y"][:, ::-1]
    np.testing.assert_array_equal(bound.compute(tensors)[0], bound.interpret(tensors)[0])


def test_a_term_that_is_not_a_number_stays_in_its_run() -> None:
    bound, tensors = gradient("maximum", np.floor(np.arange(N)[None] / 4))
    tensors["grad_0"][0, 9] = np.nan
    (result,) = bound.compute(tensors)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(result[0])), [8, 9])


def test_whole_numbers_are_compared_as_such() -> None:
    text = "def f(x, y, g): return lambda s: Sum(lambda t: where(s <= t and x[s] == y[t], g[t], 0))"
    bound = derived(tdl.parse(text)).bind({"x": (N,), "y": (N,), "g": (N,)})
    large, g, out = 2**60 + np.arange(N), np.ones(N, np.float32), np.empty(N, np.float32)
    whole = dict.fromkeys(("x", "y", "g"), ((0, N),))
    derive(KernelCall(bound, {"s": (0, N), "t": (0, N)}, {"x": large, "y": large, "g": g}, whole, (out,)))()
    assert has_match(bound)
    np.testing.assert_array_equal(out, g)
