"""Name the file of a strategy, and the line, in errors that show when the strategy is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ....errors import GraphError, PlanError
from .strategy import Written

_QUOTED = re.compile(r"'([^']+)'")


@contextmanager
def blamed(written: Written | None, place: str | None = None) -> Iterator[None]:
    """Raise PlanError that names the file, and the place or the entry of the variable that an error names."""
    try:
        yield
    except (PlanError, GraphError) as error:
        if written is None:
            raise
        named = (written.variables.get(name) for name in _QUOTED.findall(str(error)))
        at = place or next(filter(None, named), None)
        found = str(error) if at is None else f"{at}: {error}"
        raise PlanError(f"the {written.file} cannot be used: {found}") from error
