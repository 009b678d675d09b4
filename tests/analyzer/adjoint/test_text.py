"""The text of adjoints: names, order of parameters, guards, and how many descriptions there are."""

from __future__ import annotations

import pytest

from tofu.analyzer.adjoint import adjoint, head_names, output_names
from tofu.errors import OperatorError, TofuError
from tofu.tdl import format, parse

MATMUL = "def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"
CONV1D = (
    "def conv1d(data, filters):\n"
    "    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])"
)
STRIDED = (
    "def strided(data, filters):\n"
    "    return lambda b=data.shape[0], co, x=(data.shape[2] - 1) // 2 + 1:"
    " Sum(lambda ci=data.shape[1], dx: pad(data[b, ci, 2 * x + dx - 1], 0) * filters[ci, co, dx])"
)
MAX_POOLING = (
    "def pooling(data):\n"
    "    return lambda b, y=(data.shape[1] - 3) // 2 + 1: Max(lambda dy=3: data[b, 2 * y + dy])"
)
ROTATED = "def rotated(x):\n    return lambda t, d=x.shape[1]: x[t, (d + x.shape[1] // 2) % x.shape[1]]"
INTERLEAVED = "def interleaved(x):\n    return lambda t, d=x.shape[1]: x[t, d // 2 * 2 + 1 - d % 2]"
GROUPED = (
    "def grouped(data, w):\n    return lambda n, f, x:"
    " Sum(lambda c=3, d: data[n, f // 2 * 3 + c, x + d] * w[f, c, d])"
)
HEADS = "def heads(x):\n    return lambda t, h=4, d=x.shape[1] // 4: x[t, h * (x.shape[1] // 4) + d]"
SHUFFLED = "def shuffled(x):\n    return lambda c=x.shape[0]: x[c % 2 * (x.shape[0] // 2) + c // 2]"
SOFTMAX = "def softmax(x):\n    return lambda i, j: exp(x[i, j]) / Sum(lambda k: exp(x[i, k]))"

GOLDEN = {
    (MATMUL, "a"): [
        "def matmul_grad_a(grad_0, a, b):",
        "    return lambda i=a.shape[0], k=a.shape[1]: Sum(lambda j: grad_0[i, j] * b[k, j])",
    ],
    (MATMUL, "b"): [
        "def matmul_grad_b(grad_0, a, b):",
        "    return lambda k=b.shape[0], j=b.shape[1]: Sum(lambda i: grad_0[i, j] * a[i, k])",
    ],
    (CONV1D, "data"): [
        "def conv1d_grad_data(grad_0, data, filters):",
        "    return lambda b=data.shape[0], ci=data.shape[1], x=data.shape[2]:"
        " Sum(lambda co, dx: pad(grad_0[b, co, x - dx], 0) * filters[ci, co, dx])",
    ],
    (CONV1D, "filters"): [
        "def conv1d_grad_filters(grad_0, data, filters):",
        "    return lambda ci=filters.shape[0], co=filters.shape[1], dx=filters.shape[2]:"
        " Sum(lambda b, x: grad_0[b, co, x] * data[b, ci, x + dx])",
    ],
    (STRIDED, "data"): [
        "def strided_grad_data(grad_0, data, filters):",
        "    return lambda b=data.shape[0], ci=data.shape[1], x=data.shape[2]: Sum(lambda co, dx:"
        " where((x - dx + 1) % 2 == 0, pad(grad_0[b, co, (x - dx + 1) // 2], 0), 0) * filters[ci, co, dx])",
    ],
    (STRIDED, "filters"): [
        "def strided_grad_filters(grad_0, data, filters):",
        "    return lambda ci=filters.shape[0], co=filters.shape[1], dx=filters.shape[2]:"
        " Sum(lambda b, x: grad_0[b, co, x] * pad(data[b, ci, 2 * x + dx - 1], 0))",
    ],
    (ROTATED, "x"): [
        "def rotated_grad_x(grad_0, x):",
        "    return lambda t=x.shape[0], d=x.shape[1]: grad_0[t, (d - x.shape[1] // 2) % x.shape[1]]",
    ],
    (INTERLEAVED, "x"): [
        "def interleaved_grad_x(grad_0, x):",
        "    return lambda t=x.shape[0], d=x.shape[1]: pad(grad_0[t, 2 * (d // 2) - d % 2 + 1], 0)",
    ],
    (GROUPED, "data"): [
        "def grouped_grad_data(grad_0, data, w):",
        "    return lambda n=data.shape[0], c=data.shape[1], x=data.shape[2]: Sum(lambda d=w.shape[2], r=2:"
        " pad(grad_0[n, 2 * (c // 3) + r, x - d], 0) * pad(w[2 * (c // 3) + r, c % 3, d], 0))",
    ],
    (HEADS, "x"): [
        "def heads_grad_x(grad_0, x):",
        "    return lambda t=x.shape[0], h=x.shape[1]:"
        " pad(grad_0[t, h // maximum(x.shape[1] // 4, 1), h % maximum(x.shape[1] // 4, 1)], 0)",
    ],
    (SHUFFLED, "x"): [
        "def shuffled_grad_x(grad_0, x):",
        "    return lambda i=x.shape[0]:"
        " Sum(lambda q=2: pad(grad_0[2 * i - 2 * q * (x.shape[0] // 2) + q], 0))",
    ],
    (MAX_POOLING, "data"): [
        "def pooling_grad_data(grad_0, output_0, data):",
        "    return lambda b=data.shape[0], y=data.shape[1]: Sum(lambda dy=3:"
        " where((y - dy) % 2 == 0 and data[b, y] == pad(output_0[b, (y - dy) // 2], 0),"
        " pad(grad_0[b, (y - dy) // 2], 0), 0))",
    ],
    (
        "def pool(data):\n    return lambda y=data.shape[0] // 2: Sum(lambda dy=2: data[2 * y + dy]) / 2",
        "data",
    ): [
        "def pool_grad_data(grad_0, data):",
        "    return lambda y=data.shape[0]: pad(grad_0[y // 2], 0) / 2",
    ],
    (SOFTMAX, "x"): [
        "def softmax_grad_x(grad_0, x):",
        "    return lambda i=x.shape[0], j=x.shape[1]:"
        " grad_0[i, j] * exp(x[i, j]) / Sum(lambda k: exp(x[i, k]))",
        "def softmax_grad_x_2(grad_0, x):",
        "    return lambda i=x.shape[0], k=x.shape[1]:"
        " Sum(lambda j: -grad_0[i, j] * exp(x[i, j]) * exp(x[i, k]) / Sum(lambda k2: exp(x[i, k2])) ** 2)",
    ],
    ("def add(a, b):\n    return lambda i, j: a[i, j] + b[j]", "a"): [
        "def add_grad_a(grad_0, a):",
        "    return lambda i=a.shape[0], j=a.shape[1]: grad_0[i, j]",
    ],
    ("def add(a, b):\n    return lambda i, j: a[i, j] + b[j]", "b"): [
        "def add_grad_b(grad_0, b):",
        "    return lambda j=b.shape[0]: Sum(lambda i: grad_0[i, j])",
    ],
    ("def mean(x):\n    return lambda i: Sum(lambda j: x[i, j]) / x.shape[1]", "x"): [
        "def mean_grad_x(grad_0, x):",
        "    return lambda i=x.shape[0], j=x.shape[1]: grad_0[i] / x.shape[1]",
    ],
    ("def squashed(x):\n    return lambda i: tanh(x[i])", "x"): [
        "def squashed_grad_x(grad_0, output_0, x):",
        "    return lambda i=x.shape[0]: grad_0[i] * (1 - output_0[i] * output_0[i])",
    ],
    ("def rectified(x):\n    return lambda i: relu(x[i])", "x"): [
        "def rectified_grad_x(grad_0, x):",
        "    return lambda i=x.shape[0]: where(x[i] > 0, grad_0[i], 0)",
    ],
    ("def square(x):\n    return lambda i: x[i] * x[i]", "x"): [
        "def square_grad_x(grad_0, x):",
        "    return lambda i=x.shape[0]: 2 * grad_0[i] * x[i]",
    ],
    ("def repeated(t):\n    return lambda x=12: t[x % 3]", "t"): [
        "def repeated_grad_t(grad_0, t):",
        "    return lambda x=t.shape[0]: Sum(lambda t2=4: where(x < 3, pad(grad_0[3 * t2 + x], 0), 0))",
    ],
    ("def parabola(t, u):\n    return lambda i: (u[i] - t[i]) * t[i] / 2", "t"): [
        "def parabola_grad_t(grad_0, t, u):",
        "    return lambda i=t.shape[0]: grad_0[i] * (u[i] - 2 * t[i]) / 2",
    ],
    ("def others(t, u):\n    return lambda i: where(u[i] > 0, 0, t[i]) / -u[i]", "t"): [
        "def others_grad_t(grad_0, t, u):",
        "    return lambda i=t.shape[0]: where(u[i] <= 0, -grad_0[i] / u[i], 0)",
    ],
    ("def product(t):\n    return lambda i: Prod(lambda j: t[i, j])", "t"): [
        "def product_grad_t(grad_0, t):",
        "    return lambda i=t.shape[0], j=t.shape[1]:"
        " grad_0[i] * Prod(lambda j2: where(j2 != j, t[i, j2], 1))",
    ],
    ("def diagonal(a):\n    return lambda i: a[i, i]", "a"): [
        "def diagonal_grad_a(grad_0, a):",
        "    return lambda i=a.shape[0], j=a.shape[1]: where(i == j, grad_0[i], 0)",
    ],
    ("def embedding(data, weight):\n    return lambda b, j: weight[data[b], j]", "weight"): [
        "def embedding_grad_weight(grad_0, data, weight):",
        "    return lambda i=weight.shape[0], j=weight.shape[1]:"
        " Sum(lambda b: where(data[b] == i, grad_0[b, j], 0))",
    ],
    ("def upsampling(t):\n    return lambda x=2 * t.shape[0]: t[x // 2]", "t"): [
        "def upsampling_grad_t(grad_0, t):",
        "    return lambda x=t.shape[0]: Sum(lambda r=2: grad_0[2 * x + r])",
    ],
    ("def reversed(t):\n    return lambda x=t.shape[0]: t[t.shape[0] - 1 - x]", "t"): [
        "def reversed_grad_t(grad_0, t):",
        "    return lambda x=t.shape[0]: grad_0[t.shape[0] - x - 1]",
    ],
    ("def halves(t):\n    return (lambda i=3: t[i], lambda i=3: t[i + 3])", "t"): [
        "def halves_grad_t(grad_0, grad_1, t):",
        "    return lambda i=t.shape[0]: pad(grad_0[i], 0) + pad(grad_1[i - 3], 0)",
    ],
    (
        "def joined(a, b):\n"
        "    return lambda i=a.shape[0] + b.shape[0]: pad(a[i], 0) + pad(b[i - a.shape[0]], 0)",
        "b",
    ): [
        "def joined_grad_b(grad_0, a, b):",
        "    return lambda i=b.shape[0]: grad_0[i + a.shape[0]]",
    ],
    (
        "def flatten(t):\n"
        "    return lambda n, f=t.shape[1] * t.shape[2]: t[n, f // t.shape[2], f % t.shape[2]]",
        "t",
    ): [
        "def flatten_grad_t(grad_0, t):",
        "    return lambda n=t.shape[0], f=t.shape[1], i=t.shape[2]: grad_0[n, f * t.shape[2] + i]",
    ],
    ("def unflatten(t):\n    return lambda y=4, x=3: t[3 * y + x]", "t"): [
        "def unflatten_grad_t(grad_0, t):",
        "    return lambda y=t.shape[0]: pad(grad_0[y // 3, y % 3], 0)",
    ],
}


@pytest.mark.parametrize(("text", "tensor"), GOLDEN)
def test_texts(text: str, tensor: str) -> None:
    parts = adjoint(parse(text), tensor)
    printed = "".join(format(part) for part in parts)
    assert printed.splitlines() == GOLDEN[text, tensor]
    assert all(parse(format(part)) == part for part in parts)


@pytest.mark.parametrize(
    "text",
    [
        "def classes(t, u):\n    return lambda i, j: where(t[i] > 0, u[i, j], 0)",
        "def rounded(t, u):\n    return lambda i: floor(t[i]) * u[i] + sign(t[i])",
        "def gathered(t, u):\n    return lambda i: u[t[i]]",
        "def shape_only(t, u):\n    return lambda i=t.shape[0]: u[i]",
        "def no_effect(t, u):\n    return lambda i: (t[i] - t[i]) * u[i]",
    ],
)
def test_a_zero_gradient_has_no_descriptions(text: str) -> None:
    assert adjoint(parse(text), "t") == ()


def test_new_names_avoid_tensors() -> None:
    (part,) = adjoint(parse("def repeated(r, t):\n    return lambda x=2 * t.shape[0]: t[x // 2] * r[x]"), "t")
    assert format(part).splitlines()[1] == (
        "    return lambda x=t.shape[0]: Sum(lambda r2=2: grad_0[2 * x + r2] * r[2 * x + r2])"
    )


def test_an_adjoint_has_adjoints_with_other_heads() -> None:
    (first,) = adjoint(parse(MATMUL), "a")
    assert head_names(first) == ("grad_grad_0",)
    assert output_names(first) == ("output_0",)
    (second,) = adjoint(first, "b")
    assert second.tensor_names == ("grad_grad_0", "grad_0", "b")
    assert second.name == "matmul_grad_a_grad_b"


def test_opaque_functions_have_no_adjoint() -> None:
    text = "def inverse(t):\n    f = Opaque()\n    return lambda b, i, j: f(t[b, :, :])[i, j]"
    with pytest.raises(
        OperatorError, match=r"inverse has no derived gradient\n(.*\n)*.*f\(t\[b, :, :\]\)"
    ) as told:
        adjoint(parse(text), "t")
    assert "or apply the operator to data" in str(told.value)


@pytest.mark.parametrize(
    "body", ["digamma(t[i])", "exp(2 * digamma(t[i]))", "Sum(lambda k=1: digamma(t[i]))"]
)
def test_a_function_without_derivative_is_named(body: str) -> None:
    text = f"def operator(t):\n    return lambda i: {body}"
    with pytest.raises(OperatorError, match=r"(?s)^operator has no .* derivative of digamma\n.*\^{13}\n"):
        adjoint(parse(text), "t")


def test_an_unknown_tensor_is_named_with_those_there_are() -> None:
    with pytest.raises(OperatorError, match=r"matmul has no tensor 'c' .* it has a, b"):
        adjoint(parse(MATMUL), "c")


@pytest.mark.parametrize(
    "text",
    [
        "def twice(t):\n    once = lambda i: 2 * t[i]\n    return lambda i: 2 * once[i]",
        "def scaled(t, *, scale):\n    return lambda i: scale * t[i]",
        "def doubled(t):\n    return lambda *i: 2 * t[*i]",
    ],
)
def test_only_specialised_descriptions_are_differentiated(text: str) -> None:
    with pytest.raises(OperatorError, match="specialise it"):
        adjoint(parse(text), "t")


def test_a_gradient_too_deep_to_be_a_description_is_refused() -> None:
    nested = "t[i]"
    for _ in range(35):
        nested = f"tanh(1 + 2 * {nested})"
    text = f"def deep(t):\n    return lambda i: {nested}"
    with pytest.raises(OperatorError, match="deep_grad_t cannot be derived"):
        adjoint(parse(text), "t")


def test_a_sum_of_too_many_terms_is_refused() -> None:
    terms = [f"t[i + {shift}]" for shift in range(360)]
    while len(terms) > 1:  # balanced, so that only the gradient's sum is deep
        terms = [f"({' + '.join(terms[first : first + 4])})" for first in range(0, len(terms), 4)]
    with pytest.raises(OperatorError, match="wide_grad_t cannot be derived: it is nested more than 128"):
        adjoint(parse(f"def wide(t):\n    return lambda i=5: {terms[0]}"), "t")


def test_an_output_variable_that_may_stop_short_keeps_its_extent() -> None:
    (part,) = adjoint(
        parse("def dense(a, w):\n    return lambda n, h=3: Sum(lambda k: a[n, k] * w[h, k])"), "a"
    )
    assert format(part).splitlines()[1] == (
        "    return lambda n=a.shape[0], k=a.shape[1]: Sum(lambda h=grad_0.shape[1]: grad_0[n, h] * w[h, k])"
    )


def test_an_extent_that_does_not_follow_is_named() -> None:
    text = "def operator(t, u):\n    return lambda i: u[i] * Sum(lambda k: pad(t[i + k], 0))"
    with pytest.raises(TofuError, match=r"extent of k"):
        adjoint(parse(text), "t")
