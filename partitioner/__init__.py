"""Search for the plan that moves the fewest bytes, and lowering of a graph and its plan to programs."""

from .costs.plan_bytes import Contribution
from .layouts.step_split import SplitLayout
from .lowering.lowering import lower
from .methods.search import METHODS, partition
from .plans.plan import Plan, contributors
from .problem.constraints import Forbid, Pin

__all__ = [
    "METHODS",
    "Contribution",
    "Forbid",
    "Pin",
    "Plan",
    "SplitLayout",
    "contributors",
    "lower",
    "partition",
]
