"""The functions of float32 that become vector instructions, against NumPy and SciPy in float64."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from scipy import special

from tofu.operators.emit.kernel import header
from tofu.operators.native.compiler import NoCompiler, find

FUNCTIONS = {"exp": np.exp, "log": np.log, "log1p": np.log1p, "tanh": np.tanh, "erf": special.erf}
UNITS = {"exp": 2, "log": 2, "log1p": 3, "tanh": 2, "erf": 3}


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = find()
    if isinstance(compiler, NoCompiler):
        pytest.skip(f"no C compiler: {compiler.reason}")
    loops = [
        f'extern "C" TOFU_EXPORTED void loop_{name}(const float* x, float* y, long count) {{\n'
        f"    TOFU_INDEPENDENT for (long i = 0; i < count; ++i) y[i] = tofu::{name}(x[i]);\n}}\n"
        for name in FUNCTIONS
    ]
    path = tmp_path_factory.mktemp("vector_math") / "loops.so"
    compiler.build("\n".join([header("processor.h"), header("vector_math.h"), *loops]), path)
    return ctypes.CDLL(str(path))


def computed(functions: ctypes.CDLL, name: str, x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    address = ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data)
    functions[f"loop_{name}"](*address, ctypes.c_long(x.size))
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_a_few_units_in_the_last_place(name: str, functions: ctypes.CDLL) -> None:
    """Over all signs and exponents, numbers below the smallest normal one, infinities and NaN included."""
    special_values = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45], np.float32)
    x = np.concatenate(
        [np.arange(0, 2**32, 4099, np.uint64).astype(np.uint32).view(np.float32), special_values]
    )
    y = computed(functions, name, x)
    with np.errstate(all="ignore"):
        right = FUNCTIONS[name](x.astype(np.float64))
        rounded = right.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(rounded))
    np.testing.assert_array_equal(np.isinf(y), np.isinf(rounded))
    np.testing.assert_array_equal(np.signbit(y[x == 0]), np.signbit(rounded[x == 0]))
    numbers = np.isfinite(rounded)
    units = np.abs(y[numbers] - right[numbers]) / np.spacing(np.abs(rounded[numbers]))
    assert units.max() <= UNITS[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_value_is_the_same_at_every_place(name: str, functions: ctypes.CDLL) -> None:
    """In a full vector, and in what is left at the end of a loop."""
    x = np.random.default_rng(0).uniform(0.01, 20, 77).astype(np.float32)
    together = computed(functions, name, x)
    alone = np.concatenate([computed(functions, name, x[i : i + 1]) for i in range(x.size)])
    assert together.tobytes() == alone.tobytes()
