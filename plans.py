"""For those who write plans: forms, copies, and the function that makes a plan of them.

docs/written-plans.md has a page of short plans.
"""

from __future__ import annotations

from .partitioner.layouts.copies import Copy
from .partitioner.layouts.forms import At, Cut, Follow, Partial, Parts, Spread
from .partitioner.layouts.step_split import Layout
from .partitioner.plans.compose import compose

__all__ = ["At", "Copy", "Cut", "Follow", "Layout", "Partial", "Parts", "Spread", "compose"]
