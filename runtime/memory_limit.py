"""The limit on a worker's memory, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ExecutionError
from ..programs.memory import MemoryPlan

NAMED = 3
"""The number of the largest tensors that a message names."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A limit on the memory of each worker."""

    limit_bytes: int
    """The most that a worker may hold."""

    held_bytes: tuple[int, ...] = ()
    """The bytes that each worker holds already; empty if none."""

    def check(self, memory: MemoryPlan, workspace_bytes: Sequence[int] = ()) -> None:
        """Raise ExecutionError if the fullest worker needs more than the limit.

        `workspace_bytes` are those of the workers' kernels, left out if they are not known yet.
        """
        limits = (self.limit_bytes,) * len(memory.arena_bytes)
        refused = shortfall(memory, limits, workspace_bytes, self.held_bytes)
        if refused is not None:
            raise ExecutionError(refused)


def shortfall(
    memory: MemoryPlan,
    limits_bytes: Sequence[int],
    workspace_bytes: Sequence[int] = (),
    held_bytes: Sequence[int] = (),
) -> str | None:
    """Return the message for limits that are too low, one for each worker; None if all workers fit.

    `workspace_bytes` are those of the workers' kernels. If they are left out, the message says that it does
    not count them.
    """
    none = (0,) * len(memory.arena_bytes)
    workspaces, held = workspace_bytes or none, held_bytes or none
    needs = [sum(parts) for parts in zip(memory.arena_bytes, workspaces, held, strict=True)]
    worker = max(range(len(needs)), key=lambda each: needs[each] - limits_bytes[each])
    if needs[worker] <= limits_bytes[worker]:
        return None
    parts = [f"{memory.arena_bytes[worker]:,} for tensors"]
    if not workspace_bytes:
        parts.append("without the workspace of its kernels")
    elif workspaces[worker]:
        parts.append(f"{workspaces[worker]:,} for the workspace of its kernels")
    parts += [f"{held[worker]:,} that it holds already"] if held[worker] else []
    holder = "each worker" if len(set(limits_bytes)) == 1 else "that worker"
    largest = ", ".join(f"{t.name} ({t.kind}, {t.nbytes:,})" for t in memory.largest[worker][:NAMED])
    return (
        f"worker {worker} needs {needs[worker]:,} bytes ({', '.join(parts)}), but {holder} may hold "
        f"{limits_bytes[worker]:,}; the largest tensors at its peak are {largest}; use more workers or a "
        "smaller batch"
    )
