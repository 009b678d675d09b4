"""What a worker may hold at most: checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ExecutionError
from ..programs.memory import MemoryPlan

NAMED = 3
"""How many of the largest tensors a refusal names."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """`limit_bytes` is for each worker; `held_bytes[worker]` of it are taken already, none where empty."""

    limit_bytes: int
    held_bytes: tuple[int, ...] = ()

    def check(self, memory: MemoryPlan, workspace_bytes: Sequence[int] = ()) -> None:
        """Raise ExecutionError where the fullest worker needs more than the limit.

        `workspace_bytes` are those of the workers' kernels, left out where they are not known yet.
        """
        refused = shortfall(memory, self.limit_bytes, workspace_bytes, self.held_bytes)
        if refused is not None:
            raise ExecutionError(refused)


def shortfall(
    memory: MemoryPlan,
    limit_bytes: int,
    workspace_bytes: Sequence[int] = (),
    held_bytes: Sequence[int] = (),
) -> str | None:
    """What to tell a user whose limit is too low; None where all workers keep to it."""
    none = (0,) * len(memory.arena_bytes)
    workspaces, held = workspace_bytes or none, held_bytes or none
    needs = [sum(parts) for parts in zip(memory.arena_bytes, workspaces, held, strict=True)]
    worker = max(range(len(needs)), key=needs.__getitem__)
    if needs[worker] <= limit_bytes:
        return None
    parts = [f"{memory.arena_bytes[worker]:,} for tensors"]
    parts += [f"{workspaces[worker]:,} for the workspace of its kernels"] if workspaces[worker] else []
    parts += [f"{held[worker]:,} that it holds already"] if held[worker] else []
    largest = ", ".join(f"{t.name} ({t.kind}, {t.nbytes:,})" for t in memory.largest[worker][:NAMED])
    return (
        f"worker {worker} needs {needs[worker]:,} bytes ({', '.join(parts)}), but each worker may hold "
        f"{limit_bytes:,}; the largest tensors at its peak are {largest}; use more workers or a smaller "
        "batch"
    )
