"""Find nodes that are copies of one another, like the time steps of an unrolled network.

Copies take one strategy (Tofu, section 5.1, coarsening of unrolled time steps): the search then decides about
one cell however many steps there are, and without it an unrolled network is too densely connected to be
searched exactly. A network that was composed here may say so itself, by the setting `__tie__`; in any other,
such as a graph file, copies show in that they share parameters.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

from ..operators.stages.attributes import Attributes
from .node import Node
from .settings import TIE

Kind = tuple[int, Attributes]
"""An operator, by identity, and its attributes."""


def find_ties(nodes: Sequence[Node], data: Collection[str]) -> dict[Node, str]:
    """Find the tie of every node that has one; `nodes` are in topological order, `data` names what is fed.

    Nodes that apply one operator to the same parameters are copies, and so are the only users of a kind that
    each of several copies has. A tie that a node states stays as it is.
    """
    ties = {node: node.text[TIE] for node in nodes if TIE in node.text}
    users = _users(nodes)
    pending = deque(_sharing_parameters(nodes, data))
    while pending:
        copies = [node for node in pending.popleft() if node not in ties]
        if len(copies) < 2:
            continue
        ties |= dict.fromkeys(copies, f"copies({copies[0].name})")
        pending += _corresponding_users(copies, users)
    return ties


def _kind(node: Node) -> Kind:
    assert node.operator is not None
    return id(node.operator), node.attributes


def _sharing_parameters(nodes: Sequence[Node], data: Collection[str]) -> Iterator[list[Node]]:
    """Nodes of one kind that read the same parameters in the same places."""
    groups: defaultdict[Hashable, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.is_variable:
            continue
        parameters = tuple(
            (slot, entry.node)
            for slot, entry in enumerate(node.inputs)
            if entry.node.is_variable and entry.node.name not in data
        )
        if parameters:
            groups[_kind(node), parameters].append(node)
    yield from groups.values()


Use = tuple[int, int, Node]
"""A node's output is read: which output, in which place, by whom."""


def _users(nodes: Sequence[Node]) -> Mapping[Node, list[Use]]:
    users: defaultdict[Node, list[Use]] = defaultdict(list)
    for node in nodes:
        for slot, entry in enumerate(node.inputs):
            users[entry.node].append((entry.output, slot, node))
    return users


def _corresponding_users(copies: Sequence[Node], users: Mapping[Node, list[Use]]) -> Iterator[list[Node]]:
    """Yield, for each way of being used, the users of those copies that are used so exactly once."""
    groups: defaultdict[Hashable, list[Node]] = defaultdict(list)
    for copy in copies:
        own: defaultdict[Hashable, list[Node]] = defaultdict(list)
        for output, slot, user in users.get(copy, ()):
            own[output, slot, _kind(user)].append(user)
        for use, using in own.items():
            if len(using) == 1:
                groups[use] += using
    yield from groups.values()
