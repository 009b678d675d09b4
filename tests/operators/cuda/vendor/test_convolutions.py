"""Convolutions handed to a vendor's library compute what the descriptions say, on any box of any views."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from tofu import tdl
from tofu.operators import get
from tofu.operators.cuda.launch.commands import Convolution
from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.cuda.launch.workspace import DeviceWorkspace
from tofu.operators.cuda.vendor import convolutions
from tofu.operators.cuda.vendor.convolutions import Need, commands, supported
from tofu.operators.kernels.convolution.library_form import Pass
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.bound_operator import BoundOperator
from tofu.operators.stages.stage import derived

from ..arrays import Guarded, decode, guarded_call, random_box
from ..vendor_stand_ins import memory, run_convolution, view_of

TENSORS = ("data", "weight")
PASSES = tuple(Pass)


@dataclass(frozen=True)
class Filled:
    """Stands for the commands that set every element of a view."""

    view: DeviceView
    value: float


@dataclass(frozen=True)
class Fetched:
    """Stands for the commands that copy one view into another."""

    source: DeviceView
    target: DeviceView


@pytest.fixture(autouse=True)
def _moved_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies and fills are commands that NumPy can run."""
    monkeypatch.setattr(convolutions, "fill", lambda view, value: (Filled(view, value),))
    monkeypatch.setattr(convolutions, "fetch", lambda pairs: tuple(Fetched(*pair) for pair in pairs))


def run(issued: tuple[Any, ...]) -> None:
    for command in issued:
        match command:
            case Filled(view, value):
                memory(view)[...] = value
            case Fetched(source, target):
                memory(target)[...] = memory(source)
            case Convolution():
                run_convolution(command)


def no_need(_: Convolution) -> int:
    return 0


def made(call: KernelCall, workspace: DeviceWorkspace | None = None, need: Need = no_need) -> tuple[Any, ...]:
    return commands(call, workspace or DeviceWorkspace(), need)


def computed(call: KernelCall) -> tuple[Any, ...]:
    """Run a call's commands, with as much scratch as they take; what runs."""
    asked = DeviceWorkspace()
    made(call, asked)
    scratch = np.full(asked.used_bytes + 16, 0xFF, np.uint8)
    issued = made(call, DeviceWorkspace(scratch.ctypes.data))
    run(issued)
    return issued


def on_device(call: KernelCall, type: str = "float32") -> KernelCall:
    """The call on the same memory, as views."""
    inputs: Any = {name: view_of(array, type) for name, array in call.inputs.items()}
    outputs: Any = tuple(view_of(array, type) for array in call.outputs)
    return replace(call, inputs=inputs, outputs=outputs)


def bound_pass(computes: Pass, attributes: dict[str, Any], data: tuple[int, ...]) -> BoundOperator:
    """One stage of a convolution without bias, or of its gradients."""
    filters, groups = attributes["num_filter"], attributes.get("num_group", 1)
    shapes = {"data": data, "weight": (filters, data[1] // groups, *attributes["kernel"])}
    (stage,) = get("Convolution").stages({**attributes, "no_bias": True}, shapes)
    if computes is Pass.FORWARD:
        return stage.bind(shapes)
    shapes["grad_0"] = stage.bind(shapes).output_shapes[0]
    (adjoint,) = stage.adjoint("data" if computes is Pass.DATA_GRADIENT else "weight")
    return adjoint.bind({name: shapes[name] for name in adjoint.inputs})


def random_pass(computes: Pass, rng: np.random.Generator) -> BoundOperator:
    """A convolution over one to three dimensions whose windows may lie in the padding alone."""
    while True:
        count = int(rng.integers(1, 4))
        most = (9, 6, 4)[count - 1]
        kernel, stride, dilate = (tuple(map(int, rng.integers(1, high, count))) for high in (4, 4, 3))
        pad = tuple(int(rng.integers(0, k * d + 1)) for k, d in zip(kernel, dilate, strict=True))
        space = tuple(map(int, rng.integers(1, most + 1, count)))
        groups = int(rng.choice((1, 1, 2, 3)))
        sizes = zip(space, kernel, dilate, pad, strict=True)
        if all(rows + 2 * p > (k - 1) * d for rows, k, d, p in sizes):
            break
    attributes = {
        "kernel": kernel,
        "stride": stride,
        "dilate": dilate,
        "pad": pad,
        "num_filter": int(rng.integers(1, 3)) * groups,
        "num_group": groups,
    }
    return bound_pass(computes, attributes, (2, 2 * groups, *space))


def integers(bound: BoundOperator, rng: np.random.Generator) -> dict[str, Any]:
    """Tensors whose products are exact in any type."""
    return {name: rng.integers(-3, 4, shape).astype(float) for name, shape in bound.shapes.items()}


def guarded(
    bound: BoundOperator, box: Any, rng: np.random.Generator, type: str = "float32"
) -> tuple[Guarded, Any]:
    """A call on strided views between guards, and what the description says."""
    tensors = integers(bound, rng)
    call = guarded_call(bound, box, tensors, dict.fromkeys(tensors, type), [type], rng)
    expected = tdl.interpret(bound.description, bound.extents, tensors, bound.shapes, dict(call.call.box))
    return call, expected[0]


@pytest.mark.parametrize("computes", PASSES)
@pytest.mark.parametrize("number", [8, pytest.param(150, marks=pytest.mark.slow)])
def test_random_boxes(number: int, computes: Pass) -> None:
    rng = np.random.default_rng(PASSES.index(computes))
    seen = set()
    for _ in range(number):
        bound = random_pass(computes, rng)
        for box in (bound.full_box, random_box(bound, rng), random_box(bound, rng)):
            call, expected = guarded(bound, box, rng)
            seen |= {type(command) for command in computed(on_device(call.call))}
            np.testing.assert_array_equal(call.call.outputs[0], expected, str((bound.shapes, call.call.box)))
            assert call.intact()
    assert seen == {Filled, Fetched, Convolution}


@pytest.mark.parametrize("computes", PASSES)
def test_half_precision(computes: Pass) -> None:
    rng = np.random.default_rng(0)
    attributes = {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 1), "num_filter": 3}
    bound = bound_pass(computes, attributes, (2, 2, 5, 4))
    call, expected = guarded(bound, bound.full_box, rng, "bfloat16")
    computed(on_device(call.call, "bfloat16"))
    np.testing.assert_array_equal(decode(call.call.outputs[0], "bfloat16"), expected)


def dense_call(bound: BoundOperator, type: str = "float32") -> KernelCall:
    """A call of the whole operator on views that nothing lies behind."""
    regions = {name: tuple((0, size) for size in shape) for name, shape in bound.shapes.items()}
    inputs: Any = {name: DeviceView.dense(256, shape, type) for name, shape in bound.shapes.items()}
    outputs: Any = tuple(DeviceView.dense(256, shape, type) for shape in bound.output_shapes)
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    return KernelCall(bound, box, inputs, regions, outputs)


def commanded(computes: Pass, attributes: dict[str, Any], data: tuple[int, ...]) -> tuple[Any, ...]:
    """The commands of a whole convolution without gaps in memory."""
    call = dense_call(bound_pass(computes, attributes, data))
    assert supported(call)
    return made(call)


def test_one_command_for_each_group() -> None:
    attributes = {"kernel": (3, 3), "pad": (1, 1), "num_filter": 6, "num_group": 3}
    first, second, third = commanded(Pass.FORWARD, attributes, (2, 12, 5, 5))
    assert [each.data.shape for each in (first, second, third)] == [(2, 4, 5, 5)] * 3
    assert second.output.address - first.output.address == 2 * 5 * 5 * 4
    assert third.weight.address - second.weight.address == 2 * 4 * 3 * 3 * 4


@pytest.mark.parametrize("computes", PASSES)
def test_rows_behind_the_last_window_stay(computes: Pass) -> None:
    """They are left to the library, which expects fewer than the stride."""
    (command,) = commanded(computes, {"kernel": (1, 1), "stride": (2, 2), "num_filter": 2}, (1, 2, 6, 6))
    assert command.data.shape == (1, 2, 6, 6)
    assert command.geometry.after == (-1, -1)


def test_rows_that_no_window_reads_are_cut_and_zero() -> None:
    """A worker's data may begin with rows that only others read; their gradient is zero."""
    bound = bound_pass(Pass.DATA_GRADIENT, {"kernel": (3,), "stride": (3,), "num_filter": 2}, (1, 2, 9))
    call = dense_call(bound)
    last = replace(
        call,
        inputs={**call.inputs, "grad_0": cast(Any, DeviceView.dense(256, (1, 2, 1), "float32"))},
        regions={**call.regions, "grad_0": ((0, 1), (0, 2), (2, 3))},
    )
    zeros, command = made(last)
    assert zeros == Filled(cast(DeviceView, call.outputs[0]), 0)
    assert isinstance(command, Convolution)
    assert (command.data.shape, command.geometry.before) == ((1, 2, 3), (0,))
    assert command.data.address == 256 + 6 * 4


def test_windows_in_the_padding_alone_are_left_out() -> None:
    zeros, command = commanded(Pass.FORWARD, {"kernel": (1,), "pad": (2,), "num_filter": 2}, (1, 2, 3))
    assert zeros.view.shape == (1, 2, 7)
    assert (command.output.shape, command.geometry.before, command.geometry.after) == ((1, 2, 3), (0,), (0,))


def test_empty_sums_are_zero() -> None:
    call = dense_call(bound_pass(Pass.FORWARD, {"kernel": (3,), "num_filter": 2}, (1, 2, 5)))
    empty = replace(call, box={**call.box, "c": (1, 1)})
    assert made(empty) == (Filled(cast(DeviceView, call.outputs[0]), 0),)


def test_an_empty_output_needs_nothing() -> None:
    call = dense_call(bound_pass(Pass.FORWARD, {"kernel": (3,), "num_filter": 2}, (1, 2, 5)))
    nothing: Any = DeviceView.dense(256, (0, 2, 3), "float32")
    assert made(replace(call, outputs=(nothing,))) == ()


def test_scratch_is_given_where_it_is_asked_for() -> None:
    attributes = {"kernel": (3,), "num_filter": 4, "num_group": 2}
    call = dense_call(bound_pass(Pass.FORWARD, attributes, (1, 4, 5)))
    workspace = DeviceWorkspace(4096 + 64)
    issued = made(call, workspace, lambda command: 100 if command.weight.address > 256 else 0)
    assert [(each.workspace, each.workspace_bytes) for each in issued] == [(0, 0), (4096 + 256, 100)]
    assert workspace.used_bytes >= 256 - 64 + 100


def test_what_the_library_computes() -> None:
    attributes = {"kernel": (3, 3), "num_filter": 4, "num_group": 2}
    bound = bound_pass(Pass.FORWARD, attributes, (2, 4, 5, 5))
    dense = dense_call(bound)
    assert supported(dense)
    assert supported(dense_call(bound, "bfloat16"))
    assert not supported(dense_call(bound, "float64"))
    mixed: Any = DeviceView.dense(256, bound.shapes["data"], "float16")
    assert not supported(replace(dense, inputs={**dense.inputs, "data": mixed}))
    turned: Any = replace(dense.outputs[0], strides=tuple(-step for step in dense.outputs[0].strides))
    assert not supported(replace(dense, outputs=(turned,)))


def test_weights_with_gaps_are_copied() -> None:
    call = dense_call(bound_pass(Pass.FORWARD, {"kernel": (3, 3), "num_filter": 4}, (2, 4, 5, 5)))
    *_, dense = made(replace(call, box={**call.box, "f": (1, 3)}))
    assert dense.weight.address == 256 + 4 * 9 * 4
    copy, packed = made(replace(call, box={**call.box, "c": (1, 3)}), DeviceWorkspace(4096))
    assert (copy.source.address, copy.target) == (256 + 9 * 4, packed.weight)
    assert packed.weight == DeviceView.dense(4096, (4, 2, 3, 3), "float32")


def test_other_stages_are_left_to_their_descriptions() -> None:
    bound = bound_pass(Pass.FORWARD, {"kernel": (3, 3), "num_filter": 4}, (2, 4, 5, 5))
    assert not supported(dense_call(derived(bound.description).bind(bound.shapes)))
