"""Levels in strategy files: `{sync: all-reduce, tree: two-level, hosts: 2}` and `{sync: ps, via: [0, 4]}`."""

from __future__ import annotations

from collections.abc import Mapping

from ....errors import PlanError
from ....machines.machine import WORKER_LIMIT
from ....support.strict_documents import number_between, typed
from ....support.wording import alternatives
from .strategy import AllReduce, Server

TREES = ("flat", "two-level")


def read_hosts(entries: Mapping[str, object], place: str) -> int:
    """Return the number of hosts of an all-reduce, 1 if it is flat. Raises PlanError."""
    tree = typed(entries.get("tree", "flat"), str, f"{place}.tree")
    if tree not in TREES:
        raise PlanError(f"{place}.tree is {tree!r}{alternatives(tree, TREES)}")
    if (tree == "two-level") != ("hosts" in entries):
        raise PlanError(f"{place} has one of 'tree: two-level' and 'hosts'; write both, or none")
    if "hosts" not in entries:
        return 1
    return number_between(entries["hosts"], f"{place}.hosts", 2, WORKER_LIMIT)


def read_via(entries: Mapping[str, object], place: str) -> tuple[int, ...]:
    """Return the workers that relay for a server, one for each host. Raises PlanError."""
    if "via" not in entries:
        return ()
    listed: list[object] = typed(entries["via"], list, f"{place}.via")
    if len(listed) < 2:
        raise PlanError(
            f"{place}.via has {len(listed)} entries; write a worker for each of two hosts or more"
        )
    return tuple(number_between(each, f"{place}.via", 0, WORKER_LIMIT - 1) for each in listed)


def written_levels(part: AllReduce | Server) -> dict[str, object]:
    """Return the entries of the levels of a synchroniser, none if it has one."""
    if isinstance(part, Server):
        return {"via": list(part.via)} if part.via else {}
    return {"tree": "two-level", "hosts": part.hosts} if part.hosts > 1 else {}
