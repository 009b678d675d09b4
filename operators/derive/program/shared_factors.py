"""Apply the factors and conditions that the terms of a reduction share, once the reduction is computed."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...kernels.kernel import Array
from ..nodes.affine import Ranges
from ..nodes.blocks import BLOCK_ELEMENTS, blocks, fitting
from ..nodes.functions import identity
from ..nodes.ir import Node, Reduction, Scalar
from ..reductions.guarded import apply, every, product
from ..steps.steps import fixed
from ..steps.views import narrow
from .open_program import OpenProgram


def apply_shared(
    program: OpenProgram,
    node: Reduction,
    target: Array,
    factors: tuple[Node, ...],
    holds: tuple[Node, ...],
    ranges: Ranges | None = None,
) -> None:
    """Multiply the target by the factors, and write the reducer's identity where a condition fails.

    `ranges` are those that the target covers, by default the whole box.
    """
    if not factors and not holds:
        return
    base = {**program.box, **(ranges or {})}
    names = [program.lowered.variables[axis] for axis in program.order]
    names = [name for name in names if name in node.free]
    factor, fails = product(factors), apply("not", every(holds)) if holds else None
    for block in blocks(names, base, fitting(names, base, BLOCK_ELEMENTS)):
        part = {**base, **block}
        out = fixed(narrow(target, program.axes, block, base))
        if factors:
            program.steps.add(np.multiply, (out, program.array(factor, part)), out, inplace=True)
        if fails is not None:
            fill = partial(_fill, identity(node.reducer))
            program.steps.add(fill, (out, program.array(fails, part)), out, inplace=False)


def _fill(value: Scalar, values: Array, condition: Array, out: Array) -> None:
    np.copyto(out, value, where=condition != 0, casting="unsafe")
