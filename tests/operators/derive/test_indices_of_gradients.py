"""Gradients through rotated, repeated and regrouped indices: what the kernel adds up, element by element."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tofu.analyzer.adjoint import adjoint
from tofu.operators.derive import derive
from tofu.operators.stages.stage import derived
from tofu.tdl import format, parse
from tofu.tdl.ast import Binary, Description, ReducerCall, Variable
from tofu.tdl.traverse import walk

CALLS = {"minimum": np.minimum, "maximum": np.maximum}
SETTINGS = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check_gradient(
    check_kernel: Any, header: str, index: str, extent: int, length: int, boxes: int = 3
) -> tuple[Description, ...]:
    """Compare the gradient of `a[index]` for `i` below an extent with sums over all its values."""
    text = re.sub(r"\bn\b", "a.shape[0]", index)
    description = parse(f"def f(a):\n    return lambda i={header}: a[{text}]")
    heads = np.arange(1, extent + 1, dtype=np.float64)
    places = np.broadcast_to(eval(index, CALLS, {"i": np.arange(extent), "n": length}), extent)
    expected = np.bincount(places, heads, length)
    parts = adjoint(description, "a")
    total = np.zeros(length)
    for part in parts:
        shapes = {name: {"grad_0": (extent,), "a": (length,)}[name] for name in part.tensor_names}
        tensors = {name: heads if name == "grad_0" else np.zeros(length) for name in shapes}
        bound = derived(part).bind(shapes)
        total += bound.compute(tensors)[0]
        check_kernel(bound, derive, tensors, boxes=boxes, dtype="float64")
    np.testing.assert_array_equal(total, expected)
    return parts


def compares(part: Description) -> bool:
    """Whether a sum runs over elements of which a comparison takes a few."""
    for node in walk(part):
        if isinstance(node, ReducerCall):
            names = {binder.name for binder in node.variables}
            for inner in walk(node.body):
                if isinstance(inner, Binary) and inner.operator == "==":
                    return any(isinstance(n, Variable) and n.name in names for n in walk(inner))
    return False


@SETTINGS
@given(
    extent=st.integers(1, 70),
    modulus=st.integers(1, 70),
    spare=st.integers(0, 2),
    shift=st.integers(-80, 80),
    sign=st.sampled_from(["", "-"]),
)
def test_rotations(check_kernel: Any, extent: int, modulus: int, spare: int, shift: int, sign: str) -> None:
    index = f"({sign}i + {shift}) % {modulus}"
    [part] = check_gradient(check_kernel, str(extent), index, extent, modulus + spare, boxes=2)
    assert not compares(part)


@SETTINGS
@given(
    length=st.integers(1, 70),
    times=st.integers(1, 3),
    shift=st.integers(-80, 80),
    sign=st.sampled_from(["", "-"]),
)
def test_rotations_by_the_extent(check_kernel: Any, length: int, times: int, shift: int, sign: str) -> None:
    header = f"{times} * a.shape[0]"
    [part] = check_gradient(check_kernel, header, f"({sign}i + {shift}) % n", times * length, length, boxes=2)
    assert not compares(part)
    if times == 1:
        assert not any(isinstance(node, ReducerCall) for node in walk(part))


BENT = {
    "replicated": "minimum(maximum(i - {p}, 0), n - 1)",
    "reflected": "n - 1 - abs(n - 1 - abs(i - {p}))",
    "next": "minimum(i + {p}, n - 1)",
    "before": "maximum(i - {p}, 0)",
    "half": "minimum(i // 2 + {p}, n - 1)",
    "third, reversed": "maximum(n - 1 - i // 3 - {p}, 0)",
    "rotated": "minimum(abs(i - {p}), n - 1) % n",
    "neighbours": "minimum(i, n - 1) // 2 * 2",
}


@SETTINGS
@given(
    name=st.sampled_from(sorted(BENT)),
    extent=st.integers(1, 30),
    length=st.integers(1, 20),
    p=st.integers(-2, 8),
)
def test_bent_indices(check_kernel: Any, name: str, extent: int, length: int, p: int) -> None:
    index = BENT[name].replace("{p}", f"({p})")
    places = eval(index, CALLS, {"i": np.arange(extent), "n": length})
    assume(places.min() >= 0 and places.max() < length)
    check_gradient(check_kernel, str(extent), index, extent, length)


@pytest.mark.parametrize("length", [*range(1, 71)])
def test_halves_change_places(length: int, check_kernel: Any) -> None:
    [part] = check_gradient(check_kernel, "a.shape[0]", "(i + n // 2) % n", length, length)
    assert not any(isinstance(node, ReducerCall) for node in walk(part))


GROUPED = {
    "neighbours change places": "i // 2 * 2 + 1 - i % 2",
    "neighbours rotate": "i // 2 * 2 + (i + 1) % 2",
    "threes rotate": "i // 3 * 3 + (i + 2) % 3",
    "the first of each group": "i // 4 * 4",
    "groups and their members change places": "i % 4 * (n // 4) + i // 4",
    "back again": "i % 6 * 2 // 2",
    "a digit between two": "i // 8 * 8 + i % 2 * 4 + i // 2 % 4",
    "reversed groups": "i // 4 * 4 + 3 - i % 4",
}


def readable(index: str, length: int) -> int:
    """How many elements the index reads before it leaves a tensor of this length."""
    places = [eval(index, {"n": length}, {"i": i}) for i in range(length)]
    return next((i for i, place in enumerate(places) if place >= length), length)


@pytest.mark.parametrize(
    ("name", "length"),
    [
        (name, length)
        for name, index in GROUPED.items()
        for length in (1, 2, 3, 4, 7, 8, 16, 24, 63, 64, 65)
        if readable(index, length)
    ],
)
def test_groups(name: str, length: int, check_kernel: Any) -> None:
    index = GROUPED[name]
    extent = readable(index, length)
    parts = check_gradient(check_kernel, str(extent), index, extent, length)
    if extent > 4:
        assert not any(map(compares, parts)), "\n".join(map(format, parts))


def test_what_does_not_divide_is_padded(check_kernel: Any) -> None:
    """Groups of as many elements as a quotient of extents says: none if that is 0."""
    text = "def f(a):\n    return lambda h=4, d=a.shape[0] // 4: a[h * (a.shape[0] // 4) + d]"
    [part] = adjoint(parse(text), "a")
    assert not any(isinstance(node, ReducerCall) for node in walk(part))
    for length in range(1, 30):
        heads = np.arange(4 * (length // 4), dtype=np.float64).reshape(4, length // 4) + 1
        bound = derived(part).bind({"grad_0": heads.shape, "a": (length,)})
        expected = np.concatenate([heads.ravel(), np.zeros(length % 4)])
        tensors = {"grad_0": heads, "a": np.zeros(length)}
        np.testing.assert_array_equal(bound.compute(tensors)[0], expected)
        np.testing.assert_array_equal(bound.interpret(tensors)[0], expected)
        check_kernel(bound, derive, tensors, dtype="float64")
