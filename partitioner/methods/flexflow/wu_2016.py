"""Wu et al. 2016: each recurrent layer on a worker of a group, and samples split over groups.

A layer is a set of ties that feed each other: operations of one cell at different time steps have one tie,
and a cell's outputs come back to it. Other operations of the forward pass go with the first layer that they
feed, or with the last one if they feed none. Gradients and updates of a parameter go with the layer that
reads it, and other operations of the backward pass with the first layer of what they read.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from ....dataflow.graph import Graph, Phase
from ....errors import PlanError
from ..with_backward import with_backward
from .configurations import divisors
from .data_parallel import by_sample
from .strategy import Strategies, Strategy


def wu_2016(strategies: Strategies) -> Strategy:
    """Put recurrent layers on workers of a group; split samples over groups.

    Raises PlanError if a graph has fewer than two recurrent layers, or if they cannot be told apart by the
    number of workers.
    """
    soap = strategies.soap
    layers, count = recurrent_layers(soap.graph)
    size = max((d for d in divisors(soap.workers) if d <= count), default=1)
    if size < 2:
        has = f"has {count}, which cannot share {soap.workers} workers evenly" if count else "has none"
        raise PlanError(
            f"wu-2016 puts recurrent layers on workers of a group, but {soap.graph.name!r} {has}; choose "
            "another method, such as 'data-parallel'"
        )
    groups = soap.workers // size
    found = []
    for decision in soap.decisions:
        one = by_sample(decision, groups)
        place = layers[decision.operations[0]] * size // count
        found.append(replace(one, workers=tuple(group * size + place for group in one.workers)))
    return tuple(found)


def recurrent_layers(graph: Graph) -> tuple[list[int], int]:
    """Return the recurrent layer of each operation, and the number of layers."""
    forward = [each for each in graph.operations if each.phase is Phase.FORWARD]
    node: dict[int, Hashable] = {each.index: each.tie or each.index for each in forward}
    maker = {tensor: each.index for each in forward for tensor in each.outputs}
    after: dict[Hashable, dict[Hashable, None]] = {found: {} for found in node.values()}
    for each in forward:
        for tensor in each.inputs:
            if tensor in maker:
                after[node[maker[tensor]]][node[each.index]] = None
    components = _components(after)
    recurrent = [len(each) > 1 or each[0] in after[each[0]] for each in components]
    count = sum(recurrent)
    of: dict[Hashable, int] = {}
    component = {found: number for number, each in enumerate(components) for found in each}
    layer: list[int | None] = [None] * len(components)
    number = 0
    for place, is_layer in enumerate(recurrent):
        if is_layer:
            layer[place], number = number, number + 1
    for place in reversed(range(len(components))):
        if layer[place] is None:
            fed = [layer[component[then]] for found in components[place] for then in after[found]]
            layer[place] = min((each for each in fed if each is not None), default=None)
    for place, members in enumerate(components):
        if layer[place] is None:
            layer[place] = max(count - 1, 0)
        of.update(dict.fromkeys(members, layer[place] or 0))
    return with_backward(graph, {index: of[found] for index, found in node.items()}), count


def _components(after: Mapping[Hashable, Mapping[Hashable, None]]) -> list[list[Hashable]]:
    """Return the strongly connected components, each before those that it feeds (Kosaraju)."""
    done = _finished(after, list(after))
    before: dict[Hashable, dict[Hashable, None]] = {node: {} for node in after}
    for node, others in after.items():
        for other in others:
            before[other][node] = None
    seen: set[Hashable] = set()
    components = []
    for node in reversed(done):
        if node not in seen:
            members, left = [], [node]
            seen.add(node)
            while left:
                members.append(left.pop())
                fresh = [other for other in before[members[-1]] if other not in seen]
                seen.update(fresh)
                left += fresh
            components.append(members)
    return components


def _finished(after: Mapping[Hashable, Mapping[Hashable, None]], nodes: Sequence[Hashable]) -> list[Hashable]:
    """Return all nodes, each after all that a walk in depth reaches from it first."""
    done: list[Hashable] = []
    seen: set[Hashable] = set()
    for start in nodes:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(after[start]))]
        while path:
            node, others = path[-1]
            fresh = next((other for other in others if other not in seen), None)
            if fresh is None:
                done.append(node)
                path.pop()
            else:
                seen.add(fresh)
                path.append((fresh, iter(after[fresh])))
    return done
