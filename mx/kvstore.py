"""`mx.kv`: the store of one worker, from which scripts read how many workers there are."""

from __future__ import annotations

from typing import NoReturn

from ..errors import ExecutionError
from ..support.wording import alternatives

__all__ = ["KVStore", "create"]

LOCAL = ("local", "device", "local_allreduce_cpu", "local_allreduce_device", "local_update_cpu", "nccl")
"""Stores of one process. Nothing depends on which of them a script names."""


class KVStore:
    """A store of one worker. It holds nothing: a context of several devices partitions the model."""

    rank = 0
    """The number of this worker."""

    num_workers = 1
    """The number of workers."""

    def __init__(self, name: str) -> None:
        self.type = name

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"a store has no {name!r}: it has type, rank and num_workers, and holds no values; "
            "Module.update updates parameters inside the partitioned graph"
        )


def create(name: str = "local") -> KVStore:
    """Return a store of one worker. Raises ExecutionError for a store of several processes."""
    if name not in LOCAL:
        hint = alternatives(name, LOCAL) if not name.startswith("dist") else ""
        raise ExecutionError(
            f"there is no store {name!r} here{hint}; a store has one worker, and several processes train "
            "together with `tofu train --processes` or torchrun"
        )
    return KVStore(name)
