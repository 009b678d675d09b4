"""Bind a reduction to the buffers that it reads and fills."""

from __future__ import annotations

import numpy as np

from ..operators.kernels.kernel import Array
from ..operators.kernels.narrow import has_narrow_type
from ..operators.kernels.workspace import Workspace
from ..programs.program import Reduce
from .buffer_views import BufferViews, part_of
from .collectives import FetchedBytes, Step, Transfer, fixed_order_reduce


def reduction(
    views: BufferViews[Array], worker: int, instruction: Reduce, traffic: FetchedBytes, workspace: Workspace
) -> Step:
    """Return the step that combines an instruction's terms in its target.

    Terms of 16 bits are combined in float32, and their sum is rounded once, as on cards.
    """
    held = views.partitioned.programs[worker].buffers[instruction.target].region
    target = views.part(worker, instruction.target, held)
    narrow = has_narrow_type(target)
    total = workspace.array(target.shape, np.float32) if narrow else target
    terms = [
        [
            Transfer(
                views.part(piece.worker, piece.buffer, piece.region),
                part_of(total, held, piece.region),
                piece.worker != worker,
            )
            for piece in part
        ]
        for part in instruction.parts
    ]
    reduce = fixed_order_reduce(instruction.reducer, terms, traffic, workspace)
    if not narrow:
        return reduce

    def run() -> None:
        reduce()
        with np.errstate(over="ignore"):
            np.copyto(target, total, casting="same_kind")

    return run
