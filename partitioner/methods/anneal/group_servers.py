"""Data parallelism whose large variables have a part in each group of a machine, and small ones one server.

    large    parts along the longest dimension, one for each of the outermost groups. All groups send and
             receive evenly then, and each of them sends one message to each other one
    small    one worker has all of it. A small message takes the time of the link's latency, so the number of
             messages counts

Servers are dealt round. `anneal` starts from this plan with transfers in several hops, in which groups sum
gradients first and keep copies of parameters (`several_hops`).
"""

from __future__ import annotations

from ....dataflow.graph import Graph
from ....errors import PlanError
from ....machines.machine import Machine
from ...plans.plan import Plan
from ..autodist.compiling import compile_strategy
from ..autodist.strategy import Server, Synchronisation, SyncStrategy, evenly
from ..autodist.variables import find_variables
from .dealt import dealt

LARGE_BYTES = 1 << 20
"""Smaller variables stay whole."""


def served_by_groups(graph: Graph, workers: int, machine: Machine) -> Plan:
    """Return the plan.

    Raises PlanError if no group has several workers, or if data parallelism has no plan.
    """
    groups = machine.outermost_groups(workers)
    if len(groups) == workers:
        raise PlanError(f"the {workers} workers are not in groups on machine {machine.name!r}")
    order, whole, cut = dealt(groups), 0, 0
    found: dict[str, Synchronisation] = {}
    for variable in find_variables(graph):
        tensor = variable.tensor
        longest = max(tensor.shape, default=1)
        if tensor.nbytes < LARGE_BYTES or longest < len(groups):
            found[tensor.name] = Synchronisation((Server(order[whole % workers]),))
            whole += 1
            continue
        servers = tuple([Server(members[cut % len(members)]) for members in groups])
        partition = evenly(tensor.shape.index(longest), longest, len(servers))
        found[tensor.name] = Synchronisation(servers, partition)
        cut += 1
    return compile_strategy(graph, workers, SyncStrategy(found))
