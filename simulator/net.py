"""Which operations touch which versions, as loops read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..dataflow.graph import Graph
from ..errors import PlanError
from ..support.compiled import Numbers, numbers
from ..support.wording import alternatives
from .versions import NumberedVersions

_NONE = -1


class Net(NamedTuple):
    """The graph: which operations touch which versions."""

    order: Numbers
    """The operations in the order of the clock."""

    position: Numbers
    """The place of each operation in that order."""

    firsts: Numbers
    """Where the versions of each operation begin in `versions`."""

    versions: Numbers
    """The versions that operations touch, operation by operation."""

    maker: Numbers
    """The operation that makes each version; -1 if none does."""

    made_as: Numbers
    """The place of each version among those that its maker touches."""

    user_firsts: Numbers
    """Where the users of each version begin in `users`."""

    users: Numbers
    """Pairs of an operation that reads a version, or collects its parts, and the version's place there."""

    overwritten: Numbers
    """The tensor that each version overwrites; -1 if it has memory of its own."""

    overwriter: Numbers
    """The tensor that overwrites each version; -1 if none does."""


def net(graph: Graph, order: Sequence[int], of: NumberedVersions, touched: Sequence[tuple[int, ...]]) -> Net:
    """Return the net of a graph whose operations run in an order.

    `touched` are the versions that each operation touches, those that others make first. Raises PlanError for
    an order that cannot be.
    """
    count = len(of.tensors)
    position = [0] * len(order)
    for place, operation in enumerate(order):
        position[operation] = place
    maker, made_as = [_NONE] * count, [_NONE] * count
    users: list[list[int]] = [[] for _ in range(count)]
    for operation, versions in enumerate(touched):
        others = len(versions) - len(graph.operations[operation].outputs) - len(of.made[operation])
        for slot, version in enumerate(versions):
            users[version] += (operation, slot)
            if slot >= others:
                maker[version], made_as[version] = operation, slot
    overwritten, overwriter = [_NONE] * count, [_NONE] * count
    last = list(range(count))
    for operation in order:
        for tensor in graph.operations[operation].outputs:
            if graph.tensors[tensor].alias is not None:
                overwritten[tensor] = last[of.roots[tensor]]
                overwriter[last[of.roots[tensor]]] = last[of.roots[tensor]] = tensor
    _check(graph, position, maker, overwritten)
    return Net(
        numbers(order),
        numbers(position),
        numbers(_ends(touched)),
        numbers([version for versions in touched for version in versions]),
        numbers(maker),
        numbers(made_as),
        numbers([end // 2 for end in _ends(users)]),
        numbers([number for each in users for number in each]),
        numbers(overwritten),
        numbers(overwriter),
    )


def _ends(lists: Sequence[Sequence[int]]) -> list[int]:
    """Return where each list begins if all are put together, and the end of the last one."""
    ends = [0]
    for each in lists:
        ends.append(ends[-1] + len(each))
    return ends


def ordered(graph: Graph, order: Sequence[str] | None) -> list[int]:
    """Return the numbers of all operations in the order in which they run: the graph's if none is given.

    Raises PlanError unless each operation is named once.
    """
    numbered = {operation.name: operation.index for operation in graph.operations}
    if order is None:
        return list(numbered.values())
    unknown = [name for name in order if name not in numbered]
    if unknown:
        raise PlanError(
            f"the order has an unknown operation {unknown[0]!r}{alternatives(unknown[0], numbered)}"
        )
    if len(set(order)) < len(order) or len(order) < len(numbered):
        raise PlanError(
            f"the order has {len(order)} entries, {len(set(order))} of them different, for {len(numbered)} "
            f"operations; name each once"
        )
    return [numbered[name] for name in order]


def _check(graph: Graph, position: Sequence[int], maker: Sequence[int], overwritten: Sequence[int]) -> None:
    """Raise PlanError if an operation runs before what it reads is made, or after it is overwritten."""
    until = [len(position)] * len(maker)
    for tensor, before in enumerate(overwritten):
        if before != _NONE:
            until[before] = position[maker[tensor]]
    for operation in graph.operations:
        here = position[operation.index]
        for tensor in operation.inputs:
            made = maker[tensor]
            if (made != _NONE and position[made] >= here) or until[tensor] < here:
                raise PlanError(
                    f"operation {operation.name!r} cannot run at place {here + 1} of the order: its input "
                    f"{graph.tensors[tensor].name!r} is not made yet, or overwritten already"
                )
