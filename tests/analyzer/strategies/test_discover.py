"""Which strategies are offered, which are refused and why, and that those offered are right."""

from __future__ import annotations

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.bind.analysis import analyze
from tofu.analyzer.specialize.split_stages import split_stages

SHAPES = {"a": (6, 5), "b": (5,)}


def strategies(bound):
    return {s.variable: (s.kind, s.reducer) for s in bound.strategies}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("b[0] + Sum(lambda k: a[i, k])", "its Sum is inside '+'"),
        ("Sum(lambda k: a[i, k]) - b[0]", "its Sum is inside '-'"),
        ("exp(Sum(lambda k: a[i, k]))", "its Sum is inside exp"),
        ("3 * exp(-Sum(lambda k: a[i, k]))", "its Sum is inside exp"),
        ("-(b[0] + 2 * Sum(lambda k: a[i, k])) / 5", "its Sum is inside '+'"),
        ("Sum(lambda j: -Max(lambda k: a[j, k]))", "its Max is inside '-'"),
        ("-Max(lambda k: a[i, k])", "its Max is inside '-'"),
        ("2 * Max(lambda k: a[i, k])", "its Max is inside '*'"),
        ("2 * Prod(lambda k: a[i, k])", "its Prod is inside '*'"),
        ("1 / Sum(lambda k: a[i, k])", "its Sum is inside '/'"),
        ("Sum(lambda k: a[i, k]) // 2", "its Sum is inside '//'"),
        ("Sum(lambda k: a[i, k]) ** 2", "its Sum is inside '**'"),
        ("Sum(lambda j: Max(lambda k: a[j, k]))", "its Max is inside Sum, another reducer"),
        ("Max(lambda j: Sum(lambda k: a[j, k]))", "its Sum is inside Max, another reducer"),
        ("Sum(lambda k: a[i, k]) / Sum(lambda k: b[k] * 0 + 1)", "reduces over it in 2 places"),
        ("Sum(lambda k: a[i, k]) * Sum(lambda k: a[i, k])", "reduces over it in 2 places"),
        ("pad(a[i, 9], Sum(lambda k: a[i, k]))", "something it does not commute with"),
    ],
)
def test_refused_reductions(bind, body, reason):
    bound = bind(f"def f(a, b):\n    return lambda i=b.shape[0] + 1: {body}", SHAPES)
    assert "k" not in strategies(bound)
    assert bound.kind("k") is None
    assert bound.reducer("k") is None
    assert reason in next(r.reason for r in bound.refusals if r.variable == "k")


@pytest.mark.parametrize(
    ("body", "reducer"),
    [
        ("Sum(lambda k: a[i, k])", "Sum"),
        ("Max(lambda k: a[i, k])", "Max"),
        ("Min(lambda k: a[i, k])", "Min"),
        ("Prod(lambda k: a[i, k])", "Prod"),
        ("-Sum(lambda k: a[i, k])", "Sum"),
        ("3 * Sum(lambda k: a[i, k])", "Sum"),
        ("Sum(lambda k: a[i, k]) * b[1]", "Sum"),
        ("b[0] * -(Sum(lambda k: a[i, k]) * 2)", "Sum"),
        ("Sum(lambda k: a[i, k]) / a.shape[1]", "Sum"),
        ("Sum(lambda j=2: Sum(lambda k: a[i, k] * j))", "Sum"),
        ("Sum(lambda j=2: (j + 1) * Sum(lambda k: a[i, k] + j))", "Sum"),
        ("Max(lambda j=2: Max(lambda k: a[i, k] * (j - 1)))", "Max"),
        ("Sum(lambda k: a[i, k]) * Sum(lambda m: b[m])", "Sum"),
        ("Sum(lambda k: a[i, k]) - 2 * Sum(lambda k: b[k])", "Sum"),
        ("Sum(lambda k: a[i, k] * k)", "Sum"),
        ("Max(lambda k: where(k == 2, a[i, k], 0 - 100))", "Max"),
    ],
)
def test_offered_reductions_are_right(bind, body, reducer):
    bound = bind(f"def f(a, b):\n    return lambda i=b.shape[0] + 1: {body}", SHAPES)
    assert strategies(bound)["k"] == ("reduce", reducer)
    random = np.random.default_rng(5)
    tensors = {name: random.integers(-4, 5, shape) for name, shape in SHAPES.items()}
    (whole,) = bound.interpret(tensors)
    combine = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}[reducer]
    for workers in range(2, 6):
        parts = []
        for box in bound.split(("k",), (workers,)).tolist():
            intervals = dict(zip(bound.variables, map(tuple, box), strict=True))
            parts.append(
                tdl.interpret(bound.description, bound.extents, tensors, bound.shapes, box=intervals)[0]
            )
        np.testing.assert_allclose(combine.reduce(parts), whole, rtol=1e-12)


def test_the_whole_output_is_the_region_of_every_partial_result(bind):
    bound = bind("def f(a):\n    return lambda i: Sum(lambda k: a[i, k])", {"a": (6, 5)})
    reduction = bound.strategies[1]
    assert [reduction.output_regions(worker=w, workers=3) for w in range(3)] == [(((0, 6),),)] * 3


def test_an_index_used_as_a_value_needs_the_offset(bind):
    bound = bind("def f(a):\n    return lambda i, j: a[i, j] * i", {"a": (6, 5)})
    assert [(s.variable, s.needs_offset) for s in bound.strategies] == [("i", True), ("j", False)]


def test_argmax_needs_the_offset(bind):
    text = """
def argmax(a):
    top = lambda i: Max(lambda k: a[i, k])
    return lambda i: Min(lambda k: where(a[i, k] == top[i], k, a.shape[1]))
"""
    description = split_stages(tdl.parse(text))[-1]
    bound = analyze(description).bind({"a": (6, 5), "top": (6,)})
    assert [(s.variable, s.kind, s.needs_offset) for s in bound.strategies] == [
        ("i", "concat", False),
        ("k", "reduce", True),
    ]


def test_extent_one_is_not_split(bind):
    bound = bind("def f(a):\n    return lambda i, j: a[i, j]", {"a": (1, 5)})
    assert strategies(bound) == {"j": ("concat", None)}
    assert [(r.variable, r.reason) for r in bound.refusals] == [("i", "its extent is 1")]


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ("lambda i: a[i, 0], lambda j: a[0, j]", {}),
        (
            "lambda i: Sum(lambda k: a[i, k]), lambda i: Sum(lambda k: -a[i, k])",
            {"i": "concat", "k": "reduce"},
        ),
        ("lambda i: Sum(lambda k: a[i, k]), lambda i: Max(lambda k: a[i, k])", {"i": "concat"}),
        ("lambda i: Sum(lambda k: a[i, k]), lambda i: a[i, 0]", {"i": "concat"}),
        ("lambda i, k: a[i, k], lambda i: Sum(lambda k: a[i, k])", {"i": "concat"}),
    ],
)
def test_a_strategy_serves_every_output(bind, outputs, expected):
    bound = bind(f"def f(a):\n    return {outputs}", {"a": (6, 5)})
    assert {s.variable: s.kind for s in bound.strategies} == expected
    assert {s.variable for s in bound.strategies} | {r.variable for r in bound.refusals} == set(
        bound.variables
    )


def test_a_reduction_over_an_opaque_result_is_refused(bind):
    text = """
def trace(m):
    inverse = Opaque()
    return lambda b: Sum(lambda i=m.shape[1]: inverse(m[b, :, :])[i, i])
"""
    bound = bind(text, {"m": (4, 3, 3)})
    assert strategies(bound) == {"b": ("concat", None)}


def custom(body):
    """A description whose root is `body`, with the custom reducers that it uses."""
    declared = {"Fold": "p + q - p * q, 0", "Most": "maximum(p, q), -inf"}
    lines = [
        f"    {name} = Reducer(lambda p, q: {text})\n" for name, text in declared.items() if name in body
    ]
    return f"def f(a, b):\n{''.join(lines)}    return lambda i: {body}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Fold(lambda k: a[i, k] * b[k])", {"i": "concat", "k": "reduce"}),
        ("Fold(lambda k, m: a[i, k] * b[m])", {"i": "concat", "k": "reduce", "m": "reduce"}),
        ("Fold(lambda m: Fold(lambda k: a[i, k] * b[m]))", {"i": "concat", "k": "reduce", "m": "reduce"}),
        ("Fold(lambda m: Most(lambda k: a[i, k] * b[m]))", {"i": "concat", "m": "reduce"}),
        ("Fold(lambda m: Sum(lambda k: a[i, k] * b[m]))", {"i": "concat", "m": "reduce"}),
        ("Sum(lambda m: Fold(lambda k: a[i, k] * b[m]))", {"i": "concat", "m": "reduce"}),
        ("-Fold(lambda k: a[i, k] * b[k])", {"i": "concat"}),
        ("2 * Fold(lambda k: a[i, k] * b[k])", {"i": "concat"}),
        ("Fold(lambda k: a[i, k]) + b[0]", {"i": "concat"}),
    ],
)
def test_custom_reducers_split_at_the_root(bind, body, expected):
    bound = bind(custom(body), SHAPES)
    assert {s.variable: s.kind for s in bound.strategies} == expected
    for strategy in bound.strategies:
        if strategy.kind == "reduce" and strategy.variable != "m":
            assert str(strategy.reducer) == "Fold"
    for refusal in bound.refusals:
        assert refusal.reason.startswith(("its Fold is inside", "its Most is inside", "its Sum is"))


@pytest.mark.parametrize("workers", range(2, 6))
def test_partial_results_of_a_custom_reducer_combine(bind, workers):
    bound = bind(custom("Fold(lambda k: a[i, k] * b[k])"), SHAPES)
    random = np.random.default_rng(5)
    tensors = {name: random.integers(-4, 5, shape) for name, shape in SHAPES.items()}
    (whole,) = bound.interpret(tensors)
    total = None
    for box in bound.split(("k",), (workers,)).tolist():
        intervals = dict(zip(bound.variables, map(tuple, box), strict=True))
        (part,) = tdl.interpret(bound.description, bound.extents, tensors, bound.shapes, box=intervals)
        if total is None:
            total = part
        else:
            tdl.combiner(bound.reducer("k"))(total, part, total)
    np.testing.assert_array_equal(total, whole)
