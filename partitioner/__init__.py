"""Find a plan for a graph and a machine, and lower a graph and its plan to programs."""

from .auto_sync import AutoSync
from .costs.plan_bytes import Contribution
from .costs.traffic import traffic
from .explaining.difference import difference
from .explaining.explain import explain
from .explaining.weights import layers
from .layouts.step_split import Layout
from .lowering.lowering import lower
from .lowering.peak import peak_bytes
from .methods.fitting import Fitting, Needs
from .methods.keeping import lighter
from .methods.keeping_within import KeptWithin, least_memory, within
from .methods.method import METHODS, Method
from .methods.search import find_plan, partition
from .methods.settings import SearchSettings
from .methods.several_hops import in_several_hops
from .methods.within_memory import find_plan_within, least_peak_bytes, memory_front
from .plans.plan import Plan, contributors
from .plans.simulation import Simulations, simulation
from .problem.constraints import Forbid, Pin

__all__ = [
    "METHODS",
    "AutoSync",
    "Contribution",
    "Fitting",
    "Forbid",
    "KeptWithin",
    "Layout",
    "Method",
    "Needs",
    "Pin",
    "Plan",
    "SearchSettings",
    "Simulations",
    "contributors",
    "difference",
    "explain",
    "find_plan",
    "find_plan_within",
    "in_several_hops",
    "layers",
    "least_memory",
    "least_peak_bytes",
    "lighter",
    "lower",
    "memory_front",
    "partition",
    "peak_bytes",
    "simulation",
    "traffic",
    "within",
]
