"""Every entry of a kernel, on random boxes, against the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tofu import tdl
from tofu.analyzer.indices.affine import reads_elements
from tofu.analyzer.indices.region import to_region
from tofu.operators.cuda import CudaKernel, Launch, launch_of, launches
from tofu.operators.cuda.launch.launch import fits_32_bits
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.bound_operator import BoundOperator
from tofu.tdl import ast

from .arrays import Array, Guarded, decode, encode, guarded_call, held, random_box
from .machine import Machine

TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-12, "int32": 0, "int64": 0}
"""Relative to the element, and to the largest element of the output."""

LEAST = 1e-2
"""Outputs that are all smaller are compared as if they had this element: sums that cancel are rounding."""

FEW_THREADS = 4
"""The threads of a block in one of the runs: fewer than it has elements to reduce, or outputs."""


def compare(
    machine: Machine,
    bound: BoundOperator,
    kernel: CudaKernel,
    dtypes: Mapping[str, str],
    outputs: Sequence[str],
    tensors: Mapping[str, Array] | None = None,
    boxes: int = 3,
) -> None:
    """Raise AssertionError unless the kernel computes what the description says.

    The first box is the whole one. Each is computed as `launches` has it, and by every entry alone with
    32-bit and with 64-bit indices; with dense arrays that lie alone, so that an address sanitizer sees an
    access next to them, and with strided views in poisoned memory.
    """
    rng = np.random.default_rng(5)
    known = held(random_tensors(bound, rng) if tensors is None else tensors, dtypes)
    for number in range(boxes):
        box = random_box(bound, rng) if number else bound.full_box
        intervals = dict(zip(bound.variables, to_region(box), strict=True))
        expected = tdl.interpret(bound.description, bound.extents, known, bound.shapes, box=intervals)
        for layout in (None, rng):
            guarded = guarded_call(bound, box, known, dtypes, outputs, layout)
            for chosen in _plans(kernel, guarded.call):
                _run(machine, kernel, guarded, chosen)
                for position in _written(kernel, chosen):
                    place = f"output {position}, {chosen}, {intervals}"
                    agree(guarded.call.outputs[position], expected[position], outputs[position], place)


def _run(machine: Machine, kernel: CudaKernel, guarded: Guarded, chosen: tuple[Launch, ...]) -> None:
    guarded.reset()
    for launch in chosen:
        flags = machine.run(kernel, launch, guarded.call)
        assert not any(flags), f"{launch.function}: indices from data are marked: {flags}"
    assert guarded.intact(), f"{chosen}: memory outside of the outputs was written, {dict(guarded.call.box)}"


def _written(kernel: CudaKernel, chosen: tuple[Launch, ...]) -> list[int]:
    """The outputs that the launches compute."""
    entries = (entry for group in kernel.groups for entry in group)
    functions = {launch.function for launch in chosen}
    return sorted(
        {
            position
            for entry in entries
            if functions & {entry.function(True), entry.function(False)}
            for position in entry.outputs
        }
    )


def _plans(kernel: CudaKernel, call: KernelCall) -> Iterator[tuple[Launch, ...]]:
    """Launches that belong together: as chosen by the box, then each entry alone."""
    yield launches(kernel, call)
    widths = (True, False) if fits_32_bits(kernel.parameters, call) else (False,)
    for entry in (entry for group in kernel.groups for entry in group):
        if any(call.outputs[position].size for position in entry.outputs):
            yield from ((launch_of(entry, call.box, narrow),) for narrow in widths)
            wide = launch_of(entry, call.box, False)
            blocks = wide.blocks if entry.cooperative else -(-wide.blocks * wide.threads // FEW_THREADS)
            yield (replace(wide, blocks=blocks, threads=FEW_THREADS),)


def agree(output: Array, expected: Array, dtype: str, place: str, times: float = 1) -> None:
    """Raise AssertionError unless an output holds what is expected, to `times` the precision of its type."""
    with np.errstate(all="ignore"):
        wanted = decode(encode(expected, dtype), dtype).astype(float)
    found = decode(output, dtype).astype(float)
    finite = np.abs(wanted[np.isfinite(wanted)])
    tolerance = times * TOLERANCE[dtype]
    np.testing.assert_allclose(found, wanted, tolerance, tolerance * finite.max(initial=LEAST), err_msg=place)


def random_tensors(bound: BoundOperator, rng: np.random.Generator) -> dict[str, Array]:
    """Multiples of 1/8, which every type holds exactly; whole numbers in range where they are indices."""
    tensors: dict[str, Any] = {
        name: rng.integers(-24, 25, bound.shapes[name]) / 8 for name in bound.description.tensor_names
    }
    for node in tdl.walk(bound.description):
        if isinstance(node, ast.Element):
            for axis, index in enumerate(node.indices):
                if reads_elements(index):
                    limit = bound.shapes[node.tensor][axis]
                    for inner in tdl.walk(index):
                        if isinstance(inner, ast.Element):
                            shape = bound.shapes[inner.tensor]
                            tensors[inner.tensor] = rng.integers(min(1, limit - 1), limit, shape)
    return tensors
