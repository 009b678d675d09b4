"""ONNX nodes with graphs inside them: a branch is chosen, and a loop is unrolled, when the model is read.

The condition of an If, the number of steps of a Loop and its condition after every step must be constants, or
follow from constants. A number of steps is a constant in bodies: values that are computed from it alone are
folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...errors import GraphError
from .compose import joined, picked, reshape
from .node import Adapter, OnnxNode
from .operand import OnnxOperand, UnsupportedNodeError, constant


def branch(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return the outputs of the branch that the condition chooses."""
    chosen = "then_branch" if node.value(0).reshape(()) else "else_branch"
    return node.body(chosen).run(None, ())


def loop(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Repeat the body while its condition holds, and stack what each step puts out besides the state."""
    body, states = node.body("body"), _states(node.inputs[2:])
    steps = int(node.value(0).reshape(())) if node.has(0) else None
    goes_on = bool(node.value(1).reshape(())) if node.has(1) else True
    body.expect(steps or 0)
    rows: list[Sequence[OnnxOperand]] = []
    while goes_on and (steps is None or len(rows) < steps):
        step = len(rows)
        given = (constant(step, np.int64), constant(True, np.bool_), *states)
        condition, *found = body.run(str(step), given)
        states, row = found[: len(states)], found[len(states) :]
        rows.append(row)
        if steps is None or len(rows) < steps:
            goes_on = _holds(condition, step)
    return [*states, *_stacked(rows, [0] * (body.outputs - 1 - len(states)))]


def _holds(condition: OnnxOperand, step: int) -> bool:
    """Return the value of a Loop's condition. Raises UnsupportedNodeError if only a run says it."""
    if condition.known is None:
        raise UnsupportedNodeError(
            f"the condition after step {step} depends on data; give the Loop a number of steps, and a "
            "condition that is a constant"
        )
    return bool(condition.known.reshape(()))


def scan(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Repeat the body for every slice of the scanned inputs, and stack what each step puts out."""
    if node.opset < 9:
        raise UnsupportedNodeError(
            "Scan of version 8, which has a batch; convert the model by onnx.version_converter"
        )
    body, scanned = node.body("body"), node.integer("num_scan_inputs", 1)
    if not 1 <= scanned <= len(node.inputs):
        raise GraphError(f"num_scan_inputs is {scanned}, but the node has {len(node.inputs)} inputs")
    states, inputs = _states(node.inputs[:-scanned]), _states(node.inputs[-scanned:])
    stacks = body.outputs - len(states)
    axes = node.integers("scan_input_axes", None, [0] * scanned)
    axes = tuple(_axis(axis, each.ndim) for axis, each in zip(axes, inputs, strict=True))
    backwards = node.integers("scan_input_directions", None, [0] * scanned)
    lengths = {each.shape[axis] for each, axis in zip(inputs, axes, strict=True)}
    if len(lengths) != 1:
        raise GraphError(f"the scanned inputs have {sorted(lengths)} steps, but must have as many")
    (length,) = lengths
    body.expect(length)
    rows: list[Sequence[OnnxOperand]] = []
    for step in range(length):
        slices = [
            picked(each, axis, length - 1 - step if back else step)
            for each, axis, back in zip(inputs, axes, backwards, strict=True)
        ]
        found = body.run(str(step), (*states, *slices))
        states = found[: len(states)]
        rows.append(found[len(states) :])
    ends = node.integers("scan_output_directions", None, [0] * stacks)
    places = node.integers("scan_output_axes", None, [0] * stacks)
    return [*states, *_stacked(rows, places, ends)]


def _states(operands: Sequence[OnnxOperand | None]) -> list[OnnxOperand]:
    """Return operands, none of which may be left out. Raises UnsupportedNodeError."""
    found = [each for each in operands if each is not None]
    if len(found) < len(operands):
        raise UnsupportedNodeError("a state that is left out; give each a start value")
    return found


def _axis(axis: int, rank: int) -> int:
    """Return a dimension counted from the front. Raises UnsupportedNodeError."""
    if not -rank <= axis < rank:
        raise UnsupportedNodeError(f"axis {axis} of a tensor of {rank} dimensions")
    return axis % rank


def _stacked(
    rows: Sequence[Sequence[OnnxOperand]], axes: Sequence[int], backwards: Sequence[int] = ()
) -> Iterator[OnnxOperand]:
    """Yield what the steps put out in each place, stacked along a new dimension."""
    if not rows and axes:
        raise UnsupportedNodeError("no steps, and outputs with one row for each: tensors without elements")
    for place, axis in enumerate(axes):
        parts = [row[place] for row in rows]
        axis = _axis(axis, parts[0].ndim + 1)
        shapes = {part.shape for part in parts}
        if len(shapes) > 1:
            raise UnsupportedNodeError(f"steps whose rows have the shapes {sorted(shapes)}")
        parts = parts[::-1] if place < len(backwards) and backwards[place] else parts
        yield joined([reshape(part, _widened(part.shape, axis)) for part in parts], axis)


def _widened(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis:])


ADAPTERS: Mapping[str, Adapter] = {"If": branch, "Loop": loop, "Scan": scan}
