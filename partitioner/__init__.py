"""Find a plan for a graph and a machine, and lower a graph and its plan to programs."""

from .costs.plan_bytes import Contribution
from .costs.traffic import traffic
from .explaining.difference import difference
from .explaining.explain import explain
from .explaining.weights import layers
from .layouts.step_split import Layout
from .lowering.lowering import lower
from .methods.method import METHODS, Method
from .methods.search import find_plan, partition
from .methods.settings import SearchSettings
from .plans.plan import Plan, contributors
from .problem.constraints import Forbid, Pin

__all__ = [
    "METHODS",
    "Contribution",
    "Forbid",
    "Layout",
    "Method",
    "Pin",
    "Plan",
    "SearchSettings",
    "contributors",
    "difference",
    "explain",
    "find_plan",
    "layers",
    "lower",
    "partition",
    "traffic",
]
