"""Which tensors must come to a position as they were made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tofu.dataflow.builder import GraphBuilder
from tofu.dataflow.exactness import exact_tensors
from tofu.dataflow.graph import Role
from tofu.operators.stages.stage import Stage

MAKING = {
    "a[i] * 2 + pad(b[i - 1], c[i])": "abc",
    "where(a[i] > 0, b[i], -c[i])": "bc",
    "where(a[i], b[i], 1) + (c[i] < 3)": "b",
    "(not a[i]) + b[i] * c[i]": "bc",
    "Sum(lambda k: where(a[k] > b[k], k, 0)) + 0 * c[i]": "c",
}
"""Values that positions are computed from, and the tensors whose digits matter."""

USING = {
    "d[p[i]]": "p",
    "pad(d[i + p[i] - 1], 0)": "p",
    "where(p[i] == i, d[i], 0)": "p",
    "where(p[i] == i, 1, 0) + d[i]": "p",
    "where(2 * i <= p[i] - 1, 1, 0) + d[i]": "p",
    "where(p[i] > 0.5, d[i], 0)": "",
    "p[i] * d[i] * i": "",
}


def exact(stage: Callable[[str], Stage], making: str, using: str) -> str:
    builder = GraphBuilder("graph")
    numbers = {name: builder.tensor(name, (4,), Role.DATA) for name in "abcd"}
    made = stage(f"def making(a, b, c):\n    return lambda i: {making}")
    (numbers["p"],) = builder.apply("p", made, [numbers[name] for name in "abc"], ["p"])
    used = stage(f"def using(p, d):\n    return lambda i: {using}")
    builder.apply("out", used, [numbers["p"], numbers["d"]], ["out"])
    found = exact_tensors(builder.operations)
    return "".join(name for name, number in numbers.items() if number in found)


@pytest.mark.parametrize("making", MAKING)
def test_what_a_position_is_made_of(making: str, stage: Callable[[str], Stage]) -> None:
    assert exact(stage, making, "d[p[i]]") == f"{MAKING[making]}p"


@pytest.mark.parametrize("using", USING)
def test_what_is_used_as_a_position(using: str, stage: Callable[[str], Stage]) -> None:
    position = USING[using]
    expected = ("abc" if "p" in position else "") + "".join(sorted(position))
    assert exact(stage, "a[i] * 2 + pad(b[i - 1], c[i])", using) == expected


COMPARED = {
    "where(p[i] == 2 * d[i], d[i], 0)": "p",
    "Sum(lambda k: where(d[k] * d[i] != p[i], 1, 0))": "p",
    "where(p[i] == d[i], d[i], 0)": "",
    "where(pad(d[i - 1], -inf) == p[i], d[i], 0)": "",
    "where(where(d[i] > 1, maximum(d[i], -d[i]), 0) == p[i], d[i], 0)": "",
    "where(p[i] == 0.5, d[i], 0)": "",
    "where(p[i] > 2 * d[i], d[i], 0)": "",
}


@pytest.mark.parametrize("using", COMPARED)
def test_what_is_compared_with_computed_values(using: str, stage: Callable[[str], Stage]) -> None:
    """Tensors that it is made of may be rounded."""
    assert exact(stage, "a[i] * 2 + pad(b[i - 1], c[i])", using) == COMPARED[using]


def test_what_an_opaque_function_makes_a_position_of(stage: Callable[[str], Stage]) -> None:
    builder = GraphBuilder("graph")
    scores, rows = builder.tensor("scores", (4, 3), Role.DATA), builder.tensor("rows", (3, 2), Role.DATA)
    best = stage("def best(scores):\n    top = Opaque()\n    return lambda b: top(scores[b, :])[0]")
    (chosen,) = builder.apply("best", best, [scores], ["chosen"])
    used = stage("def used(rows, chosen):\n    return lambda b, j: rows[chosen[b], j]")
    builder.apply("out", used, [rows, chosen], ["out"])
    assert exact_tensors(builder.operations) == {scores, chosen}
