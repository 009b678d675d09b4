"""Kernels derived from descriptions: for any operator, any box, with NumPy alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..kernel import Array, KernelCall
from .pieces import Piece, pieces
from .program import Program

__all__ = ["derive"]


def derive(call: KernelCall) -> Callable[[], None]:
    """The function that computes one box of the call's operator from its description.

    Raises `OperatorError` for opaque functions and for inputs that do not cover what the box reads.
    """
    box = tuple(call.box[name] for name in call.bound.variables)
    runs = [_derived(piece, call) for piece in pieces(call.bound, box)]
    if len(runs) == 1:
        return runs[0]

    def run() -> None:
        for part in runs:
            part()

    return run


def _derived(piece: Piece, call: KernelCall) -> Callable[[], None]:
    outputs = tuple(
        _taken(array, output.variables, piece, call)
        for array, output in zip(call.outputs, piece.lowered.outputs, strict=True)
    )
    program = Program(piece.lowered, replace(call, box=piece.ranges, outputs=outputs))
    program.contract()
    program.write_outputs()
    return program.steps.finish()


def _taken(array: Array, variables: tuple[str, ...], piece: Piece, call: KernelCall) -> Array:
    """The elements of an output that belong to a piece."""
    slices = [slice(None)] * len(variables)
    for dimension, name in enumerate(variables):
        if (part := piece.taken.get(name)) is not None:
            first = part.start - call.box[name][0]
            slices[dimension] = slice(first, first + part.step * (part.count - 1) + 1, part.step)
    return array[tuple(slices)]
