"""Search for the plan that moves the fewest bytes, and lowering of a graph and its plan to programs."""

from .constraints import Forbid, Pin
from .lowering import lower
from .methods import METHODS, partition
from .plan import Plan, contributors
from .recount import Contribution
from .splits import SplitLayout

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
