"""Which descriptions sum products of two tensors."""

from __future__ import annotations

import pytest

from tofu import tdl
from tofu.operators.stages.contraction import contraction

CONTRACTIONS = {
    "product": "lambda i, j: Sum(lambda k: a[i, k] * b[k, j])",
    "of vectors of one": "lambda i: Sum(lambda k: a[i, k] * b[0, k])",
    "scaled": "lambda i, j: -2 * Sum(lambda k: a[i, k] * b[k, j]) / 3",
    "windows": "lambda i, j=4: Sum(lambda k: pad(a[i, j + k - 1], 0) * b[0, k])",
    "strided": "lambda i, j=9: Sum(lambda k: where((j - k) % 2 == 0, pad(a[i, j - k], 0), 0) * b[0, k])",
}
OTHERS = {
    "no sum": "lambda i, j: a[i, j] * b[i, j]",
    "another reducer": "lambda i, j: Max(lambda k: a[i, k] * b[k, j])",
    "one factor": "lambda i: Sum(lambda k: a[i, k] + b[i, k])",
    "products used once": "lambda i: Sum(lambda k: a[i, k] * b[i, k])",
    "summed in one alone": "lambda i, j: Sum(lambda k, m: a[i, k] * b[m, j])",
    "something added": "lambda i, j: a[i, j] + Sum(lambda k: a[i, k] * b[k, j])",
    "a function of a factor": "lambda i, j: Sum(lambda k: exp(a[i, k]) * b[k, j])",
    "padded by another number": "lambda i, j: Sum(lambda k: pad(a[i, k - 1], 1) * b[k, j])",
    "an index from data": "lambda i, j: Sum(lambda k: a[b[i, k], k] * b[k, j])",
    "a condition from data": "lambda i, j: Sum(lambda k: where(b[k, j] > 0, a[i, k], 0) * b[k, j])",
    "two outputs": "(lambda i, j: Sum(lambda k: a[i, k] * b[k, j]), lambda i, j: a[i, j])",
}


def factors(body: str) -> tuple[str, str] | None:
    return contraction(tdl.parse(f"def op(a, b):\n    return {body}"))


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_sums_over_products_are_found(name: str) -> None:
    assert factors(CONTRACTIONS[name]) == ("a", "b")


@pytest.mark.parametrize("name", OTHERS)
def test_all_else_is_not(name: str) -> None:
    assert factors(OTHERS[name]) is None


def test_a_tensor_by_itself_is_found_twice() -> None:
    description = tdl.parse("def gram(a):\n    return lambda i, j: Sum(lambda k: a[i, k] * a[j, k])")
    assert contraction(description) == ("a", "a")
