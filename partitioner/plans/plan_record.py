"""The contents of a plan: a layout for every tensor, a strategy for every operation, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...dataflow.graph import Graph
from ...dataflow.rewrites.encoders import Rewrite
from ..layouts.copies import Copy
from ..layouts.forms import Form
from ..layouts.step_split import Layout, is_stepped
from .origin import PlanOrigin
from .sampling import Sampling
from .space import SPLIT, Space
from .unproven import UnprovenStep


@dataclass(frozen=True, slots=True)
class TransferSeconds:
    """The time of a plan's transfers, one after the other, over a machine's links: the objective `time`."""

    seconds: float
    """The time for all transfers of one iteration."""

    lower_bound: float | None
    """No plan with the same factors and ties takes less time; None if the method proves nothing."""


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The choices for one graph, with their costs. `Plan` adds the questions that can be asked of them."""

    fingerprint: str
    """The fingerprint of the graph that the plan is for."""

    workers: int
    """The number of workers: the product of the factors."""

    factors: tuple[int, ...]
    """The number of groups into which each step splits a group of workers."""

    method: str
    """The name of the search that found it."""

    layouts: Mapping[str, Layout]
    """For each tensor name, how the tensor is split over the workers."""

    strategies: Mapping[str, Form]
    """For each operation name, how it is split: for steps, the index variable that each step splits."""

    cost_bytes: int
    """The bytes that cross between workers in one iteration."""

    step_cost_bytes: tuple[int, ...]
    """The bytes that each step adds; they sum to `cost_bytes`."""

    lower_bound_bytes: int
    """No plan of `space` that a recursive search with the same factors and ties can find costs less."""

    space: Space = SPLIT
    """The plans for which `lower_bound_bytes` holds."""

    search_seconds: float | None = field(default=None, compare=False)
    """The duration of the search; None if the plan was read from a file."""

    source: PlanOrigin | None = None
    """The origin of the graph, if known."""

    written_order: tuple[str, ...] | None = None
    """The operations in the order in which they run; None for the graph's, which `order` gives."""

    copies: Mapping[str, tuple[Copy, ...]] = field(default_factory=dict)
    """For each tensor name that has any, its versions besides its home."""

    unproven: tuple[UnprovenStep, ...] = ()
    """The steps that were too wide to be solved exactly: their choices are not proven to be the best ones."""

    transfer_time: TransferSeconds | None = field(default=None, compare=False)
    """Known if the search minimised time; plan files do not keep it."""

    step_seconds: float | None = field(default=None, compare=False)
    """The simulated time of one iteration, if a machine was given that says how fast its devices are."""

    step_bound_seconds: float | None = field(default=None, compare=False)
    """No order of the plan's tasks and transfers takes less: the longest chain of those that need each other,
    or the time in which the busiest device or link is occupied. Known if `step_seconds` is.
    """

    sampling: Sampling | None = None
    """The seed and the budget of a random search; None for all others."""

    rewrites: Mapping[str, Rewrite] = field(default_factory=dict)
    """The rewrites of the gradients of parameters, by name: the plan is for the graph that has them."""

    together: tuple[tuple[str, ...], ...] = ()
    """Groups of tensors that are collected together: their transfers wait for each other in programs."""

    merged: bool = False
    """Whether it is for the graph with merged operations, see `dataflow.merging`, before any rewrites."""

    graph: Graph | None = field(default=None, compare=False, repr=False)
    """The graph that the plan is for, if known; plan files do not keep it."""

    @property
    def in_steps(self) -> bool:
        """Whether every choice is one label, or None, for each step, and nothing is copied.

        Only such a plan has a cost for each step.
        """
        return not self.copies and is_stepped((*self.layouts.values(), *self.strategies.values()))
