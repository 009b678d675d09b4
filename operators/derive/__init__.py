"""Kernels derived from descriptions: for any operator, any box, with NumPy alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from ..kernel import KernelCall
from .factorize import factorize
from .ir import Lowered, lower
from .program import Program

if TYPE_CHECKING:
    from ..bound import BoundOperator

__all__ = ["derive"]


def derive(call: KernelCall) -> Callable[[], None]:
    """The function that computes one box of the call's operator from its description.

    Raises `OperatorError` for opaque functions and for inputs that do not cover what the box reads.
    """
    program = Program(_lowered(call.bound), call)
    program.contract()
    program.write_outputs()
    return program.steps.finish()


@lru_cache(maxsize=4096)
def _lowered(bound: BoundOperator) -> Lowered:
    return factorize(lower(bound), bound.extents)
