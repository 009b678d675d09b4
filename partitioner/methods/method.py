"""Search methods as values, and the registry of those that have names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ...errors import PlanError
from ...support.wording import alternatives
from ..problem.problem import Problem
from ..problem.solution import Solution

Search = Callable[..., Solution]
"""A function of a `Problem` and a number of workers; one that reports progress takes `report` as well."""


@dataclass(frozen=True, slots=True)
class Method:
    """A search with its capabilities. A method is called like its search."""

    name: str
    """The name by which users choose the method; plans record it."""

    search: Search
    """A pure function: the same problem gives the same solution."""

    takes_constraints: bool = False
    """Whether it finds plans within pins and prohibitions."""

    takes_layouts: bool = False
    """Whether it scores a user's layouts; if so, it needs them."""

    takes_prices: bool = False
    """Whether it minimises all that `factor_graph` counts, prices on memory included."""

    keeps: bool = False
    """Whether it searches the plans that keep what is made, see `Space.keep`."""

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

    def __call__(self, problem: Problem, workers: int) -> Solution:
        return self.search(problem, workers)


_searching: dict[str, Method] = {}
_scoring: dict[str, Method] = {}

METHODS: Mapping[str, Method] = MappingProxyType(_searching)
"""The methods that need nothing but a graph, by name, in the order in which they were registered."""


def register(method: Method) -> Method:
    """Register a method, so that its name can be used wherever a method is chosen.

    Raises PlanError if the name is taken or empty.
    """
    if not isinstance(method, Method):
        raise PlanError(f"register takes a tofu.search.Method, not a {type(method).__name__}")
    if not method.name or method.name in every_method():
        raise PlanError(f"the name {method.name!r} is taken or empty; register the method under another one")
    (_scoring if method.takes_layouts else _searching)[method.name] = method
    return method


def every_method() -> dict[str, Method]:
    """Return `METHODS`, and the methods that score a user's layouts."""
    return {**_searching, **_scoring}


def find_method(method: str | Method | Search) -> Method:
    """Return the method that a name or a function stands for. Raises PlanError for an unknown name."""
    if isinstance(method, Method):
        return method
    if callable(method):
        return Method(getattr(method, "__name__", type(method).__name__), method, takes_constraints=True)
    known = every_method()
    if method not in known:
        raise PlanError(f"there is no search method {str(method)!r}{alternatives(str(method), known)}")
    return known[method]
