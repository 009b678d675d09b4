"""Whether tests can run on cards here, and if not, what is missing."""

from __future__ import annotations

from functools import cache

from tofu.errors import ExecutionError
from tofu.runtime.cuda.inspection import inspect


@cache
def missing() -> str | None:
    """Return why nothing can run on a card of this machine; None if something can."""
    try:
        found = inspect(measure=False)
    except ExecutionError as error:
        return str(error)
    problems = [f"{part.name}: {part.problem}" for part in found.parts if part.version is None]
    if not found.cards:
        problems.append("no card")
    return "; ".join(problems) or None
