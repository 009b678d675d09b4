"""Search methods as values, and the registry of those that have names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from ...errors import PlanError
from ...support.wording import alternatives
from ..plans.plan import Plan
from ..problem.problem import Problem
from ..problem.solution import Solution

Search = Callable[..., Solution]
"""A function of a `Problem` and a number of workers; one that reports progress takes `report` as well."""

Composition = Callable[..., Plan]
"""A function of a graph, a number of workers and a `Space`; one that takes a mesh takes `mesh` as well."""


@dataclass(frozen=True, slots=True)
class Method:
    """A search with its capabilities. A method is called like its search."""

    name: str
    """The name by which users choose the method; plans record it."""

    search: Callable[..., Any]
    """A pure function, a `Search` or a `Composition`: the same input gives the same result."""

    composes: bool = False
    """Whether its function is a `Composition`, which makes a whole plan."""

    takes_mesh: bool = False
    """Whether a mesh may follow its name after a colon, as in `megatron:dp4-tp2`."""

    simulates: bool = False
    """Whether it minimises the simulated time of an iteration: its function takes a `SimulatedSearch`, and
    returns a whole plan.
    """

    draws: bool = False
    """Whether it draws at random, so that it takes a seed and a budget."""

    only_trials: bool = False
    """Whether it makes a number of trials, so that it takes no temperature and no limit of seconds."""

    takes_groups: bool = False
    """Whether it takes the groups of workers on which it places operations."""

    takes_constraints: bool = False
    """Whether it finds plans within pins and prohibitions."""

    takes_layouts: bool = False
    """Whether it scores a user's layouts; if so, it needs them."""

    takes_prices: bool = False
    """Whether it minimises all that `factor_graph` counts, prices on memory included."""

    keeps: bool = False
    """Whether it searches the plans that keep what is made, see `Space.keep`."""

    lightens: bool = False
    """Whether it may return a plan that is slower and moves fewer bytes, see `Sampling.slower`."""

    closes_gap: bool = False
    """Whether it raises the lower bound itself, to prove that the plan is the best or how near it is."""

    reports_progress: bool = False
    """Whether the search takes `report`, called with the cost and the bound whenever one improves."""

    slow: bool = False
    """Whether it may take minutes for a large model."""

    page: str = ""
    """The path of the page that describes it, within the docs folder; empty for users' methods."""

    trusted: bool = False
    """Whether its choices are legal by construction; the choices of all other methods are checked."""

    @property
    def copies_activations(self) -> bool:
        """Return whether it searches plans that copy activations, if it is asked to."""
        return self.keeps and self.takes_prices

    def __call__(self, problem: Problem, workers: int) -> Solution:
        solution: Solution = self.search(problem, workers)
        return solution


_searching: dict[str, Method] = {}
_composing: dict[str, Method] = {}
_scoring: dict[str, Method] = {}

METHODS: Mapping[str, Method] = MappingProxyType(_searching)
"""The methods that solve a `Problem` and need nothing else, by name, in the order of their registration."""


def register(method: Method) -> Method:
    """Register a method, so that its name can be used wherever a method is chosen.

    Raises PlanError if the name is taken or empty.
    """
    if not isinstance(method, Method):
        raise PlanError(f"register takes a tofu.search.Method, not a {type(method).__name__}")
    if not method.name or method.name in every_method():
        raise PlanError(f"the name {method.name!r} is taken or empty; register the method under another one")
    whole = method.composes or method.simulates
    kind = _scoring if method.takes_layouts else _composing if whole else _searching
    kind[method.name] = method
    return method


def every_method() -> dict[str, Method]:
    """Return `METHODS`, the methods that make whole plans, and those that score a user's layouts."""
    return {**_searching, **_composing, **_scoring}


def find_method(method: str | Method | Search) -> Method:
    """Return the method that a name or a function stands for.

    Raises PlanError for an unknown name, and for a mesh after the name of a method that takes none.
    """
    if isinstance(method, Method):
        return method
    if callable(method):
        return Method(getattr(method, "__name__", type(method).__name__), method, takes_constraints=True)
    known = every_method()
    name, colon, mesh = str(method).partition(":")
    if name not in known:
        raise PlanError(f"there is no search method {str(method)!r}{alternatives(str(method), known)}")
    found = known[name]
    if not colon:
        return found
    if not found.takes_mesh:
        able = ", ".join(name for name, each in known.items() if each.takes_mesh)
        raise PlanError(f"the method {name!r} takes no mesh, but {mesh!r} follows it; choose one of {able}")
    return replace(found, name=str(method), search=partial(found.search, mesh=mesh))


def searching_method(given: str | Method | Search) -> Method:
    """Return a method. Raises PlanError if there is none, or if it does not search for less memory."""
    method = find_method(given)
    if not method.takes_prices:
        able = ", ".join(sorted(each.name for each in every_method().values() if each.takes_prices))
        raise PlanError(
            f"the method {method.name!r} finds one plan, and no front of plans for several limits of memory; "
            f"choose one of {able}"
        )
    return method
