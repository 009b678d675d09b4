"""Laws for combining parts: found where they hold, and nowhere else."""

from __future__ import annotations

import pytest

from tofu import tdl
from tofu.analyzer.audit.laws import concat_law, reduce_law, used_as_value
from tofu.tdl.ast import Reducer, ReducerCall

SUMS = "Sum is associative and commutative"
HOLDS = {
    "Sum(lambda j: A[i, j])": Reducer.SUM,
    "Max(lambda j: A[i, j])": Reducer.MAX,
    "Sum(lambda k=2: Sum(lambda j: A[i, j] * k))": Reducer.SUM,
    "-Sum(lambda j: A[i, j])": Reducer.SUM,
    "2 * Sum(lambda j: A[i, j]) / A.shape[1]": Reducer.SUM,
    "Sum(lambda j: A[i, j]) * A[i, 0]": Reducer.SUM,
    "Sum(lambda j: A[i, j]) - 2 * Sum(lambda j: A[i, j] ** 2)": Reducer.SUM,
}
FAILS = {
    "1 + Sum(lambda j: A[i, j])": Reducer.SUM,
    "exp(Sum(lambda j: A[i, j]))": Reducer.SUM,
    "-Max(lambda j: A[i, j])": Reducer.MAX,
    "2 * Max(lambda j: A[i, j])": Reducer.MAX,
    "Sum(lambda k=2: Max(lambda j: A[i, j] * k))": Reducer.MAX,
    "Max(lambda k=2: Sum(lambda j: A[i, j] * k))": Reducer.SUM,
    "Sum(lambda j: A[i, j]) * Sum(lambda j: A[i, j])": Reducer.SUM,
    "A[i, 0] / Sum(lambda j: A[i, j])": Reducer.SUM,
    "Sum(lambda j: A[i, j])": Reducer.MAX,
}


def description(body: str) -> tdl.ast.Description:
    return tdl.parse(f"def op(A):\n    return lambda i: {body}")


@pytest.mark.parametrize("body", HOLDS)
def test_laws_carry_a_reducer_to_the_top(body: str) -> None:
    law = reduce_law(description(body), "j", HOLDS[body])
    assert law is not None
    assert "associative and commutative" in law


@pytest.mark.parametrize(
    ("body", "law"),
    [
        ("Sum(lambda j: A[i, j])", SUMS),
        ("-Sum(lambda j: A[i, j])", f"{SUMS}; -(a + b) = -a + -b"),
        ("2 * Sum(lambda j: A[i, j])", f"{SUMS}; (a + b) * c = a * c + b * c"),
        ("Sum(lambda j: A[i, j]) / 2", f"{SUMS}; (a + b) / c = a / c + b / c"),
        ("Sum(lambda k=2: Sum(lambda j: A[i, j] * k))", f"{SUMS}; Sums exchange"),
        (
            "Sum(lambda j: A[i, j]) - Sum(lambda j: A[i, j] ** 2)",
            f"{SUMS}; (a + b) - (c + d) = (a - c) + (b - d)",
        ),
    ],
)
def test_laws_are_named_from_the_reduction_up(body: str, law: str) -> None:
    assert reduce_law(description(body), "j", Reducer.SUM) == law


def test_custom_reducers_promise_what_is_not_proven() -> None:
    text = (
        "def op(A):\n    Both = Reducer(lambda a, b: a + b, 0)\n    return lambda i: Both(lambda j: A[i, j])"
    )
    parsed = tdl.parse(text)
    assert isinstance(parsed.outputs[0].body, ReducerCall)
    assert reduce_law(parsed, "j", parsed.outputs[0].body.reducer) is None


@pytest.mark.parametrize("body", FAILS)
def test_no_law_where_parts_do_not_combine(body: str) -> None:
    assert reduce_law(description(body), "j", FAILS[body]) is None


def test_concat_is_for_variables_of_every_output_alone() -> None:
    both = tdl.parse("def op(A):\n    return (lambda i, j: A[i, j], lambda i: Sum(lambda j: A[i, j]))")
    assert concat_law(both, "i") is not None
    assert concat_law(both, "j") is None
    assert reduce_law(both, "i", Reducer.SUM) is None


def test_variables_used_as_values() -> None:
    text = "Sum(lambda j: pad(A[i, j - 1], j) * where(A[i, j] > 0, 1, -i))"
    assert used_as_value(description(text), "i")
    assert used_as_value(description(text), "j")
    assert not used_as_value(description("Sum(lambda j: A[i, j])"), "j")
    assert not used_as_value(description("-pad(A[i, 0], 1) * where(A[i, 1] > 0, 1, 2)"), "i")
