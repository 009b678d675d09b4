"""Stars stand for as many variables as the ranks of tensors leave, under names that nothing else has."""

from __future__ import annotations

import pytest

from tofu import tdl
from tofu.analyzer.specialize.star_expansion import expand_stars
from tofu.errors import ShapeError


def expanded(text: str, **ranks: int) -> tuple[str, dict[str, int]]:
    description, known = expand_stars(tdl.parse(text), ranks)
    return tdl.format(description).strip(), dict(known)


EXPANDED = {
    ("def f(a):\n    return lambda *i: a[*i]", 2): "def f(a):\n    return lambda i0, i1: a[i0, i1]",
    ("def f(a):\n    return lambda *i: a[*i]", 0): "def f(a):\n    return lambda: a[()]",
    (
        "def f(a):\n    return lambda j, *i: a[*i, j]",
        3,
    ): "def f(a):\n    return lambda j, i0, i1: a[i0, i1, j]",
    (
        "def f(a):\n    return lambda *i: a[*i, *i]",
        4,
    ): "def f(a):\n    return lambda i0, i1: a[i0, i1, i0, i1]",
    (
        "def f(a):\n    return lambda i0=2: i0 * Sum(lambda *i, k=2: a[*i, k])",
        3,
    ): "def f(a):\n    return lambda i0=2: i0 * Sum(lambda i1, i2, k=2: a[i1, i2, k])",
}


@pytest.mark.parametrize(("text", "rank"), EXPANDED)
def test_as_many_variables_as_there_are_axes(text: str, rank: int) -> None:
    found, known = expanded(text, a=rank)
    assert found == EXPANDED[text, rank]
    assert known == {"a": rank}


@pytest.mark.parametrize(
    "text",
    [
        "def f(a, i0):\n    return lambda *i: a[*i] * i0[*i]",
        "def f(a):\n    i0 = lambda *i: a[*i]\n    return lambda *i: i0[*i]",
        "def f(a):\n    i0 = Opaque()\n    return lambda *i, j: i0(a[*i, :])[j]",
        "def f(a):\n    i0 = Reducer(lambda x, y: x + y, 0)\n    return lambda *i: i0(lambda k: a[*i, k])",
    ],
)
def test_new_names_mean_nothing_else(text: str) -> None:
    found, _ = expanded(text, a=2)
    assert "lambda i0" not in found
    assert "lambda i1" in found
    assert tdl.format(tdl.parse(found)).strip() == found


def test_ranks_are_passed_on_from_tensor_to_tensor() -> None:
    text = "def f(a, b, c):\n    return lambda *i: Sum(lambda *j: a[*i, *j] * b[*j, *i, 0] * c[*j])"
    found, known = expanded(text, a=3, c=1)
    assert "lambda i0, i1: Sum(lambda j0: a[i0, i1, j0] * b[j0, i0, i1, 0] * c[j0])" in found
    assert known == {"a": 3, "b": 4, "c": 1}


def test_places_stay() -> None:
    before = tdl.parse("def f(a):\n    return lambda *i: a[*i]")
    after, _ = expand_stars(before, {"a": 2})
    assert {binder.span for binder in after.outputs[0].variables} == {before.outputs[0].variables[0].span}


@pytest.mark.parametrize(
    ("body", "ranks", "message"),
    [
        ("lambda *i: a[*i, 0, 0]", {"a": 1}, "f: a has 1 dimension, but is read with 2 indices"),
        ("lambda *i: a[*i, *i]", {"a": 3}, "f: a has 3 dimensions, but is read with 0 indices"),
        ("lambda *i: a[*i] * a[*i, 0]", {"a": 2}, "f: a has 2 dimensions, but is read with 3 indices"),
        ("lambda: Sum(lambda *i: a[*i, 0])", {"a": 0}, "f: a has 0 dimensions, but is read with 1 index"),
        ("lambda i: a[i]", {"a": 2}, "f: a has 2 dimensions, but is read with 1 index"),
        (
            "lambda *i: a[*i]",
            {},
            "f: the ranks of the tensors do not say how many variables '*i' stands for; "
            "index a tensor of known rank with it",
        ),
    ],
)
def test_ranks_that_do_not_fit_are_refused(body: str, ranks: dict[str, int], message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        expanded(f"def f(a):\n    return {body}", **ranks)
    assert str(caught.value) == message


def test_stages_are_refused_in_the_name_of_the_whole() -> None:
    text = "def f(a):\n    once = lambda *i: a[*i, 0]\n    return lambda *i: once[*i]"
    with pytest.raises(ShapeError, match=r"^f: a has 0 dimensions, but is read with 1 index$"):
        expanded(text, a=0)
