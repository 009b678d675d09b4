"""Kernels derived from descriptions: for any operator, any box, with NumPy alone."""

from __future__ import annotations

from collections.abc import Callable

from ..kernel import KernelCall
from .ir import lower
from .program import Program

__all__ = ["derive"]


def derive(call: KernelCall) -> Callable[[], None]:
    """The function that computes one box of the call's operator from its description.

    Raises `OperatorError` for opaque functions and for inputs that do not cover what the box reads.
    """
    program = Program(lower(call.bound), call)
    program.write_outputs()
    return program.steps.finish()
