"""Groups of workers on which operations are placed."""

from __future__ import annotations

import re

from ....errors import PlanError


def parse_groups(text: str, workers: int) -> int:
    """Return the number of groups that a text such as `2x4` means: 2 groups of 4 workers.

    Raises PlanError if it means something else, or another number of workers.
    """
    found = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text.strip())
    if found is None:
        raise PlanError(
            f"the groups are {text[:40]!r}; write their number and the workers of each, as in 2x4"
        )
    groups, each = int(found[1]), int(found[2])
    if groups * each != workers:
        raise PlanError(
            f"{groups} groups of {each} are {groups * each} workers, but there are {workers}; write two "
            f"numbers whose product is {workers}"
        )
    return groups
