"""Errors of the solvers. Methods translate them for users."""

from __future__ import annotations

from ...errors import TofuError


class SolverError(TofuError):
    """Tables do not fit their variables, or a variable has no value."""


class SolverLimitError(SolverError):
    """A problem exceeds a solver's limits."""


class WidthError(SolverLimitError):
    """The graph is too densely connected to be eliminated: a table would need `entries` entries."""

    def __init__(self, message: str, entries: int) -> None:
        super().__init__(message)
        self.entries = entries
