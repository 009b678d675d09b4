"""The text of decorated functions."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import pytest

from tofu import tdl
from tofu.errors import DescriptionError
from tofu.tdl import Opaque, Sum, op_location


def mark(*_: Any) -> Callable[[Any], Any]:
    return lambda function: function


@mark()
@mark(
    "def not_this(",
    1,
)
def conv1d(data, filters):  # type: ignore[no-untyped-def]
    """Convolution, [batch, channel, x]."""
    return lambda b, co, x: Sum(
        lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx],
    )


def test_decorators_go_and_the_text_parses() -> None:
    source = op_location(conv1d)[0]
    assert source.startswith("def conv1d(data, filters):")
    expected = (
        "def conv1d(d, f): return lambda b, co, x: Sum(lambda ci, dx: d[b, ci, x + dx] * f[ci, co, dx])"
    )
    renamed = expected.replace("d[", "data[").replace("f[", "filters[").replace("(d, f)", "(data, filters)")
    assert tdl.parse(source) == tdl.parse(renamed)


def test_functions_inside_functions_are_dedented() -> None:
    @mark()
    def inner(m, *, n=1):  # type: ignore[no-untyped-def]
        C = Opaque()
        return lambda b, i: C(m[b, :])[i] * n

    assert op_location(inner)[0].startswith("def inner(m, *, n=1):")
    assert tdl.parse(op_location(inner)[0]).opaques == ("C",)


def test_errors_name_the_line_of_the_file() -> None:
    @mark()
    def wrong(a):  # type: ignore[no-untyped-def]
        return lambda i: a[j]  # type: ignore[name-defined]  # noqa: F821

    source, file, line = op_location(wrong)
    assert line == wrong.__code__.co_firstlineno + 1
    with pytest.raises(DescriptionError) as caught:
        tdl.parse(source, file, line)
    assert str(caught.value).startswith(f"{__file__}:{line + 1}:24: unknown name 'j'")


def test_the_function_is_never_called() -> None:
    def boom(a):  # type: ignore[no-untyped-def]
        raise RuntimeError

    with pytest.raises(DescriptionError, match="found 'RuntimeError'"):
        tdl.parse(op_location(boom)[0])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: a, "is not a plain function"),
        (len, "'len' is not a function"),
        (functools.partial(operator.add, 1), "is not a function"),
        (3, "'3' is not a function"),
        (type, "'type' is not a function"),
    ],
)
def test_what_is_no_def_is_refused(function: Any, message: str) -> None:
    with pytest.raises(DescriptionError, match=message):
        op_location(function)


def test_functions_without_source_are_refused() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(a): return lambda i: a[i]", namespace)
    with pytest.raises(DescriptionError, match=r"the source of 'f' is not available.*tofu\.parse"):
        op_location(namespace["f"])


def test_words_of_the_language_are_not_called() -> None:
    assert repr(Sum) == "tofu.Sum"
    with pytest.raises(DescriptionError, match=r"tofu\.Sum has a meaning only inside a description"):
        Sum(lambda i: i)
