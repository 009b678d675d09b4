"""What a solver cannot take or do. Methods translate these for users."""

from __future__ import annotations

from ...errors import TofuError


class SolverError(TofuError):
    """Tables do not fit their variables, or a variable has no value."""


class SolverLimitError(SolverError):
    """A problem needs more than a solver is allowed to take."""
