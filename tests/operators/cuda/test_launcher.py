"""From a generated kernel to launches: CuPy's part is played by kernels compiled for the CPU."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.errors import DataError, ExecutionError
from tofu.operators.bound import BoundOperator
from tofu.operators.cuda import CudaKernel, generate, launcher, prepare
from tofu.operators.stage import derived

from .arrays import Array, guarded_call
from .comparison import agree
from .machine import Machine

SOFTMAX = (
    "def softmax(x):\n    return (lambda i, j: exp(x[i, j]) / Sum(lambda k: exp(x[i, k])),"
    " lambda: Max(lambda i, j: x[i, j]))"
)
TAKE = "def take(d, w):\n    return lambda i, j: w[d[i], j]"


class OnDevice(np.ndarray[Any, Any]):
    """An array that shows itself as those of CuPy do."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.__array_interface__


@dataclass
class Module:
    """CuPy's RawModule: functions that take a grid, a block and arguments, arrays of one element by value."""

    machine: Machine
    launched: list[Any]

    def get_function(self, name: str) -> Callable[..., None]:
        entry = self.machine.library[f"run_{name}"]

        def function(grid: Any, block: Any, arguments: tuple[Array], stream: Any) -> None:
            (struct,) = arguments
            assert struct.size == 1
            copy = struct.copy()
            entry(ctypes.c_void_p(copy.ctypes.data), *grid, *block, ctypes.c_bool("_blocks_" in name))
            self.launched.append((name, grid, block, stream))

        return function


@pytest.fixture
def card(machine: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[CudaKernel], list[Any]]]:
    """`card(kernel)` is a CuPy that compiles this kernel; what it launches is added to the list."""

    def install(kernel: CudaKernel) -> list[Any]:
        launched: list[Any] = []

        def raw_module(*, code: str, options: tuple[str, ...]) -> Module:
            assert options == ("-std=c++17",)
            return Module(machine([kernel], code), launched)

        def zeros(count: int, dtype: str) -> Array:
            return np.zeros(count, dtype).view(OnDevice)

        monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(RawModule=raw_module, zeros=zeros))
        return launched

    launcher._module.cache_clear()
    yield install
    launcher._module.cache_clear()


def generated(text: str, shapes: dict[str, tuple[int, ...]]) -> tuple[BoundOperator, CudaKernel]:
    stage = derived(tdl.parse(text))
    kernel = generate(
        stage.description, dict.fromkeys(stage.inputs, "float32"), ["float32"] * len(stage.produces)
    )
    return stage.bind(shapes), kernel


def test_from_a_call_to_its_results(card: Any) -> None:
    bound, kernel = generated(SOFTMAX, {"x": (5, 40)})
    launched = card(kernel)
    tensors = {"x": np.random.default_rng(1).integers(-8, 9, (5, 40)) / 8}
    guarded = guarded_call(
        bound, bound.full_box, tensors, {"x": "float32"}, ["float32"] * 2, np.random.default_rng(2)
    )
    prepared = prepare(kernel, guarded.call)
    assert prepared.faults is None
    for stream in (None, "stream"):
        guarded.reset()
        prepared(stream)
        prepared.check()
        for output, expected in zip(guarded.call.outputs, bound.interpret(tensors), strict=True):
            agree(output, expected, "float32", "")
        assert guarded.intact()
    assert launched == [
        (f"{kernel.name}_0_blocks_i32", (5,), (64,), None),
        (f"{kernel.name}_1_blocks_i32", (1,), (256,), None),
        (f"{kernel.name}_0_blocks_i32", (5,), (64,), "stream"),
        (f"{kernel.name}_1_blocks_i32", (1,), (256,), "stream"),
    ]


def test_a_kernel_is_compiled_once(card: Any) -> None:
    bound, kernel = generated(SOFTMAX, {"x": (5, 40)})
    card(kernel)
    tensors = {"x": np.zeros((5, 40))}
    calls = [
        guarded_call(bound, bound.full_box, tensors, {"x": "float32"}, ["float32"] * 2, None).call
        for _ in range(2)
    ]
    first, second = (prepare(kernel, call) for call in calls)
    modules = {id(launcher._module(one.kernel.source)) for one in (first, second)}
    assert launcher._module.cache_info().misses == len(modules) == 1


def test_bad_indices_are_named(card: Any) -> None:
    bound, kernel = generated(TAKE, {"d": (5,), "w": (4, 2)})
    card(kernel)
    types = {"d": "float32", "w": "float32"}
    tensors = {"d": np.array([0.0, 3, 1, 4, 2]), "w": np.ones((4, 2))}
    prepared = prepare(kernel, guarded_call(bound, bound.full_box, tensors, types, ["float32"], None).call)
    prepared.check()
    prepared()
    with pytest.raises(DataError, match="take: an index into dimension 0 of w, computed from data"):
        prepared.check()


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    launcher._module.cache_clear()
    bound, kernel = generated(TAKE, {"d": (5,), "w": (4, 2)})
    types = {"d": "float32", "w": "float32"}
    tensors = {"d": np.zeros(5), "w": np.ones((4, 2))}
    call = guarded_call(bound, bound.full_box, tensors, types, ["float32"], None).call
    with pytest.raises(ExecutionError, match="pip install 'cupy-cuda12x"):
        prepare(kernel, call)


def test_with_the_real_cupy() -> None:
    """Only what needs no card: a module of these options, which is not compiled before its first use."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    _, kernel = generated(SOFTMAX, {"x": (5, 40)})
    module = cupy.RawModule(code=kernel.source, options=launcher.OPTIONS)
    assert module.code == kernel.source
    assert module.options == launcher.OPTIONS
