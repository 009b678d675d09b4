"""The whole messages for shapes that do not fit a description."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tofu.analyzer.bind.bound import Bound
from tofu.errors import ShapeError

MESSAGES = {
    "two extents of one variable": (
        "lambda i: a[i] + b[i]",
        {"a": (3,), "b": (4,)},
        "f: index variable 'i' has extent 3 by axis 0 of a, but 4 by axis 0 of b; they must agree",
        ["3 here", "4 here"],
    ),
    "an extent that is stated": (
        "(lambda i=2: a[i], lambda i=b.shape[0]: b[i])",
        {"a": (2,), "b": (4,)},
        "f: index variable 'i' has extent 2 by its binder, but 4 by its binder; they must agree; give one of "
        "them another name if they are two variables",
        ["2 here", "4 here"],
    ),
    "nothing left": (
        "lambda i: Sum(lambda d=5: a[i + d] + b[0])",
        {"a": (3,), "b": (1,)},
        "f: index variable 'i' would have extent -1 for a (3,), b (1,); a tensor is smaller "
        "than the indices that read it span",
        [],
    ),
    "nothing to reduce": (
        "lambda i: b[i] + Max(lambda k: a[k])",
        {"a": (0,), "b": (1,)},
        "f: Max over 'k' has no values to reduce for a (0,), b (1,)",
        ["reduced here"],
    ),
    "an index outside": (
        "lambda i=3: a[2 * i - 1] + b[i]",
        {"a": (4,), "b": (3,)},
        "f: axis 0 of a has extent 4, but its index runs from -1 to 3; wrap it in pad(a[...], value) or "
        "state smaller extents",
        ["read here"],
    ),
    "a shifted index next to one alone": (
        "lambda i: a[i] + a[i + 2] + b[0]",
        {"a": (4,), "b": (3,)},
        "f: axis 0 of a has extent 4, but its index runs from 2 to 5; wrap it in pad(a[...], value) or "
        "state smaller extents",
        ["read here", "'i' stands alone here, so its extent is 4, that of axis 0 of a"],
    ),
    "an index divided by an extent of 0": (
        "lambda i=9: pad(a[i // b.shape[0] + 1], 0)",
        {"a": (4,), "b": (0,)},
        "f: the index of axis 0 of a divides by b.shape[0], which is 0 for a (4,), b (0,); use larger shapes",
        ["divided here"],
    ),
    "a remainder by half an extent of 1": (
        "lambda i=9: pad(a[(i + 1) % (b.shape[0] // 2)], 0)",
        {"a": (4,), "b": (1,)},
        "f: the index of axis 0 of a divides by (b.shape[0] // 2), which is 0 for a (4,), b (1,); "
        "use larger shapes",
        ["divided here"],
    ),
    "an index divided by a difference that is negative": (
        "lambda i=9: pad(a[i // (b.shape[0] - 3)], 0)",
        {"a": (4,), "b": (1,)},
        "f: the index of axis 0 of a divides by b.shape[0] - 3, which is -2 for a (4,), b (1,); "
        "use larger shapes",
        ["divided here"],
    ),
    "an extent of 0 divided by itself": (
        "lambda i: pad(a[b.shape[0] // b.shape[0] + i], 0) + a[i]",
        {"a": (4,), "b": (0,)},
        "f: the index of axis 0 of a divides by b.shape[0], which is 0 for a (4,), b (0,); use larger shapes",
        ["divided here"],
    ),
    "an extent divided by a quotient that is 0": (
        "lambda i=a.shape[0] // (b.shape[0] // 2): a[i] + b[0]",
        {"a": (4,), "b": (1,)},
        "f: the extent of 'i' divides by (b.shape[0] // 2), which is 0 for a (4,), b (1,); use larger shapes",
        ["divided here"],
    ),
    "a stated remainder by an extent of 0": (
        "lambda i=a.shape[0] % b.shape[0]: a[i]",
        {"a": (4,), "b": (0,)},
        "f: the extent of 'i' divides by b.shape[0], which is 0 for a (4,), b (0,); use larger shapes",
        ["divided here"],
    ),
    "an index too large to compute": (
        "lambda i: pad(a[i * 2 ** 60], 0) + b[i]",
        {"a": (8,), "b": (8,)},
        "f: indices exceed 2**62 for a (8,), b (8,); use smaller factors or shapes",
        [],
    ),
}


@pytest.mark.parametrize(("body", "shapes", "said", "marks"), MESSAGES.values(), ids=MESSAGES)
def test_messages(
    bind: Callable[..., Bound], body: str, shapes: Mapping[str, tuple[int, ...]], said: str, marks: list[str]
) -> None:
    with pytest.raises(ShapeError) as caught:
        bind(f"def f(a, b):\n    return {body}", shapes)
    first, *places = str(caught.value).splitlines()
    assert first == said
    assert [line.partition(": ")[2] for line in places[::3]] == marks


def test_nothing_to_sum_is_zero(bind: Callable[..., Bound]) -> None:
    assert bind("def f(a):\n    return lambda i=2: Sum(lambda k: a[k])", {"a": (0,)}).output_shapes == ((2,),)
