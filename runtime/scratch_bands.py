"""Find kernels that write outside their scratch memory, by a pattern around the arrays that they take.

All kernels of a lane share the memory, so the bands of one kernel are arrays of others. The pattern is
written before each run of a kernel and compared after it.
"""

from __future__ import annotations

from ..errors import ExecutionError
from ..operators.kernels.workspace import Workspace
from .collectives import Step
from .guard_bands import PATTERN


def watched_scratch(step: Step, workspace: Workspace) -> Step:
    """Return the step of the kernel that has a workspace, with checks of the bands in it."""
    bands = workspace.bands()

    def run() -> None:
        for band in bands:
            band[...] = PATTERN
        step()
        for band in bands:
            if (damaged := band != PATTERN).any():
                place = band.ctypes.data - workspace.block.ctypes.data + int(damaged.argmax())
                raise ExecutionError(
                    f"it wrote outside its scratch memory: it overwrote byte {place:,} of "
                    f"{workspace.used_bytes:,}, which is in none of its arrays"
                )

    return run
