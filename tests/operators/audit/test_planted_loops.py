"""A function of derived kernels that is wrong at one stride: the audit's runs must contain that stride."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.analyzer.audit.finding import Check
from tofu.operators.derive import _recipes
from tofu.operators.derive.nodes import functions
from tofu.operators.kernels.kernel import KernelCall

TURN = "def turn(x):\n    return lambda t, d=1: -x[t, d + {half}] + 0 * x[t, d]"
Plant = Callable[..., None]


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    """Put a function in the place of the language's; kernels that were derived before are forgotten."""

    def put(name: str, run: Callable[..., Any]) -> None:
        loop = replace(functions.LOOPS[name], run=run)
        monkeypatch.setattr(functions, "LOOPS", {**functions.LOOPS, name: loop})
        _recipes.cache_clear()

    yield put
    _recipes.cache_clear()


def wrong_at(stride: int, dtype: str) -> Callable[..., Any]:
    """`-x`, but as NumPy 2.4 computes it at one distance of one type: of other elements."""

    def negative(x: Any, out: Any) -> None:
        np.copyto(out, x * -1)
        walked = [s for s, length in zip(x.strides, x.shape, strict=True) if length > 1]
        if x.dtype == dtype and walked and min(map(abs, walked)) == stride:
            np.copyto(out, np.roll(out, 1))

    return negative


def audited(n: int) -> Any:
    return tofu.audit(tofu.parse(TURN.format(n=n, half=n // 2)), shapes={"x": (6, n)})


@pytest.mark.parametrize("n", [4, 8, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_function_that_is_wrong_down_a_column_is_refuted(n: int, dtype: str, plant: Plant) -> None:
    plant("negative", wrong_at(n * np.dtype(dtype).itemsize, dtype))
    refuted = {finding.check for finding in audited(n).refuted if finding.operator == "turn"}
    assert Check.WHOLE in refuted


@pytest.mark.parametrize("n", [4, 8, 16])
def test_a_function_that_is_right_everywhere_is_not(n: int, plant: Plant) -> None:
    plant("negative", wrong_at(3, "float32"))
    assert not audited(n).refuted
    plant("negative", np.negative)
    assert not audited(n).refuted


def test_the_message_says_how_the_arrays_lie(plant: Plant) -> None:
    plant("negative", wrong_at(12, "float32"))
    text = str(audited(4))
    assert "(float32, one element after the other, as a region that was fetched)" in text


ADD = tofu.parse("def add(x, y):\n    return lambda i, j: x[i, j] + y[i, j]")


def kernel_wrong(where: Callable[[KernelCall], bool]) -> Callable[[KernelCall], Callable[[], None]]:
    def kernel(call: KernelCall) -> Callable[[], None]:
        def run() -> None:
            np.add(call.inputs["x"], call.inputs["y"], out=call.outputs[0])
            if where(call):
                call.outputs[0][...] += 1

        return run

    return kernel


KERNELS: dict[str, Callable[[KernelCall], bool]] = {
    "parts without gaps": lambda call: (
        call.inputs["x"].flags.c_contiguous and len(call.inputs["x"]) < 6 and call.inputs["x"].shape[1] == 5
    ),
    "columns of a larger tensor": lambda call: (
        call.inputs["x"].strides == (20, 4) and call.inputs["x"].shape[1] < 5
    ),
    "an output over an input": lambda call: np.may_share_memory(call.inputs["x"], call.outputs[0]),
    "single precision": lambda call: call.outputs[0].dtype == np.float32,
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_are_wrong_in_a_layout_of_the_engines_are_refuted(name: str) -> None:
    report = tofu.audit(ADD, kernel_wrong(KERNELS[name]), {"x": (6, 5), "y": (6, 5)})
    assert report.refuted


def test_a_kernel_that_is_right_in_all_layouts_is_not() -> None:
    assert not tofu.audit(ADD, kernel_wrong(lambda call: False), {"x": (6, 5), "y": (6, 5)}).refuted


def test_writes_next_to_an_array_without_gaps_are_seen() -> None:
    def kernel(call: KernelCall) -> Callable[[], None]:
        def run() -> None:
            np.add(call.inputs["x"], call.inputs["y"], out=call.outputs[0])
            out = call.outputs[0]
            if out.flags.c_contiguous and out.dtype == np.float32:
                # one element: what lies further away belongs to others
                np.lib.stride_tricks.as_strided(out, (out.size + 1,), (out.itemsize,))[-1] = 0

        return run

    report = tofu.audit(ADD, kernel, {"x": (6, 5), "y": (6, 5)})
    assert [finding.check for finding in report.refuted]
