"""Adjoints against finite differences of the interpreter, on operators of every kind and on random ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tofu.analyzer.adjoint import adjoint, head_names, output_names
from tofu.analyzer.bind.analysis import analyze
from tofu.tdl import format, parse
from tofu.tdl.ast import Description
from tofu.tdl.functions import FUNCTIONS

Array = npt.NDArray[np.float64]
Tensors = dict[str, Array]
Shapes = dict[str, tuple[int, ...]]

STEP = 1e-5
TOLERANCE = 2e-6


def evaluate(description: Description, tensors: Mapping[str, Array]) -> tuple[Array, ...]:
    """All outputs, by the interpreter."""
    taken = {name: tensors[name] for name in description.tensor_names}
    shapes = {name: tensor.shape for name, tensor in taken.items()}
    return analyze(description).bind(shapes).interpret(taken)


def derived_gradient(description: Description, tensor: str, tensors: Tensors, heads: Tensors) -> Array:
    """The sum of the adjoints' results."""
    outputs = dict(zip(output_names(description), evaluate(description, tensors), strict=True))
    known = {**tensors, **heads, **outputs}
    total = np.zeros_like(tensors[tensor])
    for part in adjoint(description, tensor):
        (result,) = evaluate(part, known)
        assert result.shape == total.shape
        total += result
    return total


def measured_gradient(description: Description, tensor: str, tensors: Tensors, heads: Tensors) -> Array:
    """Central differences of the outputs weighted by their head gradients."""

    def loss(value: Array) -> float:
        outputs = evaluate(description, {**tensors, tensor: value})
        return sum(float((head * output).sum()) for head, output in zip(heads.values(), outputs, strict=True))

    result = np.zeros_like(tensors[tensor])
    for place in np.ndindex(result.shape):
        shift = np.zeros_like(result)
        shift[place] = STEP
        result[place] = (loss(tensors[tensor] + shift) - loss(tensors[tensor] - shift)) / (2 * STEP)
    return result


def check(description: Description, tensors: Tensors, names: tuple[str, ...] = ()) -> None:
    """Compare all gradients (or those of `names`)."""
    random = np.random.default_rng(1)
    outputs = evaluate(description, tensors)
    heads = {
        name: random.uniform(-1, 1, output.shape)
        for name, output in zip(head_names(description), outputs, strict=True)
    }
    for name in names or description.tensor_names:
        for part in adjoint(description, name):
            assert parse(format(part)) == part
        measured = measured_gradient(description, name, tensors, heads)
        derived = derived_gradient(description, name, tensors, heads)
        np.testing.assert_allclose(derived, measured, rtol=TOLERANCE, atol=TOLERANCE)


def data(shapes: Shapes) -> Tensors:
    """Values in [0.3, 1.7)."""
    random = np.random.default_rng(0)
    return {name: random.uniform(0.3, 1.7, shape) for name, shape in shapes.items()}


CASES: dict[str, tuple[str, Shapes]] = {
    "remainder by a computed divisor": ("lambda i: a[i] % (b[i] * b[i] + 3)", {"a": (5,), "b": (5,)}),
    "matmul": ("lambda i, j: Sum(lambda k: a[i, k] * b[k, j])", {"a": (3, 4), "b": (4, 2)}),
    "conv1d": (
        "lambda n, f, x: Sum(lambda c, dx: a[n, c, x + dx] * w[c, f, dx])",
        {"a": (2, 2, 6), "w": (2, 3, 3)},
    ),
    "strided, padded conv2d": (
        "lambda n=a.shape[0], f, y=(a.shape[2] - 1) // 2 + 1, x=(a.shape[3] - 1) // 2 + 1:"
        " Sum(lambda c=a.shape[1], dy, dx:"
        " pad(a[n, c, 2 * y + dy - 1, 2 * x + dx - 1], 0) * w[f, c, dy, dx])",
        {"a": (2, 2, 5, 4), "w": (2, 2, 3, 3)},
    ),
    "dilated conv1d that stops short of the end": (
        "lambda n, f, x=2: Sum(lambda c, dx: a[n, c, 3 * x + 2 * dx] * w[f, c, dx])",
        {"a": (1, 2, 9), "w": (2, 2, 2)},
    ),
    "grouped conv1d": (
        "lambda n, f=4, x: Sum(lambda c, dx: a[n, f // 2 * 2 + c, x + dx] * w[f, c, dx])",
        {"a": (2, 4, 5), "w": (4, 2, 2)},
    ),
    "transposed conv1d": (
        "lambda n=a.shape[0], f, x=2 * a.shape[2]: Sum(lambda c=a.shape[1], dx: "
        "where((x - dx) % 2 == 0, pad(a[n, c, (x - dx) // 2], 0), 0) * w[c, f, dx])",
        {"a": (1, 2, 3), "w": (2, 2, 3)},
    ),
    "max pooling, overlapping and padded": (
        "lambda n=a.shape[0], y=(a.shape[1] - 1) // 2 + 1, x=(a.shape[2] - 1) // 2 + 1:"
        " Max(lambda dy=3, dx=3: pad(a[n, 2 * y + dy - 1, 2 * x + dx - 1], -inf))",
        {"a": (2, 5, 4)},
    ),
    "max pooling without overlap": (
        "lambda n, y=a.shape[1] // 2: Max(lambda dy=2: a[n, 2 * y + dy])",
        {"a": (2, 5)},
    ),
    "average pooling": (
        "lambda n, y=a.shape[1] - 2: Sum(lambda dy=3: a[n, y + dy]) / 3",
        {"a": (2, 6)},
    ),
    "min pooling scaled": ("lambda n: 3 * Min(lambda k: a[n, k] * b[k])", {"a": (3, 4), "b": (4,)}),
    "broadcast": ("lambda i, j: a[i, j] * b[j] + b[j] / c[i]", {"a": (2, 3), "b": (3,), "c": (2,)}),
    "one element for all": ("lambda i, j: a[i, j] * s[0]", {"a": (2, 3), "s": (1,)}),
    "kept dimension": ("lambda i, z=1: Sum(lambda j: a[i, j])", {"a": (2, 3)}),
    "sum to one number": ("lambda z=1: Sum(lambda i, j: a[i, j] ** 2)", {"a": (2, 3)}),
    "mean": ("lambda i: Sum(lambda j: a[i, j]) / a.shape[1]", {"a": (2, 3)}),
    "variance": (
        "lambda i: Sum(lambda j: (a[i, j] - Sum(lambda k: a[i, k]) / a.shape[1]) ** 2) / a.shape[1]",
        {"a": (2, 4)},
    ),
    "root of a sum": ("lambda i: sqrt(Sum(lambda j: a[i, j] * a[i, j]))", {"a": (2, 3)}),
    "product": ("lambda i: Prod(lambda j: a[i, j])", {"a": (2, 3)}),
    "product over two variables": ("lambda i: Prod(lambda j, k: a[i, j] + b[k])", {"a": (2, 3), "b": (2,)}),
    "softmax": ("lambda i, j: exp(a[i, j]) / Sum(lambda k: exp(a[i, k]))", {"a": (2, 3)}),
    "softmax kept in range": (
        "lambda i, j: exp(a[i, j] - Max(lambda k: a[i, k]))"
        " / Sum(lambda k: exp(a[i, k] - Max(lambda m: a[i, m])))",
        {"a": (2, 3)},
    ),
    "logarithm of softmax": ("lambda i, j: a[i, j] - log(Sum(lambda k: exp(a[i, k])))", {"a": (2, 3)}),
    "one name for two reductions": (
        "lambda i: Sum(lambda k: a[i, k]) * Sum(lambda k: b[i, k] * a[i, k])",
        {"a": (2, 3), "b": (2, 3)},
    ),
    "diagonal": ("lambda i: a[i, i] * b[i]", {"a": (3, 3), "b": (3,)}),
    "trace": ("lambda z=1: Sum(lambda i: a[i, i])", {"a": (3, 3)}),
    "outer sum index": ("lambda i, j=2: a[i + j] * b[j]", {"a": (4,), "b": (2,)}),
    "gram": ("lambda i, j: Sum(lambda k: a[i, k] * a[j, k])", {"a": (3, 2)}),
    "first element": ("lambda i: a[0] * b[i]", {"a": (3,), "b": (2,)}),
    "reversed": ("lambda i=a.shape[0]: a[a.shape[0] - 1 - i]", {"a": (4,)}),
    "replicated border": (
        "lambda i=a.shape[0] + 4, j: a[minimum(maximum(i - 2, 0), a.shape[0] - 1), j] * b[i]",
        {"a": (3, 2), "b": (7,)},
    ),
    "replicated border of a window": (
        "lambda i=a.shape[0]: Sum(lambda d: a[minimum(maximum(i + d - 1, 0), a.shape[0] - 1)] ** 2 * b[d])",
        {"a": (4,), "b": (3,)},
    ),
    "reflected borders": (
        "lambda i=a.shape[0] + 4, j=a.shape[1] + 2:"
        " b[i] * a[a.shape[0] - 1 - abs(a.shape[0] - 1 - abs(i - 2)), "
        "a.shape[1] - 1 - abs(a.shape[1] - 1 - abs(j - 1))]",
        {"a": (3, 4), "b": (7,)},
    ),
    "neighbours of a resized row": (
        "lambda i=2 * a.shape[0]:"
        " a[i // 2] * (1 - i % 2 / 2) + a[minimum(i // 2 + 1, a.shape[0] - 1)] * (i % 2) / 2",
        {"a": (5,)},
    ),
    "differences to what comes before": ("lambda i: a[i] - a[maximum(i - 1, 0)] ** 2", {"a": (5,)}),
    "too many pieces": (
        "lambda i=5, j=5: a[abs(3 - abs(3 - abs(i - 2))), abs(3 - abs(3 - abs(j - 2)))] * b[j]",
        {"a": (4, 4), "b": (5,)},
    ),
    "transposed": ("lambda j, i: a[i, j] ** 3", {"a": (2, 3)}),
    "upsampling": ("lambda i, x=2 * a.shape[1]: a[i, x // 2] * b[x]", {"a": (2, 3), "b": (6,)}),
    "repeated": ("lambda x=3 * a.shape[0]: a[x % a.shape[0]] * b[x]", {"a": (2,), "b": (6,)}),
    "flattened": (
        "lambda n, f=a.shape[1] * a.shape[2] * a.shape[3]:"
        " a[n, f // (a.shape[2] * a.shape[3]), f // a.shape[3] % a.shape[2], f % a.shape[3]] ** 2",
        {"a": (2, 2, 3, 2)},
    ),
    "unflattened": ("lambda y=2, x=3: a[3 * y + x] ** 2", {"a": (6,)}),
    "cut, with an index that is simplified": (
        "lambda i=2, j=3: Sum(lambda m: a[i + 1 - 1, j + a.shape[1] - a.shape[1]] * b[m])",
        {"a": (4, 5), "b": (3,)},
    ),
    "every third": ("lambda x=a.shape[0] // 3: a[3 * x + 1]", {"a": (7,)}),
    "two slices": (
        "(lambda i=2: a[i], lambda j=a.shape[0] - 2: a[j + 2] ** 2)",
        {"a": (5,)},
    ),
    "joined": (
        "lambda i=a.shape[0] + b.shape[0]: pad(a[i], 0) + pad(b[i - a.shape[0]], 0)",
        {"a": (2,), "b": (3,)},
    ),
    "quotient of shifted accesses": (
        "lambda x=a.shape[0] - 1: a[x + 1] / b[x] + log(a[x])",
        {"a": (4,), "b": (5,)},
    ),
    "padding that is itself read": ("lambda i=4: pad(a[i], b[0])", {"a": (2,), "b": (1,)}),
    "sum over an index with what others leave": ("lambda i=3: Sum(lambda d: a[i + d])", {"a": (5,)}),
    "sum over an index with what two others leave": (
        "lambda i=3: Sum(lambda d: a[i + d] * b[i + 2 * d])",
        {"a": (5,), "b": (8,)},
    ),
    "sums that leave something for each other": (
        "lambda i=2: Sum(lambda d: a[i + d] * Sum(lambda e: b[d + e]))",
        {"a": (4,), "b": (4,)},
    ),
    "power of two tensors": ("lambda i: a[i] ** b[i] + power(a[i], 3)", {"a": (3,), "b": (3,)}),
    "gelu": ("lambda i: 0.5 * a[i] * (1 + tanh(0.8 * (a[i] + 0.04 * a[i] ** 3)))", {"a": (4,)}),
    "logarithm next to a window": (
        "lambda i: Sum(lambda k=3: a[i + k] * log(b[i]))",
        {"a": (6,), "b": (4,)},
    ),
    "power next to a window": ("lambda i: Sum(lambda k=3: a[i + k] * b[i] ** -0.5)", {"a": (6,), "b": (4,)}),
    "quotient next to a window": ("lambda i: Sum(lambda k=3: a[i + k] / b[i])", {"a": (6,), "b": (4,)}),
    "root next to a window": (
        "lambda i: Sum(lambda k=3: a[2 * i + k] * rsqrt(b[i]))",
        {"a": (9,), "b": (4,)},
    ),
    "remainders": ("lambda i: a[i] % b[i] + (a[i] + b[i]) % 7 - a[i] // b[i]", {"a": (5,), "b": (5,)}),
    "conditions": (
        "lambda i: where(not (a[i] > 1 and b[i] < 1) or i == 0, a[i] * b[i], a[i] ** 2 / -b[i])",
        {"a": (5,), "b": (5,)},
    ),
    "padding that depends on elements": (
        "lambda i=a.shape[0] + 3: pad(a[i - 1], b[0] * 2) * pad(a[i - 1], b[0] * 2)",
        {"a": (3,), "b": (1,)},
    ),
    "choices": (
        "lambda i: where(a[i] > b[i], a[i] * b[i], maximum(a[i], 0.5) - minimum(b[i], 1)) + abs(a[i] - 1)",
        {"a": (5,), "b": (5,)},
    ),
    "index as a value": ("lambda i: a[i] * i + Sum(lambda k: a[k] * (k - i))", {"a": (4,)}),
}

CUSTOM = {
    "log-sum-exp": ("log(exp(p) + exp(q)), -inf", "lambda b: Fold(lambda k: x[b, k])"),
    "probability of any": ("p + q - p * q, 0", "lambda b: y[b + 1] * Fold(lambda k: x[b, k] * y[k + 1])"),
    "norm inside an expression": (
        "hypot(p, q), 0",
        "lambda b, i: x[b, i] / Fold(lambda k: x[b, k] + y[b + 2])",
    ),
    "nested, over several variables": (
        "log1p(expm1(p) + expm1(q)), 0",
        "lambda q: Fold(lambda p=2: Fold(lambda k, m=2: x[q, k + p] * y[m] + Sum(lambda n: y[n])))",
    ),
    "smooth maximum": ("maximum(p, q), -inf", "lambda b: Fold(lambda k: x[b, k] * y[0])"),
}

UNARY = [
    name for name, function in FUNCTIONS.items() if function.arity == 1 and function.derivatives != ("",)
]
DEFINED_BELOW_ONE = {"arcsin", "arccos", "arctanh", "tan"}
DEFINED_ABOVE_ONE = {"arccosh"}


@pytest.mark.parametrize("name", CUSTOM)
def test_gradients_through_custom_reducers(name: str) -> None:
    reducer, body = CUSTOM[name]
    shapes: Shapes = {"x": (3, 4), "y": (5,)} if "y[" in body else {"x": (3, 4)}
    header = f"def operator({', '.join(shapes)}):\n    Fold = Reducer(lambda p, q: {reducer})\n"
    check(parse(f"{header}    return {body}"), data(shapes))


def test_equal_terms_of_a_custom_reducer() -> None:
    """The combination of two equal values is as steep in one as in the other, however it is written."""
    description = parse(
        "def operator(x):\n"
        "    Fold = Reducer(lambda p, q: maximum(p, q) + log1p(exp(-abs(p - q))), -inf)\n"
        "    return lambda b: Fold(lambda k: x[b, k])"
    )
    for terms in (2, 3, 4):
        check(description, {"x": np.array([[0.0] * terms, [1.5] * terms])})


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    text, shapes = CASES[name]
    description = parse(f"def operator({', '.join(shapes)}):\n    return {text}")
    check(description, data(shapes))


@pytest.mark.parametrize("function", UNARY)
def test_scalar_functions_whole_and_inside(function: str) -> None:
    whole = parse(f"def operator(a):\n    return lambda i: {function}(a[i])")
    inside = parse(f"def operator(a):\n    return lambda i: a[i] * {function}(1 / a[i])")
    values = np.array([0.37, 0.81, 1.23, 1.61])
    if function not in DEFINED_BELOW_ONE | DEFINED_ABOVE_ONE:
        check(whole, {"a": values})
        check(inside, {"a": values})
    else:
        check(whole, {"a": values / 2 if function in DEFINED_BELOW_ONE else values + 1})
        check(inside, {"a": values + 1 if function in DEFINED_BELOW_ONE else values / 2})


@pytest.mark.parametrize("function", ["maximum", "minimum", "arctan2", "hypot", "power"])
def test_functions_of_two_arguments(function: str) -> None:
    description = parse(f"def operator(a, b):\n    return lambda i: {function}(a[i], b[i])")
    check(description, data({"a": (4,), "b": (4,)}) | {"b": np.array([1.1, 0.4, 1.9, 0.2])})


def test_embedding_adds_up_repeated_rows() -> None:
    description = parse("def embedding(data, weight):\n    return lambda b, j: weight[data[b], j] ** 2")
    rows = {"data": np.array([2.0, 0.0, 2.0]), "weight": data({"weight": (4, 2)})["weight"]}
    check(description, rows, ("weight",))
    assert adjoint(description, "data") == ()


def test_product_is_right_beside_zeros() -> None:
    description = parse("def product(a):\n    return lambda i: Prod(lambda j: a[i, j])")
    check(description, {"a": np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]])})


def test_every_tied_winner_gets_the_gradient() -> None:
    description = parse("def largest(a):\n    return lambda i: Max(lambda j: a[i, j])")
    tensors = {"a": np.array([[1.0, 2.0, 2.0]])}
    gradient = derived_gradient(description, "a", tensors, {"grad_0": np.array([5.0])})
    np.testing.assert_array_equal(gradient, [[0.0, 5.0, 5.0]])


@pytest.mark.parametrize(
    "name", ["matmul", "conv1d", "strided, padded conv2d", "upsampling", "joined", "mean"]
)
def test_adjoint_of_the_adjoint_of_a_linear_operator(name: str) -> None:
    text, shapes = CASES[name]
    description = parse(f"def operator({', '.join(shapes)}):\n    return {text}")
    tensors = data(shapes)
    (output,) = evaluate(description, tensors)
    for tensor in shapes:
        total = np.zeros_like(output)
        for part in adjoint(description, tensor):
            head = {head_names(part)[0]: tensors[tensor]}
            total += derived_gradient(part, "grad_0", {**tensors, "grad_0": np.zeros_like(output)}, head)
        others = {**tensors, tensor: np.zeros_like(tensors[tensor])}
        (without,) = evaluate(description, others)
        np.testing.assert_allclose(total, output - without, rtol=1e-12, atol=1e-12)


def test_second_derivative() -> None:
    first = adjoint(parse("def cube(a):\n    return lambda i: a[i] ** 3"), "a")
    check(first[0], data({"a": (3,), "grad_0": (3,)}))


BENT = ["held", "mirrored", "lesser", "half", "both"]
AFFINE = st.builds(
    lambda a, b, c, kind: {
        "sum": f"{a} * x + {b} * y + {c}",
        "difference": f"{a} * x - {b} * y + {c}",
        "quotient": f"({a} * x + y) // {b} + {c}",
        "remainder": f"({a} * x + {b} * k + {c}) % 4",
        "reduction": f"{a} * x + {b} * k - {c}",
        "reversed": f"{c} + 3 - x - k",
        "digit": f"x // {a} % {b} + k",
        "held": f"minimum(maximum({a} * x - {c}, 0), {b} + 1) + {c} * k",
        "mirrored": f"abs({b} + 1 - abs({a} * x - {c})) + k",
        "lesser": f"minimum({a} * x, {b} * y + {c})",
        "half": f"minimum(x // {a} + 1, {b} + 1) + y // 2",
        "both": f"maximum({a} * x, {b} * x + {c}) % 4",
    }[kind],
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2),
    st.sampled_from(["sum", "difference", "quotient", "remainder", "reduction", "reversed", "digit", *BENT]),
)


def reach(index: str, extents: tuple[int, int, int]) -> tuple[int, int]:
    """The smallest and the largest value of an index, by trying all."""
    x, y, k = np.indices(extents)
    values = eval(index, {"minimum": np.minimum, "maximum": np.maximum}, {"x": x, "y": y, "k": k}) + 0 * x
    return int(values.min()), int(values.max())


@settings(max_examples=150)
@given(
    indices=st.lists(AFFINE, min_size=1, max_size=2),
    extents=st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3)),
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    padded=st.booleans(),
    factor=st.sampled_from(["b[x]", "b[k]", "1 / b[y]", "log(b[x])", "(b[y] + {})", "{} * b[x]", "b[0]"]),
    reducer=st.sampled_from(["Sum", "Max", "Prod"]),
)
def test_random_affine_accesses(
    indices: list[str],
    extents: tuple[int, int, int],
    sizes: tuple[int, int],
    padded: bool,
    factor: str,
    reducer: str,
) -> None:
    """Any affine access, alone or next to others that use the same variables; no two candidates tie."""
    assume(reducer != "Max" or not factor.startswith("log"))  # such candidates need a stage
    x, y, k = extents
    if not padded:
        lowest, highest = zip(*(reach(index, extents) for index in indices), strict=True)
        indices = [f"{index} + {-low}" for index, low in zip(indices, lowest, strict=True)]
        spare = (sizes[0] % 2, sizes[1] % 2)
        sizes = tuple(high - low + 1 + s for high, low, s in zip(highest, lowest, spare, strict=False))
    access = f"a[{', '.join(indices)}]"
    access = f"pad({access}, 0.7)" if padded else access
    description = parse(
        f"def operator(a, b):\n    return lambda x={x}, y={y}:"
        f" {reducer}(lambda k={k}: {access} * (1 + 0.01 * k) * {factor.format(access)})"
    )
    check(description, data({"a": sizes[: len(indices)], "b": (5,)}))
