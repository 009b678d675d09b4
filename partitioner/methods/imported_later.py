"""Methods that are imported when they run: other searches need none of their modules."""

from __future__ import annotations

from ...dataflow.graph import Graph
from ..plans.plan import Plan
from ..plans.space import Space
from .simulated import SimulatedSearch


def flexflow(asked: SimulatedSearch) -> Plan:
    """Run FlexFlow's search, see `flexflow/search.py`."""
    from .flexflow.search import flexflow

    return flexflow(asked)


def anneal(asked: SimulatedSearch) -> Plan:
    """Run the annealing search, see `anneal/search.py`."""
    from .anneal.search import anneal

    return anneal(asked)


def pardnn(asked: SimulatedSearch) -> Plan:
    """Run ParDNN's search, see `pardnn/search.py`."""
    from .pardnn.search import pardnn

    return pardnn(asked)


def heuristic_1(asked: SimulatedSearch) -> Plan:
    """Run the first heuristic of ParDNN's paper, see `pardnn/search.py`."""
    from .pardnn.search import heuristic_1

    return heuristic_1(asked)


def heuristic_2(asked: SimulatedSearch) -> Plan:
    """Run the second heuristic of ParDNN's paper, see `pardnn/search.py`."""
    from .pardnn.search import heuristic_2

    return heuristic_2(asked)


def place(asked: SimulatedSearch) -> Plan:
    """Run the search for placements, see `placement/search.py`."""
    from .placement.search import place

    return place(asked)


def data_parallel(graph: Graph, workers: int, space: Space) -> Plan:
    """Make the plan of data parallelism, see `meshes/methods.py`."""
    from .meshes.methods import data_parallel

    return data_parallel(graph, workers, space)


def zero_3(graph: Graph, workers: int, space: Space) -> Plan:
    """Make the plan that splits parameters, see `meshes/methods.py`."""
    from .meshes.methods import zero_3

    return zero_3(graph, workers, space)


def megatron(graph: Graph, workers: int, space: Space, mesh: str | None = None) -> Plan:
    """Make the plan of Megatron, see `meshes/methods.py`."""
    from .meshes.methods import megatron

    return megatron(graph, workers, space, mesh)


def megatron_sp(graph: Graph, workers: int, space: Space, mesh: str | None = None) -> Plan:
    """Make the plan of Megatron with sequence parallelism, see `meshes/methods.py`."""
    from .meshes.methods import megatron_sp

    return megatron_sp(graph, workers, space, mesh)


def one_weird_trick(graph: Graph, workers: int, space: Space) -> Plan:
    """Make the plan of one weird trick, see `flexflow/experts.py`."""
    from .flexflow.experts import one_weird_trick_plan

    return one_weird_trick_plan(graph, workers, space)


def wu_2016(graph: Graph, workers: int, space: Space) -> Plan:
    """Make the plan of Wu et al., see `flexflow/experts.py`."""
    from .flexflow.experts import wu_2016_plan

    return wu_2016_plan(graph, workers, space)
