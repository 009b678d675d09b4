"""Other orders of a plan's operations, from the times that they would take if no lane made any job wait.

    earliest     an operation comes before those that end later, so layers and time steps overlap
    urgent       an operation comes before those with a shorter rest: the longest path from its start to the
                 end of the iteration (the upward rank of HEFT)

Every worker runs the operations in the order of the plan, so the order decides what waits for a message while
something else could run. Implemented in: `orders`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....dataflow.graph import Graph
from ....dataflow.order import dependency_order
from ....simulator.simulation import Simulation


def orders(graph: Graph, simulation: Simulation) -> Iterator[tuple[str, ...]]:
    """Yield the names of a graph's operations in other orders, for the tasks that are simulated."""
    end = simulation.unhindered()
    for places in (end, [-each for each in _rest(graph, end)]):
        ordered = dependency_order(graph.tensors, graph.operations, places)
        yield tuple([operation.name for operation in ordered])


def _rest(graph: Graph, end: list[int]) -> list[int]:
    """Return the longest path from the start of each operation to the end of the iteration.

    An operation takes the time from the last end of those whose outputs it reads to its own.
    """
    made = {tensor: each.index for each in graph.operations for tensor in each.outputs}
    rest = [0] * len(end)
    for operation in reversed(graph.operations):
        makers = [made[tensor] for tensor in operation.inputs if tensor in made]
        number = operation.index
        rest[number] += max(end[number] - max((end[each] for each in makers), default=0), 0)
        for each in makers:
            rest[each] = max(rest[each], rest[number])
    return rest
