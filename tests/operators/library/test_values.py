"""Every operator of the library: the derived kernel against the interpreter, and both against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tofu.operators import get, names

UNARY = {
    "abs": np.abs,
    "arccos": np.arccos,
    "arcsin": np.arcsin,
    "arcsinh": np.arcsinh,
    "arctan": np.arctan,
    "arctanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "degrees": np.degrees,
    "exp": np.exp,
    "expm1": np.expm1,
    "fix": np.trunc,
    "floor": np.floor,
    "gamma": np.vectorize(math.gamma),
    "gammaln": np.vectorize(math.lgamma),
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "negative": np.negative,
    "radians": np.radians,
    "reciprocal": np.reciprocal,
    "relu": lambda x: np.maximum(x, 0),
    "rint": np.rint,
    "round": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "_copy": lambda x: x,
    "BlockGrad": lambda x: x,
    "make_loss": lambda x: x,
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
}

BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "mod": np.mod,
    "power": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "hypot": np.hypot,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "lesser": np.less,
    "lesser_equal": np.less_equal,
}

REDUCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "nansum": np.nansum,
}


@pytest.mark.parametrize("name", names())
def test_kernel_agrees_with_interpreter(name: str, example: Callable[..., dict]) -> None:
    operator = get(name)
    assert operator.example is not None
    bound = operator.bind(operator.example.shapes, **operator.example.attributes)
    tensors = {tensor: array for tensor, array in example(operator).items() if tensor in bound.shapes}
    for computed, expected in zip(bound.compute(tensors), bound.interpret(tensors), strict=True):
        np.testing.assert_allclose(computed, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    data = np.linspace(0.05, 0.95, 6).reshape(2, 3)
    (result,) = get(name).bind({"data": (2, 3)}).compute({"data": data})
    np.testing.assert_allclose(result, UNARY[name](data), rtol=1e-12)


def test_rounding_of_halves_and_negative_numbers() -> None:
    data = np.array([-2.5, -1.5, -0.3, 0.5, 1.5, 2.5])
    expected = {
        "round": [-3, -2, 0, 1, 2, 3],
        "rint": [-3, -2, 0, 0, 1, 2],
        "fix": [-2, -1, 0, 0, 1, 2],
        "sign": [-1, -1, -1, 1, 1, 1],
    }
    for name, values in expected.items():
        (result,) = get(name).bind({"data": (6,)}).compute({"data": data})
        np.testing.assert_array_equal(result, values, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_adds_no_half(dtype: type[np.floating]) -> None:
    """A half added to these numbers is rounded itself."""
    below_half = np.nextafter(dtype(0.5), dtype(0))
    odd = dtype(2 / np.finfo(dtype).eps - 1)
    data = np.array([below_half, -below_half, odd, -odd, np.inf, -np.inf, np.nan], dtype)
    for name in ("round", "rint"):
        (result,) = get(name).bind({"data": (7,)}).compute({"data": data})
        np.testing.assert_array_equal(result, [0, 0, odd, -odd, np.inf, -np.inf, np.nan], err_msg=name)


@pytest.mark.parametrize("kind", BINARY)
def test_binary_scalar_and_broadcasting_forms_agree_with_numpy(kind: str) -> None:
    function = BINARY[kind]
    lhs, rhs = np.array([[0.5, 1.0, 2.0]]), np.array([[1.0], [2.0]])
    left, right = np.broadcast_arrays(lhs, rhs)
    (broadcast,) = (
        get(f"broadcast_{kind}").bind({"lhs": (1, 3), "rhs": (2, 1)}).compute({"lhs": lhs, "rhs": rhs})
    )
    name = "elemwise_add" if kind == "add" else f"_{kind}"
    (same,) = get(name).bind({"lhs": (2, 3), "rhs": (2, 3)}).compute({"lhs": left, "rhs": right})
    scalar_name = {"add": "_plus_scalar", "sub": "_minus_scalar"}.get(kind, f"_{kind}_scalar")
    (scalar,) = get(scalar_name).bind({"data": (1, 3)}, scalar=1.0).compute({"data": lhs})
    np.testing.assert_allclose(broadcast, function(lhs, rhs))
    np.testing.assert_allclose(same, function(lhs, rhs))
    np.testing.assert_allclose(scalar, function(lhs, 1.0))


@pytest.mark.parametrize("name", ["_rminus_scalar", "_rdiv_scalar", "_rmod_scalar", "_rpower_scalar"])
def test_reversed_scalar_forms(name: str) -> None:
    functions = {"_rminus": np.subtract, "_rdiv": np.divide, "_rmod": np.mod, "_rpower": np.power}
    data = np.array([0.5, 1.5, 2.0])
    (result,) = get(name).bind({"data": (3,)}, scalar="3").compute({"data": data})
    np.testing.assert_allclose(result, functions[name.removesuffix("_scalar")](3.0, data))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(
    ("attributes", "axis", "keepdims"),
    [
        ({"axis": 1}, (1,), False),
        ({"axis": "(0, -1)", "keepdims": "True"}, (0, 2), True),
        ({"axis": (1,), "exclude": True}, (0, 2), False),
        ({"axis": ()}, (0, 1, 2), False),
    ],
)
def test_reductions(name: str, attributes: dict[str, object], axis: tuple[int, ...], keepdims: bool) -> None:
    data = np.random.default_rng(1).normal(size=(2, 3, 4))
    expected = np.atleast_1d(REDUCTIONS[name](data, axis=axis, keepdims=keepdims))
    (result,) = get(name).bind({"data": (2, 3, 4)}, **attributes).compute({"data": data})
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected)


def test_positions_of_extremes_are_the_first_ones() -> None:
    data = np.array([[3.0, 1.0, 3.0, 1.0], [0.0, 0.0, 5.0, 0.0]])
    for name, function in (("argmax", np.argmax), ("argmin", np.argmin)):
        (result,) = get(name).bind({"data": (2, 4)}, axis=1).compute({"data": data})
        np.testing.assert_array_equal(result, function(data, axis=1))


def test_norm() -> None:
    data = np.array([[3.0, 0.0], [0.0, 4.0]])
    (result,) = get("norm").bind({"data": (2, 2)}).compute({"data": data})
    np.testing.assert_allclose(result, [5.0])


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matrix_products(transpose_a: bool, transpose_b: bool) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))
    given_a = a.swapaxes(1, 2) if transpose_a else a
    given_b = b.swapaxes(1, 2) if transpose_b else b
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    bound = get("batch_dot").bind({"lhs": given_a.shape, "rhs": given_b.shape}, **flags)
    np.testing.assert_allclose(bound.compute({"lhs": given_a, "rhs": given_b})[0], a @ b)
    scaled = get("linalg_gemm2").bind({"A": given_a.shape, "B": given_b.shape}, alpha=0.5, **flags)
    np.testing.assert_allclose(scaled.compute({"A": given_a, "B": given_b})[0], 0.5 * (a @ b))
    plain = get("dot").bind({"lhs": given_a[0].shape, "rhs": given_b[0].shape}, **flags)
    np.testing.assert_allclose(plain.compute({"lhs": given_a[0], "rhs": given_b[0]})[0], a[0] @ b[0])


@pytest.mark.parametrize("shape", [(5, 3), (5, 2, 3), (5, 2, 3, 2)])
@pytest.mark.parametrize("no_bias", [False, True])
def test_fully_connected_flattens(shape: tuple[int, ...], no_bias: bool) -> None:
    rng = np.random.default_rng(3)
    data = rng.normal(size=shape)
    weight, bias = rng.normal(size=(4, math.prod(shape[1:]))), rng.normal(size=4)
    tensors = {"data": data, "weight": weight} | ({} if no_bias else {"bias": bias})
    shapes = {name: array.shape for name, array in tensors.items()}
    (result,) = get("FullyConnected").bind(shapes, num_hidden=4, no_bias=no_bias).compute(tensors)
    np.testing.assert_allclose(result, data.reshape(5, -1) @ weight.T + (0 if no_bias else bias))


def test_fully_connected_over_the_last_dimension() -> None:
    rng = np.random.default_rng(4)
    tensors = {
        "data": rng.normal(size=(2, 3, 5)),
        "weight": rng.normal(size=(4, 5)),
        "bias": rng.normal(size=4),
    }
    bound = get("FullyConnected").bind({n: a.shape for n, a in tensors.items()}, num_hidden=4, flatten=False)
    expected = tensors["data"] @ tensors["weight"].T + tensors["bias"]
    np.testing.assert_allclose(bound.compute(tensors)[0], expected)


def test_activations() -> None:
    data = np.array([-30.0, -1.0, 0.0, 2.0, 30.0])
    expected = {
        "relu": np.maximum(data, 0),
        "sigmoid": 1 / (1 + np.exp(-data)),
        "tanh": np.tanh(data),
        "softrelu": np.logaddexp(data, 0),
        "softsign": data / (1 + np.abs(data)),
    }
    for kind, values in expected.items():
        (result,) = get("Activation").bind({"data": (5,)}, act_type=kind).compute({"data": data})
        np.testing.assert_allclose(result, values, atol=1e-15, err_msg=kind)
    slopes = {
        "leaky": np.where(data > 0, data, 0.1 * data),
        "elu": np.where(data > 0, data, 0.1 * np.expm1(data)),
        "gelu": data * [0.5 * (1 + math.erf(x / math.sqrt(2))) for x in data],
    }
    for kind, values in slopes.items():
        (result,) = get("LeakyReLU").bind({"data": (5,)}, act_type=kind, slope=0.1).compute({"data": data})
        np.testing.assert_allclose(result, values, atol=1e-15, err_msg=kind)


def test_casts_keep_the_type_and_cut_off_fractions() -> None:
    data = np.array([-1.7, 0.4, 255.6, 258.2])
    expected = {"float16": data, "int32": [-1, 0, 255, 258], "uint8": [255, 0, 255, 2]}
    for dtype, values in expected.items():
        (result,) = get("Cast").bind({"data": (4,)}, dtype=dtype).compute({"data": data})
        np.testing.assert_array_equal(result, values, err_msg=dtype)


def test_sums_clips_and_choices() -> None:
    rng = np.random.default_rng(5)
    a, b, c = rng.normal(size=(3, 2, 3))
    shapes = {"arg0": (2, 3), "arg1": (2, 3), "arg2": (2, 3)}
    (total,) = get("ElementWiseSum").bind(shapes, num_args=3).compute({"arg0": a, "arg1": b, "arg2": c})
    np.testing.assert_allclose(total, a + b + c)
    (clipped,) = get("clip").bind({"data": (2, 3)}, a_min=-0.5, a_max="0.5").compute({"data": a})
    np.testing.assert_array_equal(clipped, np.clip(a, -0.5, 0.5))
    shapes = dict.fromkeys(("condition", "x", "y"), (2, 3))
    (chosen,) = get("where").bind(shapes).compute({"condition": np.floor(a), "x": b, "y": c})
    np.testing.assert_array_equal(chosen, np.where(np.floor(a) != 0, b, c))


def test_rows_picked_by_index() -> None:
    weight = np.arange(12.0).reshape(4, 3)
    data = np.array([[0.0, 3.0], [1.0, 1.0]])
    shapes = {"data": (2, 2), "weight": (4, 3)}
    (rows,) = (
        get("Embedding").bind(shapes, input_dim=4, output_dim=3).compute({"data": data, "weight": weight})
    )
    np.testing.assert_array_equal(rows, weight[data.astype(int)])
    (taken,) = (
        get("take").bind({"a": (4, 3), "indices": (2,)}).compute({"a": weight, "indices": np.array([-2, 9])})
    )
    np.testing.assert_array_equal(taken, weight[[0, 3]])
    (hot,) = get("one_hot").bind({"indices": (2,)}, depth=3).compute({"indices": np.array([2, 0])})
    np.testing.assert_array_equal(hot, np.eye(3)[[2, 0]])


def test_tensors_without_inputs() -> None:
    (ones,) = get("_ones").bind({}, shape="(2, 3)").compute({})
    np.testing.assert_array_equal(ones, np.ones((2, 3)))
    (zeros,) = get("_zeros").bind({"output_0": (4, 3)}, shape=(0, 3)).compute({})
    np.testing.assert_array_equal(zeros, np.zeros((4, 3)))
    (steps,) = get("_arange").bind({}, start=1, stop=6, step=2, repeat=2).compute({})
    np.testing.assert_array_equal(steps, np.repeat(np.arange(1, 6, 2), 2))
