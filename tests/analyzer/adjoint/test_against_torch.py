"""Values and derived gradients of descriptions against torch operators and automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tofu.analyzer.adjoint import adjoint, head_names, output_names
from tofu.analyzer.bind.analysis import analyze
from tofu.tdl import parse
from tofu.tdl.ast import Description

torch = pytest.importorskip("torch", reason="torch is not installed; it only serves as a second opinion here")
functional = torch.nn.functional
pytestmark = pytest.mark.torch

Tensors = dict[str, Any]
TOLERANCE = 1e-10


@dataclass(frozen=True)
class Case:
    """An operator as a description of tensors, and as a function of torch tensors of the same names."""

    body: str
    shapes: dict[str, tuple[int, ...]]
    operator: Callable[..., Any]


def conv(stride: int, pad: int, dilation: int, groups: int = 1) -> str:
    """The body of a one-dimensional convolution with 4 filters of 3 taps over 4 channels and 11 places."""
    places = (11 + 2 * pad - 2 * dilation - 1) // stride + 1
    channel = "c" if groups == 1 else f"f // {4 // groups} * {4 // groups} + c"
    return (
        f"lambda n=data.shape[0], f, x={places}: Sum(lambda c, dx: "
        f"pad(data[n, {channel}, {stride} * x + {dilation} * dx - {pad}], 0) * weight[f, c, dx])"
    )


def conv_case(stride: int, pad: int, dilation: int, groups: int = 1) -> Case:
    return Case(
        conv(stride, pad, dilation, groups),
        {"data": (2, 4, 11), "weight": (4, 4 // groups, 3)},
        lambda data, weight: functional.conv1d(
            data, weight, stride=stride, padding=pad, dilation=dilation, groups=groups
        ),
    )


CASES = {
    "conv1d": Case(
        "lambda n, f, x: Sum(lambda c, dx: data[n, c, x + dx] * weight[f, c, dx])",
        {"data": (2, 3, 8), "weight": (4, 3, 3)},
        lambda data, weight: functional.conv1d(data, weight),
    ),
    "conv1d, stride 2": conv_case(2, 0, 1),
    "conv1d, stride 3 and pad 2": conv_case(3, 2, 1),
    "conv1d, pad 1": conv_case(1, 1, 1),
    "conv1d, dilation 2 and pad 2": conv_case(1, 2, 2),
    "conv1d, dilation 3, stride 2 and pad 3": conv_case(2, 3, 3),
    "conv1d, 2 groups": conv_case(1, 1, 1, 2),
    "conv1d, depthwise with stride 2": conv_case(2, 1, 1, 4),
    "conv2d": Case(
        "lambda n, f, y, x: Sum(lambda c, dy, dx: data[n, c, y + dy, x + dx] * weight[f, c, dy, dx])",
        {"data": (1, 2, 5, 4), "weight": (2, 2, 3, 2)},
        lambda data, weight: functional.conv2d(data, weight),
    ),
    "conv2d, stride 2 and 1, pad 1 and 2, dilation 1 and 2, 2 groups": Case(
        "lambda n=data.shape[0], f, y=3, x=5: Sum(lambda c, dy, dx: "
        "pad(data[n, f // 1 * 2 + c, 2 * y + dy - 1, x + 2 * dx - 2], 0) * weight[f, c, dy, dx])",
        {"data": (1, 4, 5, 5), "weight": (2, 2, 3, 3)},
        lambda data, weight: functional.conv2d(
            data, weight, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2
        ),
    ),
    "conv_transpose1d, stride 2 and pad 1": Case(
        "lambda n=data.shape[0], f, x=9: Sum(lambda c=data.shape[1], dx: "
        "where((x + 1 - dx) % 2 == 0, pad(data[n, c, (x + 1 - dx) // 2], 0), 0) * weight[c, f, dx])",
        {"data": (2, 3, 5), "weight": (3, 2, 3)},
        lambda data, weight: functional.conv_transpose1d(data, weight, stride=2, padding=1),
    ),
    "max pooling": Case(
        "lambda n, c, y=data.shape[2] // 2, x=data.shape[3] // 2: "
        "Max(lambda dy=2, dx=2: data[n, c, 2 * y + dy, 2 * x + dx])",
        {"data": (2, 2, 6, 5)},
        lambda data: functional.max_pool2d(data, 2),
    ),
    "max pooling, overlapping and padded": Case(
        "lambda n=data.shape[0], c=data.shape[1], y=3, x=3: "
        "Max(lambda dy=3, dx=3: pad(data[n, c, 2 * y + dy - 1, 2 * x + dx - 1], -inf))",
        {"data": (2, 2, 6, 5)},
        lambda data: functional.max_pool2d(data, 3, stride=2, padding=1),
    ),
    "max pooling, dilated": Case(
        "lambda n, x=3: Max(lambda dx=3: data[n, x + 3 * dx])",
        {"data": (2, 9)},
        lambda data: functional.max_pool1d(data, 3, stride=1, dilation=3),
    ),
    "average pooling, padded": Case(
        "lambda n=data.shape[0], c=data.shape[1], y=3, x=3: "
        "Sum(lambda dy=3, dx=3: pad(data[n, c, 2 * y + dy - 1, 2 * x + dx - 1], 0)) / 9",
        {"data": (1, 2, 6, 5)},
        lambda data: functional.avg_pool2d(data, 3, stride=2, padding=1),
    ),
    "average pooling": Case(
        "lambda n, c, x=data.shape[2] // 3: Sum(lambda dx=3: data[n, c, 3 * x + dx]) / 3",
        {"data": (2, 2, 8)},
        lambda data: functional.avg_pool1d(data, 3),
    ),
    "matmul": Case(
        "lambda i, j: Sum(lambda k: a[i, k] * b[k, j])",
        {"a": (3, 4), "b": (4, 2)},
        lambda a, b: a @ b,
    ),
    "batched matmul, transposed": Case(
        "lambda n, i, j: Sum(lambda k: a[n, k, i] * b[n, j, k])",
        {"a": (2, 4, 3), "b": (2, 2, 4)},
        lambda a, b: a.transpose(1, 2) @ b.transpose(1, 2),
    ),
    "softmax": Case(
        "lambda i, j: exp(a[i, j] - Max(lambda k: a[i, k]))"
        " / Sum(lambda k: exp(a[i, k] - Max(lambda m: a[i, m])))",
        {"a": (3, 5)},
        lambda a: functional.softmax(a, dim=1),
    ),
    "logarithm of softmax": Case(
        "lambda i, j: a[i, j] - log(Sum(lambda k: exp(a[i, k])))",
        {"a": (3, 5)},
        lambda a: functional.log_softmax(a, dim=1),
    ),
    "layer norm": Case(
        "lambda i, j: (a[i, j] - Sum(lambda k: a[i, k]) / a.shape[1]) * gain[j] * rsqrt(0.01 + Sum(lambda m: "
        "(a[i, m] - Sum(lambda n: a[i, n]) / a.shape[1]) ** 2) / a.shape[1]) + shift[j]",
        {"a": (3, 4), "gain": (4,), "shift": (4,)},
        lambda a, gain, shift: functional.layer_norm(a, (4,), gain, shift, eps=0.01),
    ),
    "norm": Case(
        "lambda i: sqrt(Sum(lambda j: a[i, j] * a[i, j]))",
        {"a": (3, 4)},
        lambda a: torch.linalg.vector_norm(a, dim=1),
    ),
    "product": Case("lambda i: Prod(lambda j: a[i, j])", {"a": (3, 4)}, lambda a: a.prod(dim=1)),
    "running sum": Case(
        "lambda i=a.shape[0]: Sum(lambda k=a.shape[0]: pad(a[i - k], 0))",
        {"a": (6,)},
        lambda a: a.cumsum(0),
    ),
    "nearest upsampling": Case(
        "lambda n, x=3 * a.shape[1]: a[n, x // 3]",
        {"a": (2, 4)},
        lambda a: functional.interpolate(a[None], scale_factor=3)[0],
    ),
    "pixel shuffle": Case(
        "lambda n, c=2, y=6, x=4: a[n, c * 4 + y % 2 * 2 + x % 2, y // 2, x // 2]",
        {"a": (1, 8, 3, 2)},
        lambda a: functional.pixel_shuffle(a, 2),
    ),
    "reversal": Case(
        "lambda i, j: a[a.shape[0] - 1 - i, j]",
        {"a": (4, 3)},
        lambda a: a.flip(0),
    ),
    "negative divisor": Case(
        "lambda i=6: where(i % 2 == 1, pad(a[(i - 5) // -2], 0), 0)",
        {"a": (3,)},
        lambda a: torch.stack([torch.zeros(3, dtype=a.dtype), a.flip(0)], 1).flatten(),
    ),
    "negative remainder": Case(
        "lambda i=6: a[2 + i % -3]",
        {"a": (3,)},
        lambda a: a[[2, 0, 1, 2, 0, 1]],
    ),
    "constant padding": Case(
        "lambda i=a.shape[0] + 5: pad(a[i - 2], 1.5)",
        {"a": (4,)},
        lambda a: functional.pad(a, (2, 3), value=1.5),
    ),
}


def evaluate(description: Description, tensors: Tensors) -> Any:
    taken = {name: tensors[name] for name in description.tensor_names}
    bound = analyze(description).bind({name: array.shape for name, array in taken.items()})
    (output,) = bound.interpret(taken)
    return output


def check(case: Case, tensors: Tensors, differentiated: tuple[str, ...]) -> None:
    """The value and the gradients, with a random head gradient, of one operator."""
    description = parse(f"def operator({', '.join(case.shapes)}):\n    return {case.body}")
    given = {name: torch.tensor(array) for name, array in tensors.items()}
    for name in differentiated:
        given[name].requires_grad_()
    expected = case.operator(**given)
    value = evaluate(description, tensors)
    np.testing.assert_allclose(value, expected.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)
    head = np.random.default_rng(1).normal(size=value.shape)
    expected.backward(torch.tensor(head))
    known = {**tensors, head_names(description)[0]: head, output_names(description)[0]: value}
    for name in differentiated:
        total = np.zeros_like(tensors[name])
        for part in adjoint(description, name):
            total += evaluate(part, known)
        np.testing.assert_allclose(total, given[name].grad.numpy(), TOLERANCE, TOLERANCE, err_msg=name)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    case = CASES[name]
    random = np.random.default_rng(0)
    tensors = {tensor: random.normal(size=shape) for tensor, shape in case.shapes.items()}
    check(case, tensors, tuple(case.shapes))


def test_embedding() -> None:
    case = Case(
        "lambda b, t, j: weight[data[b, t], j]",
        {"data": (2, 3), "weight": (7, 4)},
        lambda data, weight: functional.embedding(data, weight),
    )
    random = np.random.default_rng(0)
    rows = np.array([[4, 0, 4], [6, 4, 1]])
    check(case, {"data": rows, "weight": random.normal(size=(7, 4))}, ("weight",))


def test_one_hot_embedding_sums_over_the_table() -> None:
    case = Case(
        "lambda b, j: Sum(lambda i: where(data[b] == i, weight[i, j], 0))",
        {"data": (4,), "weight": (5, 3)},
        lambda data, weight: functional.embedding(data, weight),
    )
    random = np.random.default_rng(0)
    check(case, {"data": np.array([1, 0, 1, 4]), "weight": random.normal(size=(5, 3))}, ("weight",))
