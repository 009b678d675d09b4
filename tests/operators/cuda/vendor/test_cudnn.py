"""Plans of the library for convolutions, chosen for a card that this machine need not have."""

from __future__ import annotations

import importlib.util
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tofu import models
from tofu.errors import ExecutionError
from tofu.operators.cuda.launch.commands import Convolution
from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.cuda.launch.workspace import DeviceWorkspace
from tofu.operators.cuda.vendor.convolutions import commands, supported
from tofu.operators.cuda.vendor.cudnn import (
    ExecutionPlan,
    Plans,
    TensorDescriptor,
    close_handle,
    open_handle,
    signature,
)
from tofu.operators.kernels import convolution as kernels
from tofu.operators.kernels.convolution.library_form import Pass, WindowGeometry
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.bound_operator import BoundOperator

Answer = tuple[str, int] | str
Planned = Callable[..., list[Answer]]

ATTACHED = (kernels.ConvolutionOutput, kernels.ConvolutionDataGradient, kernels.ConvolutionWeightGradient)
CHANNELS_LAST = {4: (0, 2, 3, 1)}
SAMPLE = ("lenet", "inception-v3", "wresnet-50-4")

GEOMETRY = WindowGeometry((1, 1), (1, 1), (1, 1), (1, 1))


def dense(shape: Sequence[int], type: str = "float32", address: int = 1 << 20) -> DeviceView:
    return DeviceView.dense(address, tuple(shape), type)


def three_by_three(computes: Pass = Pass.FORWARD, type: str = "float32") -> Convolution:
    views = dense((8, 64, 28, 28), type), dense((64, 64, 3, 3), type), dense((8, 64, 28, 28), type)
    return Convolution(computes, *views, GEOMETRY)


@pytest.fixture(scope="module")
def planned() -> Iterator[Planned]:
    """`planned(commands, **options)`: what is planned for each with these options of `Plans`."""
    if importlib.util.find_spec("cudnn") is None:
        pytest.skip("nvidia-cudnn-frontend is not installed")
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("there is no C compiler to stand in for a driver")
    command = [sys.executable, str(Path(__file__).with_name("planning.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None

        def answered(issued: Iterable[Convolution], **options: Any) -> list[Answer]:
            pickle.dump((list(issued), options), requests)
            requests.flush()
            return list(pickle.load(answers))

        yield answered
        requests.close()


def whole(bound: BoundOperator, type: str, order: dict[int, Any]) -> KernelCall:
    """A call of all of an operator, on dense views."""
    views: list[Any] = [
        DeviceView.dense(1 << 20, shape, type, order.get(len(shape)))
        for shape in (*bound.shapes.values(), *bound.output_shapes)
    ]
    inputs = dict(zip(bound.shapes, views, strict=False))
    regions = {name: tuple((0, size) for size in shape) for name, shape in bound.shapes.items()}
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    return KernelCall(bound, box, inputs, regions, tuple(views[len(inputs) :]))


@cache
def bound_convolutions(names: tuple[str, ...]) -> tuple[BoundOperator, ...]:
    """All convolutions that training these models runs, gradients included, each once."""
    operations = (each for name in names for each in models.get(name).training_graph().operations)
    found = {each.bound: None for each in operations if isinstance(each.bound.kernel, ATTACHED)}
    return tuple(found)


def convolutions(names: tuple[str, ...], type: str, order: dict[int, Any]) -> list[Convolution]:
    """Their commands, each once."""
    found: dict[Any, Convolution] = {}
    for bound in bound_convolutions(names):
        call = whole(bound, type, order)
        assert supported(call)
        for command in commands(call, DeviceWorkspace(), lambda _: 0):
            assert isinstance(command, Convolution)
            found.setdefault(signature(command), command)
    return list(found.values())


@pytest.mark.parametrize("type", ["float32", "bfloat16"])
def test_convolutions_of_a_sample_have_plans(planned: Planned, type: str) -> None:
    commands = convolutions(SAMPLE, type, {})[::11]
    assert {command.computes for command in commands} == set(Pass)
    assert [each for each in planned(commands) if isinstance(each, str)] == []


@pytest.mark.slow
@pytest.mark.parametrize("order", [{}, CHANNELS_LAST], ids=["channels first", "channels last"])
@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16"])
def test_all_convolutions_of_the_zoo_have_plans(planned: Planned, type: str, order: dict[int, Any]) -> None:
    commands = convolutions(models.names(), type, order)
    assert len(commands) > 500
    found = planned(commands)
    assert [each for each in found if isinstance(each, str)] == []
    assert max(nbytes for _, nbytes in found) < 4 << 30


@pytest.mark.parametrize("number", [15, pytest.param(300, marks=pytest.mark.slow)])
def test_strided_and_unaligned_views_have_plans(planned: Planned, number: int) -> None:
    """Halos, groups, and boxes of others' tensors, wherever they begin."""
    rng = np.random.default_rng(2)
    cut = [random_convolution(rng, type) for _ in range(number) for type in ("float32", "bfloat16")]
    assert [each for each in planned(cut) if isinstance(each, str)] == []


def random_convolution(rng: np.random.Generator, type: str) -> Convolution:
    count = int(rng.integers(1, 4))
    taps, stride, dilate = (rng.integers(1, high, count) for high in (5, 4, 4))
    reach = (taps - 1) * dilate
    before, most_after = rng.integers(0, reach + 1), rng.integers(0, reach + 1)
    rows = rng.integers(1, 12, count) + np.maximum(0, reach - before - most_after)
    places = (rows + before + most_after - reach - 1) // stride + 1
    after = (places - 1) * stride + reach + 1 - before - rows
    images, channels, filters = (int(each) for each in rng.choice((1, 2, 3, 8, 16, 33), 3))
    numbers = (tuple(map(int, each)) for each in (stride, dilate, before, after))
    return Convolution(
        Pass(rng.choice(list(Pass))),
        cut_view(rng, (images, channels, *rows), type),
        dense(tuple(map(int, (filters, channels, *taps))), type),
        cut_view(rng, (images, filters, *places), type),
        WindowGeometry(*numbers),
    )


def cut_view(rng: np.random.Generator, shape: Iterable[Any], type: str) -> DeviceView:
    """A part of a larger tensor that lies in either order."""
    lengths = [int(length) for length in shape]
    margins = rng.integers(0, 3, len(lengths))
    order = (0, *range(2, len(lengths)), 1) if rng.random() < 0.5 else None
    larger = tuple(length + int(margin) for length, margin in zip(lengths, margins, strict=True))
    begins = [int(rng.integers(0, margin + 1)) for margin in margins]
    part = tuple(slice(first, first + length) for first, length in zip(begins, lengths, strict=True))
    return DeviceView.dense(1 << 20, larger, type, order)[part]


def test_tensor_cores_round_float32_only_if_asked_to(planned: Planned) -> None:
    commands = [three_by_three(computes) for computes in Pass]
    exact, rounded = planned(commands), planned(commands, tf32=True)
    assert all(one[0] != other[0] for one, other in zip(exact, rounded, strict=True))


def test_workspaces_can_be_bounded(planned: Planned) -> None:
    command = three_by_three(Pass.WEIGHT_GRADIENT)
    ((_, free),) = planned([command])
    assert free > 0
    ((_, bounded),) = planned([command], most_workspace_bytes=free - 1)
    assert bounded < free


def test_what_the_library_refuses_is_named(planned: Planned) -> None:
    command = three_by_three()
    gaps = replace(command, weight=dense((64, 128, 3, 3))[slice(None), slice(0, 64)])
    (refused,) = planned([gaps])
    assert isinstance(refused, str)
    assert refused.startswith(
        "cuDNN has no plan for the forward convolution of float32 with data (8, 64, 28, 28)"
    )


def test_a_plan_depends_on_no_address_but_its_alignment() -> None:
    command = three_by_three()
    moved = replace(command, data=replace(command.data, address=command.data.address + 4096), workspace=64)
    assert signature(moved) == signature(command)
    shifted = replace(command, data=replace(command.data, address=command.data.address + 8))
    assert signature(shifted).data.alignment_bytes == 8
    assert signature(command).data.alignment_bytes == 16


def test_one_dimension_becomes_two() -> None:
    data, weight, output = dense((2, 3, 9)), dense((4, 3, 2)), dense((2, 4, 4))
    command = Convolution(Pass.FORWARD, data, weight, output, WindowGeometry((2,), (1,), (0,), (-1,)))
    flat = signature(command)
    assert flat.data == TensorDescriptor((2, 3, 1, 9), (27, 9, 9, 1), "float32", 16)
    assert flat.weight.shape == (4, 3, 1, 2)
    assert flat.geometry == WindowGeometry((1, 2), (1, 1), (0, 0), (0, -1))


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cudnn", None)
    with pytest.raises(ExecutionError, match=r"convolution on a GPU needs cudnn, .*pip install '\.\[gpu"):
        Plans(described="{}").plan(three_by_three())


def test_the_front_end_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise RuntimeError("Unable to find the library\nat all")

    monkeypatch.setitem(sys.modules, "cudnn", SimpleNamespace(backend_version=fail))
    with pytest.raises(
        ExecutionError, match=r"\(Unable to find the library\): pip install '\.\[gpu-cuda13\]'"
    ):
        Plans(described="{}").plan(three_by_three())


def test_a_handle_is_bound_to_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    library = SimpleNamespace(
        backend_version=lambda: 92800,
        create_handle=lambda: 5,
        set_stream=lambda *arguments: calls.append(arguments),
        destroy_handle=calls.append,
    )
    monkeypatch.setitem(sys.modules, "cudnn", library)
    assert open_handle(9) == 5
    close_handle(5)
    assert calls == [(5, 9), 5]


def test_a_device_that_the_library_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise RuntimeError("cudaGetDeviceCount failed")

    library = SimpleNamespace(backend_version=lambda: 92800, create_handle=fail)
    monkeypatch.setitem(sys.modules, "cudnn", library)
    with pytest.raises(ExecutionError, match="cannot be used on this device: cudaGetDeviceCount failed"):
        open_handle(9)


def test_a_plan_runs_on_the_command_s_addresses() -> None:
    calls: list[Any] = []
    graph = SimpleNamespace(execute_plan_at_index=lambda *arguments: calls.append(arguments))
    command = replace(three_by_three(), workspace=96, data=dense((8, 64, 28, 28), address=32))
    ExecutionPlan(graph, 5, "engine", 64).execute(command, 7)
    assert calls == [({1: 32, 2: 1 << 20, 3: 1 << 20}, 96, 5, 7)]


def test_a_failure_names_the_convolution() -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("CUDNN_STATUS_EXECUTION_FAILED\nand more")

    graph = SimpleNamespace(execute_plan_at_index=fail)
    with pytest.raises(
        ExecutionError, match=r"convolution of float32.*failed: CUDNN_STATUS_EXECUTION_FAILED$"
    ):
        ExecutionPlan(graph, 0, "engine", 0).execute(three_by_three(), 7)
