"""Evaluations that are too large are refused before they begin."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu.errors import ExecutionError
from tofu.support import memory
from tofu.tdl import parse
from tofu.tdl.points import points


def counted(text: str, **extents: int) -> int:
    (output,) = parse(text).outputs
    return points(output, lambda binder: (0, extents[binder.name]))


def test_points_of_nested_and_neighbouring_reductions() -> None:
    assert counted("def f(a):\n    return lambda i: a[i]", i=5) == 5
    assert counted("def f(a):\n    return lambda i: Sum(lambda j: a[i, j])", i=5, j=3) == 5 + 15
    both = "def f(a):\n    return lambda i: Sum(lambda j: a[i, j]) + Sum(lambda k: a[i, k])"
    assert counted(both, i=5, j=3, k=4) == 5 + 15 + 20
    nested = "def f(a):\n    return lambda i: Sum(lambda j: Max(lambda k: a[i, j, k]))"
    assert counted(nested, i=5, j=3, k=4) == 5 + 15 + 60


LONG = tofu.parse("def f(a):\n    return lambda i: Sum(lambda k=10 ** 10: a[i] * k)")
OUTER = tofu.parse("def f(a):\n    return lambda i, j: a[i] * a[j]")


def test_long_sums_are_not_interpreted() -> None:
    with pytest.raises(ExecutionError, match="'f' would be evaluated at 40,000,000,004 points, and at most"):
        LONG.bind({"a": (4,)}).interpret({"a": np.ones(4)})


@pytest.mark.parametrize(("operator", "extent"), [(LONG, 4), (OUTER, 10**6)])
def test_audits_of_what_cannot_be_evaluated_are_refused(operator: tofu.Operator, extent: int) -> None:
    with pytest.raises(ExecutionError, match="give smaller shapes"):
        tofu.testing.audit(operator, shapes={"a": (extent,)})


def test_outputs_larger_than_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "physical_bytes", lambda: 1 << 20)
    bound = OUTER.bind({"a": (1 << 10,)})
    with pytest.raises(ExecutionError, match="what 'f' computes would take 4,194,304 bytes"):
        bound.compute({"a": np.ones(1 << 10, np.float32)})


def test_a_failed_allocation_says_what_was_wanted() -> None:
    wanted = "there is no memory for the whole: no room; use smaller"
    with pytest.raises(ExecutionError, match=wanted), memory.allocating("the whole"):
        raise MemoryError("no room")
