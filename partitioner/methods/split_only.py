"""Search the plans of a problem that replicate nothing that can be split.

`refine` starts from the plan of `recursive`, which is searched once for both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from ..problem.problem import Problem
from ..problem.solution import Solution
from .method import Method, find_method
from .recursive import recursive
from .refine import refine, refined
from .search import searched


class SplitOnly:
    """The plans of a problem that replicate nothing. Their bounds do not hold for the problem."""

    def __init__(self, problem: Problem, workers: int) -> None:
        self._problem = replace(problem.split_only(), bounded=False)
        self._workers = workers

    def solution(self, method: Method) -> Solution:
        """Return the plan of a method."""
        if method.search is refine:
            return refined(self._problem, self._recursive)
        if method.search is recursive:
            return self._recursive
        return searched(self._problem, self._workers, method)

    @cached_property
    def _recursive(self) -> Solution:
        return searched(self._problem, self._workers, find_method("recursive"))
