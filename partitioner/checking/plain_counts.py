"""The elements that move between parts of tensors, counted region by region."""

from __future__ import annotations

from collections.abc import Iterable

from ...analyzer.indices.region import Region
from ...errors import PlanError
from ...programs.plain_regions import Located, common, lacking, shown, size
from .plain_forms import PlainParts, terms_of
from .plain_tasks import PlainTasks


def needed_parts(tasks: PlainTasks, held: PlainParts, names: tuple[str, ...]) -> set[tuple[int, Region, int]]:
    """Return the workers, regions and terms of what tasks read."""
    read = tasks.read if terms_of(held) > 1 else [0] * len(tasks.read)
    return {
        (worker, tasks.inputs[name][task], read[task])
        for name in names
        for task, worker in enumerate(tasks.workers)
    }


def fetched_elements(tasks: PlainTasks, held: PlainParts, names: tuple[str, ...]) -> int:
    """Count the elements that tasks read and their workers lack."""
    needed = needed_parts(tasks, held, names)
    return sum(size(region) for _, region, _ in needed) - _there(needed, held)


def summed_elements(made: PlainParts, wanted: PlainParts, place: str) -> int:
    """Count the elements that move if every wanted term is the sum of equally many that were made."""
    before, after = terms_of(made), terms_of(wanted)
    if before % after:
        raise PlanError(f"{place} has {after} terms, which cannot be made of {before}")
    each = before // after
    sources = [(worker, region, term // each) for worker, region, term in made]
    return each * sum(size(region) for _, region, _ in wanted) - _there(wanted, sources)


def check_source(made: PlainParts, wanted: PlainParts, place: str) -> None:
    """Raise PlanError unless every wanted part is in each of the terms that are summed to it."""
    each = terms_of(made) // terms_of(wanted)
    summands = [(worker, region, term * each + n) for worker, region, term in wanted for n in range(each)]
    check_covered(summands, made, place)


def check_covered(needed: Iterable[tuple[int, Region, int]], held: PlainParts, place: str) -> None:
    """Raise PlanError unless every region lies in what is held of its term."""
    by_term: dict[int, list[Region]] = {}
    for _, region, term in held:
        by_term.setdefault(term, []).append(region)
    for worker, region, term in needed:
        gap = lacking(region, by_term.get(term, []))
        if gap is not None:
            raise PlanError(f"{place}: worker {worker} needs {shown(gap)}, which no worker holds")


def _there(needed: Iterable[tuple[int, Region, int]], held: Iterable[tuple[int, Region, int]]) -> int:
    """Count the elements of regions that their workers hold, term by term."""
    at = {key: Located(regions) for key, regions in by_holder(held).items()}
    nothing = Located([])
    return sum(
        size(common(region, own))
        for worker, region, term in needed
        for own in at.get((worker, term), nothing).near(region)
    )


def by_holder(parts: Iterable[tuple[int, Region, int]]) -> dict[tuple[int, int], list[Region]]:
    """Group the regions of parts by worker and term."""
    found: dict[tuple[int, int], list[Region]] = {}
    for worker, region, term in parts:
        found.setdefault((worker, term), []).append(region)
    return found
