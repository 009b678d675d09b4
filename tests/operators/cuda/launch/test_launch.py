"""Geometry, index width and the packed struct."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.errors import DataError, OperatorError
from tofu.operators.cuda import CudaKernel, generate, launch_of, launches, pack
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.bound_operator import BoundOperator
from tofu.operators.stages.stage import derived

MATMUL = "def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"
SOFTMAX = (
    "def softmax(x):\n    return lambda i, j: exp(x[i, j] - Max(lambda k: x[i, k]))"
    " / Sum(lambda k: exp(x[i, k] - Max(lambda l: x[i, l])))"
)
TAKE = "def take(d, w):\n    return lambda i, j: w[d[i], j]"


def prepared(text: str, shapes: dict[str, tuple[int, ...]]) -> tuple[BoundOperator, CudaKernel]:
    stage = derived(tdl.parse(text))
    kernel = generate(stage.description, dict.fromkeys(stage.inputs, "float32"), ["float32"])
    return stage.bind(shapes), kernel


def whole_call(bound: BoundOperator, spread: int = 1) -> KernelCall:
    """A call for the whole box; `spread` elements lie between neighbours, and no memory is touched."""

    def array(shape: tuple[int, ...]) -> Any:
        dense = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), shape, _dense(shape, 4 * spread))
        dense.flags.writeable = False
        return dense

    regions = {name: tuple((0, n) for n in bound.shapes[name]) for name in bound.reads}
    inputs = {name: array(bound.shapes[name]) for name in bound.reads}
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    return KernelCall(bound, box, inputs, regions, tuple(array(shape) for shape in bound.output_shapes))


def _dense(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    strides = []
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


@pytest.mark.parametrize(
    ("text", "shapes", "kind", "blocks", "threads"),
    [
        (MATMUL, {"a": (512, 64), "b": (64, 512)}, "threads", 1024, 256),
        (MATMUL, {"a": (8, 4096), "b": (4096, 8)}, "blocks", 64, 256),
        (MATMUL, {"a": (8, 16), "b": (16, 8)}, "threads", 1, 256),
        (SOFTMAX, {"x": (100000, 40)}, "blocks", 100000, 64),
        (SOFTMAX, {"x": (7, 10)}, "threads", 1, 256),
        (SOFTMAX, {"x": (3, 33000)}, "blocks", 3, 256),
    ],
)
def test_geometry_follows_the_box(
    text: str, shapes: dict[str, tuple[int, ...]], kind: str, blocks: int, threads: int
) -> None:
    bound, kernel = prepared(text, shapes)
    (launch,) = launches(kernel, whole_call(bound))
    assert launch.function == f"{kernel.name}_0_{kind}_i32"
    assert (launch.blocks, launch.threads) == (blocks, threads)
    assert launch.function in kernel.functions


def test_a_large_product_of_extents_alone_needs_no_wide_index() -> None:
    bound, kernel = prepared(MATMUL, {"a": (16384, 16384), "b": (16384, 16384)})
    (launch,) = launches(kernel, whole_call(bound))
    assert launch.function.endswith("_i32")


@pytest.mark.parametrize(
    ("text", "shapes", "spread"),
    [
        (MATMUL, {"a": (65536, 32), "b": (32, 65536)}, 1),
        (MATMUL, {"a": (1024, 1024), "b": (1024, 1024)}, 4096),
        ("def f(a):\n    return lambda i: a[(i * 4000000) // 4000000]", {"a": (600,)}, 1),
        ("def f(a):\n    return lambda i: pad(a[i - 3000000000], 0) + a[i]", {"a": (6,)}, 1),
        ("def f(a):\n    return lambda i=600: a[minimum(i, abs(i * 4000000))]", {"a": (600,)}, 1),
    ],
)
def test_wide_indices_where_32_bits_are_too_few(
    text: str, shapes: dict[str, tuple[int, ...]], spread: int
) -> None:
    bound, kernel = prepared(text, shapes)
    (launch,) = launches(kernel, whole_call(bound, spread))
    assert launch.function.endswith("_i64")


def test_offsets_beyond_32_bits(machine: Any, tmp_path: Path) -> None:
    """Three elements, 4 GiB from one to the next, in a file that is all hole."""
    bound, kernel = prepared("def f(a):\n    return lambda i: a[i] + 1", {"a": (3,)})
    call = whole_call(bound)
    far = np.memmap(tmp_path / "sparse", np.float32, "w+", shape=(2**31 + 1,))[:: 2**30]
    far[:] = 5, 6, 7
    out = np.zeros(3, np.float32)
    (launch,) = launches(kernel, KernelCall(bound, call.box, {"a": far}, call.regions, (out,)))
    machine([kernel]).run(kernel, launch, KernelCall(bound, call.box, {"a": far}, call.regions, (out,)))
    assert out.tolist() == [6, 7, 8]


def test_nothing_is_launched_for_empty_outputs() -> None:
    bound, kernel = prepared(MATMUL, {"a": (0, 3), "b": (3, 4)})
    assert launches(kernel, whole_call(bound)) == ()


def test_packed_struct() -> None:
    bound, kernel = prepared(MATMUL, {"a": (6, 4), "b": (4, 5)})
    a, b = np.zeros((8, 4), np.float32)[1:4], np.zeros((2, 4), np.float32).T
    out = np.zeros((3, 2), np.float32)
    box = {"i": (2, 5), "j": (1, 3), "k": (0, 4)}
    regions = {"a": ((2, 5), (0, 4)), "b": ((0, 4), (1, 3))}
    struct = pack(kernel, KernelCall(bound, box, {"a": a, "b": b}, regions, (out,)))
    assert struct.shape == (1,)
    assert struct.nbytes == kernel.parameters.dtype.itemsize
    assert struct["in_a"]["data"] == [a.ctypes.data]
    assert struct["in_a"]["lower"].tolist() == [[2, 0]]
    assert struct["in_b"]["length"].tolist() == [[4, 2]]
    assert struct["in_b"]["stride"].tolist() == [[1, 4]]
    assert struct["out_0"]["stride"].tolist() == [[2, 1]]
    assert struct["box_j"].tolist() == [(1, 3)]


def test_device_arrays_are_taken_by_their_interface() -> None:
    class Device:
        """The interface of an array of a GPU library."""

        dtype, itemsize, shape, strides, ndim = np.dtype(np.float32), 4, (3,), (4,), 1
        __cuda_array_interface__ = {"data": (0x7F0000001000, False)}  # noqa: RUF012

    bound, kernel = prepared("def f(a):\n    return lambda i: a[i]", {"a": (3,)})
    device: Any = Device()
    struct = pack(kernel, KernelCall(bound, {"i": (0, 3)}, {"a": device}, {"a": ((0, 3),)}, (device,)))
    assert struct["in_a"]["data"] == struct["out_0"]["data"] == [0x7F0000001000]


def test_input_that_does_not_hold_the_region() -> None:
    bound, kernel = prepared(MATMUL, {"a": (6, 4), "b": (4, 5)})
    call = whole_call(bound)
    regions = {**call.regions, "a": ((0, 6), (1, 4))}
    inputs = {**call.inputs, "a": call.inputs["a"][:, 1:]}
    with pytest.raises(
        OperatorError, match=r"reads \[0, 4\) of dimension 1 of a, but its input holds \[1, 4\)"
    ):
        pack(kernel, KernelCall(bound, call.box, inputs, regions, call.outputs))


def test_arrays_of_another_type_shape_or_stride() -> None:
    bound, kernel = prepared("def f(a):\n    return lambda i: a[i]", {"a": (3,)})
    call = whole_call(bound)
    for array, complaint in (
        (np.zeros(3), "holds float64, the kernel was generated for float32"),
        (np.zeros(4, np.float32), "has shape"),
        (np.zeros(3, [("x", "<f4"), ("y", "<i2")])["x"], "not whole elements of 4"),
    ):
        with pytest.raises(DataError, match=complaint):
            pack(kernel, KernelCall(bound, call.box, {"a": array}, call.regions, call.outputs))


def test_bad_indices_set_flags_and_give_nan(machine: Any) -> None:
    bound, kernel = prepared(TAKE, {"d": (5,), "w": (4, 2)})
    computer = machine([kernel])
    weights = np.arange(8, dtype=np.float32).reshape(4, 2)
    for bad, flag in ((1, 0), (4, 1), (-1, 1), (1.5, 1), (np.nan, 1), (np.inf, 1), (3e18, 1)):
        data = np.array([0, 3, bad, 2, 1], np.float32)
        out = np.zeros((5, 2), np.float32)
        box = {"i": (0, 5), "j": (0, 2)}
        regions = {"d": ((0, 5),), "w": ((0, 4), (0, 2))}
        call = KernelCall(bound, box, {"d": data, "w": weights}, regions, (out,))
        for narrow in (True, False):
            assert computer.run(kernel, launch_of(kernel.groups[0][0], call.box, narrow), call) == [flag]
            assert np.isnan(out[2]).all() == bool(flag)
            np.testing.assert_array_equal(out[[0, 1, 3, 4]], weights[[0, 3, 2, 1]])


def test_flags_have_to_be_given() -> None:
    bound, kernel = prepared(TAKE, {"d": (5,), "w": (4, 2)})
    with pytest.raises(DataError, match="give the address of 1 flags"):
        pack(kernel, whole_call(bound))
