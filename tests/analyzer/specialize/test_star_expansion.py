"""Stars stand for as many variables as the ranks of tensors leave, under names that nothing else has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_no_two_stars_have_a_variable_in_common() -> None:
    found, _ = expanded("def f(a, b):\n    return lambda *i, *i1: a[*i] * b[*i1]", a=11, b=1)
    assert "b[i12]" in found
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


DOT = "def dot(a, b):\n    return lambda *i, *j: Sum(lambda k: a[*i, k] * b[k, *j])"


@pytest.mark.parametrize(
    ("a", "b", "body"),
    [
        (2, 2, "lambda i0, j0: Sum(lambda k: a[i0, k] * b[k, j0])"),
        (1, 3, "lambda j0, j1: Sum(lambda k: a[k] * b[k, j0, j1])"),
        (3, 1, "lambda i0, i1: Sum(lambda k: a[i0, i1, k] * b[k])"),
        (1, 1, "lambda: Sum(lambda k: a[k] * b[k])"),
    ],
)
def test_each_of_two_stars_follows_from_its_own_tensor(a: int, b: int, body: str) -> None:
    assert expanded(DOT, a=a, b=b) == (f"def dot(a, b):\n    return {body}", {"a": a, "b": b})


def test_a_star_follows_from_one_that_is_decided_in_another_order() -> None:
    text = "def f(a, b, c):\n    return lambda *i, *j, *k: a[*i, *j, *k] * b[*k, *j] * c[*k, *k]"
    found, _ = expanded(text, a=4, b=3, c=2)
    assert "lambda i0, j0, j1, k0: a[i0, j0, j1, k0] * b[k0, j0, j1] * c[k0, k0]" in found


def test_a_stage_with_two_stars_is_returned_and_read() -> None:
    text = (
        "def f(a, b):\n    product = lambda *i, n, *j: a[*i, n] * b[*j]\n"
        "    twice = lambda *k: product[*k] * 2\n    return product, twice"
    )
    found, known = expanded(text, a=3, b=1)
    assert "product = lambda i0, i1, n, j0: a[i0, i1, n] * b[j0]" in found
    assert "lambda i0, i1, i2, i3: product[i0, i1, i2, i3]" in found
    assert "lambda k0, k1, k2, k3: product[k0, k1, k2, k3] * 2" in found
    assert known == {"a": 3, "b": 1, "product": 4}


def test_what_reads_a_stage_may_decide_about_it() -> None:
    text = "def f(a, b):\n    s = lambda *i: Sum(lambda *k: a[*i, *k])\n    return lambda *i: s[*i] * b[*i]"
    found, _ = expanded(text, a=3, b=1)
    assert "s = lambda i0: Sum(lambda k0, k1: a[i0, k0, k1])" in found


@st.composite
def systems(draw: st.DrawFn) -> tuple[dict[str, int], list[tuple[str, ...]]]:
    """Lengths of stars, and the indices of tensors `t0`, `t1`, ... that decide about them, in any order."""
    names = draw(st.permutations(["i", "j", "k"]))[: draw(st.integers(1, 3))]
    reads = []
    for place, star in enumerate(names):
        earlier = draw(st.lists(st.sampled_from(names[:place]), max_size=2)) if place else []
        plain = draw(st.lists(st.sampled_from(["n", "m"]), max_size=2))
        times = draw(st.integers(1, 2))
        reads.append(tuple(draw(st.permutations([*[star] * times, *earlier, *plain]))))
    lengths = {star: draw(st.integers(0, 2)) for star in names}
    return lengths, draw(st.permutations([*reads, ("n", "m")]))


def written(lengths: dict[str, int], reads: list[tuple[str, ...]], *, stars: bool) -> str:
    """The description of a product; its stars as stars, or written out by hand."""

    def spelled(names: Iterable[str]) -> str:
        parts: list[str] = []
        for name in names:
            if name not in lengths:
                parts.append(name)
            elif stars:
                parts.append(f"*{name}")
            else:
                parts += [f"{name}{number}" for number in range(lengths[name])]
        return ", ".join(parts)

    factors = [f"t{number}[{spelled(read) or '()'}]" for number, read in enumerate(reads)]
    tensors = ", ".join(f"t{number}" for number in range(len(reads)))
    return f"def f({tensors}):\n    return lambda {spelled((*lengths, 'n', 'm'))}: {' * '.join(factors)}"


@given(systems())
def test_stars_mean_the_text_that_is_written_out_by_hand(
    system: tuple[dict[str, int], list[tuple[str, ...]]],
) -> None:
    lengths, reads = system
    ranks = {f"t{number}": sum(lengths.get(name, 1) for name in read) for number, read in enumerate(reads)}
    found, _ = expanded(written(lengths, reads, stars=True), **ranks)
    assert found == tdl.format(tdl.parse(written(lengths, reads, stars=False))).strip()


@given(systems(), st.data())
def test_ranks_are_taken_if_some_lengths_fit_them(
    system: tuple[dict[str, int], list[tuple[str, ...]]], data: st.DataObject
) -> None:
    lengths, reads = system
    ranks = [data.draw(st.integers(0, 6)) for _ in reads]
    fitting = [
        chosen
        for values in product(range(7), repeat=len(lengths))
        for chosen in [dict(zip(lengths, values, strict=True))]
        if all(sum(chosen.get(n, 1) for n in read) == rank for read, rank in zip(reads, ranks, strict=True))
    ]
    text = written(lengths, reads, stars=True)
    given_ranks = {f"t{number}": rank for number, rank in enumerate(ranks)}
    if fitting:
        (chosen,) = fitting
        assert (
            expanded(text, **given_ranks)[0]
            == tdl.format(tdl.parse(written(chosen, reads, stars=False))).strip()
        )
    else:
        with pytest.raises(ShapeError, match="give tensors whose ranks fit, or change the indices"):
            expanded(text, **given_ranks)


@pytest.mark.parametrize(
    ("body", "ranks", "message"),
    [
        ("lambda *i: a[*i, 0, 0]", {"a": 1}, "a has 1 dimension, but is read with 2 indices or more;"),
        (
            "lambda *i: a[*i, *i]",
            {"a": 3},
            "a has 3 dimensions, but is read with 0 indices and 2 times '*i';",
        ),
        (
            "lambda *i: a[*i] * a[*i, 0]",
            {"a": 2},
            "a has 2 dimensions, but is read with 3 indices, since '*i' stands for 2 variables in a[*i];",
        ),
        (
            "lambda: Sum(lambda *i: a[*i, 0])",
            {"a": 0},
            "a has 0 dimensions, but is read with 1 index or more;",
        ),
        ("lambda i: a[i]", {"a": 2}, "a has 2 dimensions, but is read with 1 index;"),
        (
            "lambda *i: a[*i]",
            {},
            "the ranks of the tensors do not say how many variables '*i' stands for; "
            "give the rank of a tensor that it indexes",
        ),
    ],
)
def test_ranks_that_do_not_fit_are_refused(body: str, ranks: dict[str, int], message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        expanded(f"def f(a):\n    return {body}", **ranks)
    assert str(caught.value).startswith(f"f: {message}")
    assert re.search(r"f:2:\d+: here\n.*\n *\^+$", str(caught.value))


def test_two_tensors_that_disagree_about_a_star() -> None:
    text = "def f(a, b, c):\n    return lambda *i, *j: a[*i] * b[*j] * c[*i, *j]"
    with pytest.raises(ShapeError) as caught:
        expanded(text, a=1, b=2, c=4)
    assert str(caught.value) == (
        "f: c has 4 dimensions, but is read with 3 indices, since '*i' stands for 1 variable in a[*i] and "
        "'*j' stands for 2 variables in b[*j]; give tensors whose ranks fit, or change the indices\n"
        "f:2:43: here\n"
        "        return lambda *i, *j: a[*i] * b[*j] * c[*i, *j]\n"
        "                                              ^^^^^^^^^"
    )


def test_the_star_that_does_not_divide_a_rank_is_named() -> None:
    text = "def f(a, b):\n    return lambda *i, *j: a[*j, *j, *i] * b[*i]"
    with pytest.raises(ShapeError) as caught:
        expanded(text, a=4, b=1)
    assert "with 1 index and 2 times '*j', since '*i' stands for 1 variable in b[*i];" in str(caught.value)


def test_stages_are_refused_in_the_name_of_the_whole() -> None:
    text = "def f(a):\n    once = lambda *i: a[*i, 0]\n    return lambda *i: once[*i]"
    with pytest.raises(ShapeError, match=r"^f: a has 0 dimensions, but is read with 1 index or more;"):
        expanded(text, a=0)
