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
        results.append((number, value))
    for number, result in results:
        target = narrow(program.views[number], program.axes, ranges, program.box)
        if not _redirect(program, number, target, result, start):
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


def _redirect(program: KernelProgram, number: int, target: Array, result: Operand, start: int) -> bool:
    """Let the step that computes a result write it to the output; False if a copy is needed.

    The steps of the block begin at `start`.
    """
    if not isinstance(result, Value) or not isinstance(result.home, Register):
        return False
    home, steps = result.home, program.steps.items
    if home.target is not None or result.shape != target.shape or result.dtype != target.dtype:
        return False
    written = [index for index in range(start, len(steps)) if steps[index].out.home is home]
    if len(written) != home.writes or steps[written[-1]].out.strides != result.strides:
        return False
    free_from = _free_from(steps, start, target) if program.aliased[number] else 0
    if written[0] < free_from:
        return False
    home.target, home.free_from = target, free_from
    return True


def _free_from(steps: list[ArrayStep], start: int, target: Array) -> int:
    """Return the number of the first step that may write an output which lies over an input.

    It is the last step that reads the input, if that step may write over its arguments, or the next one.
    """
    for number in reversed(range(start, len(steps))):
        if _reads(steps[number], target):
            return number if steps[number].inplace else number + 1
    return start


def _reads(step: ArrayStep, target: Array) -> bool:
    return any(
        isinstance(argument, Value)
        and isinstance(argument.home, np.ndarray)
        and argument.home.flags.writeable
        and np.may_share_memory(argument.home, target)
        for argument in step.arguments
    )
