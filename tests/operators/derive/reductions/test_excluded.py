"""Reductions without one of their terms: the gradients of products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu import tdl
from tofu.operators.derive import derive
from tofu.operators.derive.nodes.blocks import volume
from tofu.operators.derive.nodes.ir import Node, Reduction, walk
from tofu.operators.derive.pieces.pieces import pieces
from tofu.operators.derive.reductions.ahead import planned
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.kernels.workspace import Workspace
from tofu.operators.stages.stage import derived

N = 17

GRADIENTS = {
    "product": "lambda i: Prod(lambda s: x[i, s])",
    "product of an expression": "lambda i: Prod(lambda s: x[i, s] - 2)",
    "prefix": f"lambda i, t={N}: Prod(lambda s: where(s <= t, x[i, s], 1))",
    "strict prefix": f"lambda i, t={N}: Prod(lambda s: where(s < t, x[i, s], 1))",
    "suffix": f"lambda i, t={N}: Prod(lambda s: where(s >= t, x[i, s], 1))",
    "shifted": f"lambda i, t={N + 6}: Prod(lambda s: where(s <= t - 4, x[i, s], 1))",
    "scaled": f"lambda i, t={N}: 3 * Prod(lambda s: where(s <= t, x[i, s], 1))",
    "first axis": f"lambda t={N}, i: Prod(lambda s: where(s <= t, x[i, s], 1))",
}


def gradient(body: str) -> Any:
    (found,) = derived(tdl.parse(f"def f(x): return {body}")).adjoint("x")
    return found


def tensors_of(stage: Any, body: str, values: Any) -> dict[str, Any]:
    forward = derived(tdl.parse(f"def f(x): return {body}")).bind({"x": values.shape})
    head = np.random.default_rng(3).integers(-2, 3, forward.output_shapes[0]).astype(float)
    return {"grad_0": head, "x": values}


def costs(bound: Any) -> list[int]:
    """The number of values of the bodies of reductions that no plan computes."""
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    (piece,) = pieces(bound, tuple(box.values()))
    nodes: list[Node] = walk(piece.lowered.outputs[0].value)
    plans = {node: planned(node, bound.extents) for node in nodes if isinstance(node, Reduction)}
    inside = [getattr(plan, "inside", None) for plan in plans.values()]
    return [
        volume(node.body.free, box)
        for node, plan in plans.items()
        if isinstance(node, Reduction) and plan is None and node not in inside
    ]


@pytest.mark.parametrize("zeros", [0, pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients_of_products(case: str, zeros: int, check_kernel: Any) -> None:
    """Exact in whole numbers, also where terms are 0; on all parts of a box."""
    body = GRADIENTS[case]
    rng = np.random.default_rng(zeros)
    x = rng.choice([1.0, -1.0, 3.0 if "expression" in case else 2.0], (3, N))
    x[:, rng.permutation(N)[:zeros]] = 2 if "expression" in case else 0
    stage = gradient(body)
    tensors = tensors_of(stage, body, x)
    bound = stage.bind({name: array.shape for name, array in tensors.items()})
    check_kernel(bound, derive, tensors, boxes=12, dtype="float64")
    assert not costs(bound)


@given(st.lists(st.sampled_from([0.0, 1.0, -2.0, 0.5, np.nan, np.inf]), min_size=2, max_size=12))
def test_values_that_are_not_finite_reach_what_they_reach_in_the_description(values: list[float]) -> None:
    """Whether a result is infinite or not a number depends on the order of the products."""
    body = f"lambda t={len(values)}: Prod(lambda s: where(s <= t, x[s], 1))"
    stage = gradient(body)
    tensors = tensors_of(stage, body, np.array(values))
    bound = stage.bind({name: array.shape for name, array in tensors.items()})
    with np.errstate(invalid="ignore"):
        (found,), (expected,) = bound.compute(tensors), bound.interpret(tensors)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], 1e-12)


def test_a_product_without_a_term_that_is_squared(check_kernel: Any) -> None:
    others = "Prod(lambda v: where(v != p and v <= t, x[v], 1))"
    text = f"def f(g, x): return lambda p={N}: Sum(lambda t: where(p <= t, g[t] * {others} * {others}, 0))"
    rng = np.random.default_rng(0)
    tensors = {"g": rng.integers(-2, 3, N).astype(float), "x": rng.choice([1.0, -1.0, 2.0], N)}
    bound = derived(tdl.parse(text)).bind({name: array.shape for name, array in tensors.items()})
    check_kernel(bound, derive, tensors, boxes=12, dtype="float64")


def test_terms_of_two_variables_stay_as_they_are(check_kernel: Any) -> None:
    body = "lambda i: Prod(lambda s, r: x[i, s, r])"
    stage = gradient(body)
    tensors = tensors_of(stage, body, np.random.default_rng(0).choice([1.0, -1.0, 0.0], (2, 5, 6)))
    bound = stage.bind({name: array.shape for name, array in tensors.items()})
    check_kernel(bound, derive, tensors, dtype="float64")


def test_little_memory() -> None:
    stage = gradient(f"lambda i, t={N * 40}: Prod(lambda s: where(s <= t, x[i, s], 1))")
    x = np.ones((3, N * 40), np.float32)
    bound = stage.bind({"grad_0": x.shape, "x": x.shape})
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    workspace = Workspace()
    whole = {"grad_0": ((0, 3), (0, N * 40)), "x": ((0, 3), (0, N * 40))}
    call = KernelCall(bound, box, {"grad_0": x, "x": x}, whole, (np.empty_like(x),), workspace)
    derive(call)()
    np.testing.assert_array_equal(call.outputs[0], np.broadcast_to(np.arange(N * 40, 0, -1), x.shape))
    assert workspace.used_bytes <= 4 * 3 * x.nbytes
