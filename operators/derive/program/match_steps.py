"""The steps of a sum over the terms that equal a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import prod

import numpy as np

from ...kernels.kernel import Array, view_of
from ..nodes.blocks import BLOCK_ELEMENTS, blocks, fitting
from ..reductions.matching import Match
from ..steps.steps import DType, Value, convert, fixed
from ..steps.views import narrow
from .matches import add_matches
from .open_program import OpenProgram
from .reach import reach_of
from .scan_steps import moved, shaped
from .shared_factors import apply_shared


def write_match(program: OpenProgram, plan: Match, target: Array) -> None:
    """Write steps that compute the sums over the whole box into `target`, one axis per variable."""
    order, axis = plan.order, program.axes[plan.order.along]
    reach = reach_of(order, program.box)
    others = [program.lowered.variables[axis] for axis in program.order]
    others = [name for name in others if name in plan.node.free and name != order.along]
    lengths = fitting(others, program.box, BLOCK_ELEMENTS // max(reach.terms, 1))
    room = _Room(program, reach.terms * prod(lengths.values()))
    for block in blocks(others, program.box, lengths):
        ranges, part = {**program.box, **block}, narrow(target, program.axes, block, program.box)
        key, reference, source = (
            program.value(node, ranges) for node in (plan.key, plan.reference, plan.source)
        )
        compared = program.common((key, reference))
        mask = np.dtype(f"i{program.number.itemsize}")
        references, terms, masks = (
            shaped(program, room.of(name, dtype), part, axis, reach.terms)
            for name, dtype in (("references", compared), ("terms", program.number), ("masks", mask))
        )
        for value, out in ((reference, references), (source, terms)):
            turned = (slice(None, None, -1 if order.suffix and n == axis else 1) for n in range(out.ndim))
            along = moved(program, value, order.variable, axis)
            program.steps.add(convert, (along,), fixed(view_of(out, turned)), inplace=False)
        assert isinstance(key, Value)
        read = (*map(fixed, (references, terms, masks)), program.cast(key, compared))
        program.steps.add(partial(add_matches, axis, reach), read, fixed(part), inplace=False)
        apply_shared(program, plan.node, part, plan.after, plan.holds, ranges)


@dataclass(slots=True)
class _Room:
    """Scratch for everything that a block needs, shared by all blocks."""

    program: OpenProgram
    """The program that the scratch belongs to."""

    elements: int
    """The number of elements of every array."""

    arrays: dict[str, Array] = field(default_factory=dict)
    """The arrays so far, by name."""

    def of(self, name: str, dtype: DType) -> Array:
        """Return the scratch of this name."""
        if name not in self.arrays:
            self.arrays[name] = self.program.steps.whole((self.elements,), dtype)
        return self.arrays[name]
