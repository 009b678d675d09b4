"""Write results: a step writes into the kernel's output if it can, else its register is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...kernels.kernel import Array
from ..nodes.affine import Ranges
from ..nodes.blocks import blocks
from ..nodes.functions import is_costly
from ..nodes.ir import Apply, Load, Node, walk
from ..steps.steps import ArrayStep, Operand, Register, Value, convert, fixed, register
from ..steps.views import narrow

if TYPE_CHECKING:
    from .program import KernelProgram


def write_outputs(program: KernelProgram) -> None:
    """Write steps for all outputs over the whole box. Outputs with the same variables share blocks."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, output in enumerate(program.lowered.outputs):
        if program.given.get(output.value) is program.views[number]:
            continue
        groups.setdefault(tuple(sorted(output.variables)), []).append(number)
    outer = [program.lowered.variables[axis] for axis in program.order]
    for names, numbers in groups.items():
        repeated = _repeated(program, numbers)
        ordered = sorted(
            (name for name in outer if name in names),
            key=lambda name: sum(name not in node.free for node in repeated),
        )
        for ranges in blocks(ordered, program.box, program.lengths):
            program.forget(ranges, keep=repeated)
            _write_block(program, numbers, ranges)


def _repeated(program: KernelProgram, numbers: list[int]) -> set[Node]:
    """Return nodes that take long and do not depend on all variables of the outputs.

    Blocks that differ in the other variables alone follow one another, so these are computed once for all.
    """
    found: set[Node] = set()
    for number in numbers:
        output = program.lowered.outputs[number]
        for node in walk(output.value, program.given):
            gathers = isinstance(node, Load) and not node.affine
            long = gathers or (isinstance(node, Apply) and is_costly(node.function) and node.loads)
            if long and node.free < set(output.variables):
                found.add(node)
    return found


def _write_block(program: KernelProgram, numbers: list[int], ranges: Ranges) -> None:
    start = len(program.steps.items)
    results = []
    for number in numbers:
        value = program.value(program.lowered.outputs[number].value, ranges)
        if _overwritten(program, value, number, numbers):
            assert isinstance(value, Value)
            own = register(value.shape, value.dtype, program.order)
            value = program.steps.add(convert, (value,), own, inplace=False)
        results.append((number, value, len(program.steps.items) - 1))
    for number, result, step in results:
        target = narrow(program.views[number], program.axes, ranges, program.box)
        if step < start or not _redirect(program, number, target, result, step):
            program.steps.add(convert, (result,), fixed(target), inplace=False)


def _overwritten(program: KernelProgram, value: Operand, number: int, numbers: list[int]) -> bool:
    """Tell whether another output that is written first may lie over the input that a result is."""
    return (
        isinstance(value, Value)
        and isinstance(value.home, np.ndarray)
        and any(
            program.aliased[other] and np.may_share_memory(value.home, program.views[other])
            for other in numbers
            if other != number
        )
    )


def _redirect(program: KernelProgram, number: int, target: Array, result: Operand, step: int) -> bool:
    """Let the step that computes a result write it to the output; False if a copy is needed."""
    if not isinstance(result, Value) or not isinstance(result.home, Register):
        return False
    home, writer = result.home, program.steps.items[step]
    if writer.out.home is not home or home.target is not None:
        return False
    if result.shape != target.shape or result.dtype != target.dtype:
        return False
    if program.aliased[number]:
        later = program.steps.items[step + 1 if writer.inplace else step :]
        if home.writes > 1 or any(_reads(other, target) for other in later):
            return False
    home.target = target
    home.exclusive = not program.aliased[number]
    return True


def _reads(step: ArrayStep, target: Array) -> bool:
    return any(
        isinstance(argument, Value)
        and isinstance(argument.home, np.ndarray)
        and argument.home.flags.writeable
        and np.may_share_memory(argument.home, target)
        for argument in step.arguments
    )
