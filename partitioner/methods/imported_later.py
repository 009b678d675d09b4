"""Methods that simulate, imported when they run: other searches need none of their modules."""

from __future__ import annotations

from ..plans.plan import Plan
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
