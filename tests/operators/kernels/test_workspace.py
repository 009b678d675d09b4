"""Scratch shared by kernels: what others leave there must not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tofu.analyzer.indices.region import to_region
from tofu.operators import get, names
from tofu.operators.audit.subjects import Missing, complete_shapes, stages
from tofu.operators.kernels.complement import borders
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.kernels.workspace import ALIGNMENT_BYTES, Workspace
from tofu.operators.stages.bound_operator import BoundOperator

NAN_BYTE = 0xFF


def test_every_kernel_starts_at_the_same_place() -> None:
    workspace = Workspace(1024)
    first = workspace.array((3, 5), np.float32)
    second = workspace.array((2,), np.float64)
    assert not np.may_share_memory(first, second)
    assert first.ctypes.data % ALIGNMENT_BYTES == second.ctypes.data % ALIGNMENT_BYTES == 0
    assert workspace.used_bytes == 2 * ALIGNMENT_BYTES
    workspace.restart()
    assert workspace.used_bytes == 0
    assert workspace.array((15,), np.float32).ctypes.data == first.ctypes.data


def test_parts_of_a_kernel_share_and_the_largest_counts() -> None:
    workspace = Workspace(4096)
    sizes = (100, 700, 300)
    addresses = set()
    for size in sizes:
        workspace.rewind()
        addresses.add(workspace.array((size,), np.uint8).ctypes.data)
    assert len(addresses) == 1
    assert workspace.used_bytes == 704


def test_beyond_its_memory_a_workspace_measures() -> None:
    workspace = Workspace()
    arrays = [workspace.array((1000,), np.float32) for _ in range(3)]
    assert not any(np.may_share_memory(a, b) for a in arrays for b in arrays if a is not b)
    assert workspace.used_bytes == 3 * 4032
    exact = Workspace(workspace.used_bytes)
    assert all(np.may_share_memory(exact.block, exact.array((1000,), np.float32)) for _ in range(3))


def test_bands_are_what_no_array_has() -> None:
    workspace = Workspace(8192, band_bytes=64)
    workspace.array((100,), np.uint8)
    workspace.hold()
    workspace.array((10,), np.uint8)
    workspace.rewind()
    workspace.array((500,), np.uint8)
    begin = workspace.block.ctypes.data
    found = [(band.ctypes.data - begin, band.nbytes) for band in workspace.bands()]
    assert found == [(0, 64), (164, 92), (756, 76)]
    assert workspace.used_bytes == 832
    workspace.restart()
    assert [band.nbytes for band in workspace.bands()] == [0]
    assert workspace.array((3,), np.uint8).ctypes.data == begin + 64


def test_kept_arrays_count_once() -> None:
    workspace = Workspace()
    array = np.zeros(10)
    workspace.keep((array, np.zeros(2)))
    workspace.keep((array,))
    assert workspace.kept_bytes == 96


@pytest.mark.parametrize("inside", [(slice(1, 3), slice(0, 5)), (slice(0, 4), slice(2, 2)), (slice(4, 4),)])
def test_borders_cover_what_lies_outside_once(inside: tuple[slice, ...]) -> None:
    array = np.zeros((4, 5))
    for border in borders(array, inside):
        border += 1
    expected = np.ones((4, 5))
    expected[inside] = 0
    np.testing.assert_array_equal(array, expected)


@dataclass
class Prepared:
    call: KernelCall
    run: Callable[[], None]
    expected: list[np.ndarray]


def calls(name: str) -> Iterator[KernelCall]:
    """The whole box of every stage of an operator and of its gradient, and the parts of every strategy."""
    operator = get(name)
    assert operator.example is not None
    example, generator = operator.example, np.random.default_rng(3)
    values = example.tensors(generator)
    shapes = complete_shapes(operator, example.shapes, example.attributes)
    for found in stages(operator, shapes, example.attributes):
        if isinstance(found, Missing) or found[0].description.opaques:
            continue
        stage, known = found
        bound = stage.bind(known)
        for tensor in bound.shapes:
            if tensor not in values or values[tensor].shape != bound.shapes[tensor]:
                values[tensor] = generator.uniform(0.1, 0.9, bound.shapes[tensor])
        yield from boxes(bound, {tensor: values[tensor].astype(np.float32) for tensor in bound.shapes})


def boxes(bound: BoundOperator, tensors: dict[str, np.ndarray]) -> Iterator[KernelCall]:
    splits = [bound.full_box[None]]
    splits += [bound.split([s.variable], [2]) for s in bound.strategies if bound.extents[s.variable] > 1]
    for box in np.concatenate(splits):
        regions = {
            name: to_region(found[0])
            for name, found in bound.input_regions(box[None]).items()
            if name in bound.reads
        }
        inputs = {name: tensors[name][tuple(slice(*i) for i in region)] for name, region in regions.items()}
        places = [to_region(found[0]) for found in bound.output_regions(box[None])]
        outputs = tuple(np.empty([stop - start for start, stop in place], np.float32) for place in places)
        yield KernelCall(
            bound, dict(zip(bound.variables, to_region(box), strict=True)), inputs, regions, outputs
        )


@pytest.mark.parametrize("name", names())
def test_kernels_do_not_depend_on_what_others_left(name: str) -> None:
    """All kernels of an operator in one workspace that holds NaN before each run."""
    measured, prepared = [], []
    with np.errstate(all="ignore"):
        for call in calls(name):
            alone = call.bound.prepare(call)
            alone()
            measured.append(call.workspace.used_bytes)
            prepared.append(Prepared(call, alone, [output.copy() for output in call.outputs]))
        shared = Workspace(max(measured, default=0))
        for kernel, need in zip(prepared, measured, strict=True):
            shared.restart()
            kernel.run = kernel.call.bound.prepare(replace(kernel.call, workspace=shared))
            assert shared.used_bytes == need
        for kernel in (*prepared, *reversed(prepared)):
            shared.block.fill(NAN_BYTE)
            for output in kernel.call.outputs:
                output.fill(np.nan)
            kernel.run()
            for output, expected in zip(kernel.call.outputs, kernel.expected, strict=True):
                np.testing.assert_array_equal(output, expected)
