"""Which regions are known to hold only elements that are read, and what is said of others."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "body",
    [
        "lambda x: a[x]",
        "lambda x: a[x + 2]",
        "lambda x: a[a.shape[0] - 1 - x]",
        "lambda x: a[x // 2]",
        "lambda x=5: Sum(lambda d=2: a[2 * x + d])",
        "lambda x=10: a[x] + a[x + 1] + a[x + 2]",
        "lambda x=5: a[x] + a[5]",
        "lambda x=12: pad(a[x - 1], 0) + pad(a[x + 1], 0)",
        "lambda x=36: a[x % 12]",
        "lambda x: a[x] * a[0]",
        "lambda x=1, y=4: a[9 * x + y]",
        "lambda x=12: a[(x + 5) % 12]",
        "lambda x=6: a[x] + a[x + 6]",
        "lambda x=3: a[x] + pad(a[x + 12], 0)",
        "lambda x=3: a[x] + pad(a[x + 20], 0)",
        "lambda x=6, y=2: a[2 * (x // 2) + y]",
        "lambda x=4, y=3: a[3 * x + y]",
        "lambda x=4, y=3: a[11 - 3 * x - y]",
        "lambda x=6, y=2: a[(3 * x + y) // 2]",
        "lambda x=24, y=2: a[x % 6 + 6 * y]",
        "lambda x=16: a[minimum(maximum(x - 2, 0), a.shape[0] - 1)]",
        "lambda x=20: a[abs(x - 8)]",
        "lambda x=6: a[minimum(2 * x, 11) // 2]",
        "lambda x=6, y=12: a[maximum(5 - x, 3) + minimum(y, 6)]",
        "lambda x=4, y=12: a[minimum(3 * x, y)]",
        "lambda x=3, y=5: a[abs(x - 3) * 2 + y // 2]",
    ],
)
def test_tight(bind, body):
    bound = bind(f"def f(a):\n    return {body}", {"a": (12,)})
    assert bound.tight
    assert bound.looseness == ()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("lambda x=3: a[x - x]", "'x' occurs more than once in the index of axis 0"),
        ("lambda x: a[x + x % 2]", "'x' occurs more than once in the index of axis 0"),
        ("lambda x=6: a[2 * x]", "the index of axis 0 steps over elements"),
        ("lambda x=3: Sum(lambda d=2: a[3 * x + d])", "the index of axis 0 steps over elements"),
        ("lambda x: a[a[x]]", "the index of axis 0 depends on data"),
        ("lambda x=3: a[x] + a[x + 5]", "several accesses"),
        ("lambda x=5: a[x] + a[x + 6]", "several accesses"),
        ("lambda x=2: a[0] + a[2] * x", "several accesses"),
        ("lambda x=4, y=2: a[3 * x + y]", "the index of axis 0 steps over elements"),
        ("lambda x=6: a[(4 * x) // 2]", "the index of axis 0 steps over elements"),
        ("lambda x=6: a[(2 * x) % 7]", "the index of axis 0 steps over elements"),
        ("lambda x=6: a[(x + 3) % 7]", "the index of axis 0 steps over elements"),
        ("lambda x=6: a[abs(2 * x - 3)]", "the index of axis 0 steps over elements"),
        ("lambda x=6: a[minimum(2 * x, 10)]", "the index of axis 0 steps over elements"),
        ("lambda x=6: a[maximum(x, 5 - x)]", "'x' occurs more than once in the index of axis 0"),
    ],
)
def test_loose(bind, body, reason):
    bound = bind(f"def f(a):\n    return {body}", {"a": (12,)})
    assert not bound.tight
    (loose,) = bound.looseness
    assert loose.tensor == "a"
    assert reason in loose.reason
    assert bound.description.source[loose.span.start : loose.span.end].startswith("a[")


def test_a_diagonal_is_not_a_box(bind):
    bound = bind("def f(a):\n    return lambda x: a[x, x]", {"a": (5, 5)})
    assert bound.looseness[0].reason == "'x' moves more than one axis: the elements read do not form a box"
    shared = bind("def f(a):\n    return lambda w, x=2, v=2: a[w, x + v, x]", {"a": (3, 5, 5)})
    assert shared.looseness[0].reason.startswith("'x' moves more than one axis")
    assert bind("def f(a):\n    return lambda x: a[x, x]", {"a": (1, 1)}).tight


@pytest.mark.parametrize(
    ("body", "tight"),
    [
        ("a[x, y] + a[x, y + 2]", True),
        ("a[x, y] + a[x, y + 3]", False),
        ("a[x, y] + a[x + 3, y]", True),
        ("a[x, y] + a[x + 3, y + 2]", False),
        ("a[x, y] + a[2, 1]", True),
        ("a[x, y] + a[x + 3, y] + a[x + 3, y + 2]", False),
        ("a[x, y + 4] + a[x, y] + a[x, y + 2]", True),
    ],
)
def test_several_boxes(bind, body, tight):
    bound = bind(f"def f(a):\n    return lambda x=3, y=2: {body}", {"a": (6, 6)})
    assert bound.tight is tight


def test_slices_of_opaque_functions_are_read_whole(bind):
    text = "def f(m):\n    g = Opaque()\n    return lambda b, i, j: g(m[b, :, :])[i, j] + m[b, i, j]"
    bound = bind(text, {"m": (4, 3, 3)})
    assert bound.tight
    assert bound.elements_of(bound.split(("b",), (4,))).tolist() == [18] * 4


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a[x, y, x]", "'x' moves more than one axis: the elements read do not form a box"),
        ("a[x, x, y]", "'x' moves more than one axis: the elements read do not form a box"),
        ("a[x + y, y, x]", "'y' moves more than one axis: the elements read do not form a box"),
        ("a[y, x, 0] + a[2 * x, y, 0]", "the index of axis 0 steps over elements"),
        (
            "a[x, y, 0] + a[x, y, 1] + a[x, y, 4]",
            "the elements that several accesses read do not form one box",
        ),
    ],
)
def test_the_last_access_to_blame_is_shown(bind, body, said):
    bound = bind(f"def f(a):\n    return lambda x=3, y=2: {body}", {"a": (6, 6, 6)})
    (loose,) = bound.looseness
    assert loose.reason == said
    last = body[body.rindex("a[") :]
    text = bound.description.source
    assert text[loose.span.start : loose.span.end] == last
