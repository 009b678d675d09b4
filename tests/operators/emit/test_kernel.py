"""The text of kernels: one for each description and types, and what has none."""

from __future__ import annotations

import numpy as np
import pytest

from tofu import tdl
from tofu.errors import OperatorError
from tofu.operators.cuda import generate
from tofu.operators.emit.datatypes import encoded
from tofu.operators.emit.functions import SPELLINGS, spelling
from tofu.operators.emit.values import literal
from tofu.tdl.functions import FUNCTIONS

AXPY = "def axpy(x, y):\n    return lambda i: 2 * x[i] + y[i]"


def test_equal_descriptions_share_a_kernel() -> None:
    types = {"x": "float32", "y": "float32"}
    first = generate(tdl.parse(AXPY), types, ["float32"])
    assert generate(tdl.parse(AXPY.replace("2 * x", "2  *  x")), types, ["float32"]) is first
    others = [
        generate(tdl.parse(AXPY), {**types, "x": "float16"}, ["float32"]),
        generate(tdl.parse(AXPY), types, ["float64"]),
        generate(tdl.parse(AXPY), types, ["float32"], finite=True),
        generate(tdl.parse(AXPY.replace("2 *", "2.0 *")), types, ["float32"]),
        generate(tdl.parse(AXPY.replace("axpy", "other")), types, ["float32"]),
    ]
    assert len({kernel.name for kernel in (first, *others)}) == 6


def test_no_shape_is_baked_in() -> None:
    text = "def f(a):\n    return lambda i=a.shape[0] // 2: a[2 * i] / a.shape[0]"
    kernel = generate(tdl.parse(text), {"a": "float32"}, ["float32"])
    assert kernel.parameters.extents == (("a", 0),)
    assert "p.extent_a_0" in kernel.text


def test_extents_that_only_binders_use_are_left_out() -> None:
    text = "def f(g, a):\n    return lambda i=a.shape[0], j=a.shape[1]: g[i]"
    kernel = generate(tdl.parse(text), {"g": "float32"}, ["float32"])
    assert [field.name for field in kernel.parameters.fields] == ["in_g", "out_0", "box_i", "box_j"]


def test_struct_is_made_of_eight_byte_members() -> None:
    text = "def f(d, w, s):\n    return (lambda i, j: w[d[i], j] * s[()], lambda: Sum(lambda i: d[i]))"
    kernel = generate(tdl.parse(text), {"d": "int32", "w": "float16", "s": "float32"}, ["float16", "float32"])
    dtype = kernel.parameters.dtype
    assert dtype.itemsize % 8 == 0
    assert dtype == np.dtype(dtype.descr), "there is padding"
    assert f"static_assert(sizeof(Parameters) == {dtype.itemsize});" in kernel.text
    assert "static_assert(TOFU_OFFSET(Parameters, in_w.stride) == 72);" in kernel.text


def test_invariant_reductions_are_computed_once() -> None:
    text = "def f(x):\n    return lambda i: Sum(lambda k: exp(x[i, k] - Max(lambda m: x[i, m])))"
    kernel = generate(tdl.parse(text), {"x": "float32"}, ["float32"])
    threads = kernel.text.partition("_threads_i32")[0]
    maximum, total = threads.index("tofu::Max::combine"), threads.index("tofu::Sum::combine")
    assert maximum < threads.index("for (Index v_k") < total


def test_every_function_has_a_spelling() -> None:
    assert set(SPELLINGS) == set(FUNCTIONS) - {"where"}
    for function in FUNCTIONS.values():
        if function.name != "where":
            assert SPELLINGS[function.name].real.count("{}") == function.arity
            assert bool(SPELLINGS[function.name].integer) == function.integer


def test_function_without_a_spelling() -> None:
    with pytest.raises(OperatorError, match="f: CUDA has no spelling of the scalar function 'bessel'"):
        spelling("f", "bessel")


def test_integer_beyond_64_bits() -> None:
    with pytest.raises(OperatorError, match="f: the integer 9223372036854775808 does not fit 64 bits"):
        literal("f", 1 << 63, "float")


@pytest.mark.parametrize(
    ("text", "types", "outputs", "complaint"),
    [
        (
            "def f(a):\n    g = Opaque()\n    return lambda i, j: g(a[:, :])[i, j]",
            ["float32"],
            ["float32"],
            "'g' is an opaque",
        ),
        (AXPY, ["float32"], ["float32"], "no element type is given for y"),
        (AXPY, ["float32", "complex64"], ["float32"], "type 'complex64'; use one of float16, bfloat16"),
        (AXPY, ["float32", "float32"], [], "has 1 outputs, 0 element types"),
        ("def f(x, *, n):\n    return lambda i: x[i] * n", ["float32"], ["float32"], "Attribute found"),
    ],
)
def test_what_has_no_kernel(text: str, types: list[str], outputs: list[str], complaint: str) -> None:
    description = tdl.parse(text)
    given = dict(zip(description.tensor_names, types, strict=False))
    with pytest.raises(OperatorError, match=complaint):
        generate(description, given, outputs)


def test_bfloat16_is_the_upper_half_of_float32_rounded_to_even() -> None:
    step = 2.0**-7
    values = np.array([1, 1 + step / 2, 1 + 3 * step / 2, 1 + 0.51 * step, -2, np.inf, np.nan, 3.4e38])
    bits = encoded(values, "bfloat16")
    expected = [0x3F80, 0x3F80, 0x3F82, 0x3F81, 0xC000, 0x7F80, 0x7FFF, 0x7F80]
    assert (bits.dtype, bits.tolist()) == (np.uint16, expected)
    assert encoded(values, "float64") is values
