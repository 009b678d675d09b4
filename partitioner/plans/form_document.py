"""Forms in plan files: a list for steps, an object for every other form.

["i", null, {"at": 1}, {"partial": true}]               steps
{"spread": [["i", 2], [null, 2]], "workers": [0, 1, 2, 3]}
{"cut": "i", "bounds": [3, 7], "workers": [0, 1, 2]}
{"parts": [[0, [[0, 4], [0, 8]]], [2, [[4, 8], [0, 8]]]]}   a third entry is the number of the term
"follow"

A person may write them shorter:

"everywhere"                                            the whole on every worker
"partial"                                               a term on every worker
"i", or 0 for a tensor, or null                         that entry at every step
{"worker": 3}, {"workers": [0, 1]}                      the whole on these workers
{"along": "i", "workers": [0, 1, 0, 1]}                 even parts, one for each of these workers
{"spread": ...} or {"cut": ...} without "workers"       one part for each worker
"""

from __future__ import annotations

from typing import assert_never

from ...analyzer.indices.region import Region
from ...errors import PlanError
from ...support.strict_documents import expect_keys, number_between, typed
from ...support.wording import counted
from ..layouts.forms import At, Cut, Entry, Follow, Form, Label, Partial, Parts, Spread, check_form
from ..layouts.step_split import prime_factors

EXTENT_LIMIT = 1 << 48
PART_LIMIT = 1 << 14
"""The largest number of parts of one form: a file could ask for more than memory holds."""


def encode_form(form: Form) -> object:
    """Return a form as JSON writes it."""
    match form:
        case tuple():
            return [_encode_entry(entry) for entry in form]
        case Spread(degrees=degrees, workers=workers):
            spread = [[_encode_entry(entry), count] for entry, count in degrees]
            return {"spread": spread, "workers": list(workers)}
        case Cut(along=along, bounds=bounds, workers=workers):
            return {"cut": along, "bounds": list(bounds), "workers": list(workers)}
        case Parts(boxes=boxes):
            return {"parts": [list(part) for part in boxes]}
        case Follow():
            return "follow"
        case _:
            assert_never(form)


def _encode_entry(entry: Entry) -> object:
    match entry:
        case At(group=group):
            return {"at": group}
        case Partial():
            return {"partial": True}
        case _:
            return entry


def decode_form(value: object, kind: type[str] | type[int], workers: int, place: str) -> Form:
    """Read a form whose labels are of one kind. Raises PlanError naming the place of what is wrong."""
    if value == "follow":
        return Follow()
    if isinstance(value, list):
        return tuple([_entry(entry, kind, f"{place}[{i}]") for i, entry in enumerate(value)])
    if not isinstance(value, dict):
        raise PlanError(
            f'{place} is {str(value)[:60]!r}; it must be a list with a label, null, {{"at": group}} or '
            '{"partial": true} for each step, an object with "spread", "cut" or "parts", or "follow"'
        )
    for form in ("spread", "cut", "parts"):
        if form in value:
            return _object(form, value, kind, workers, place)
    raise PlanError(f'{place} has neither "spread" nor "cut" nor "parts"')


def decode_short_form(value: object, kind: type[str] | type[int], workers: int, place: str) -> Form:
    """Read a form as a person writes it: a short one, one of plan files, or a form as Python has it.

    Raises PlanError naming the place of what is wrong.
    """
    match value:
        case tuple() | Spread() | Cut() | Parts() | Follow():
            return check_form(value, place)
        case "everywhere":
            return (None,) * len(prime_factors(workers))
        case "partial":
            return (Partial(),) * len(prime_factors(workers))
        case "follow" | list():
            return decode_form(value, kind, workers, place)
        case dict():
            return _short_object(value, kind, workers, place)
        case _:
            entry = None if value is None else _label(value, kind, place)
            return (entry,) * len(prime_factors(workers))


def _short_object(value: dict[str, object], kind: type[str] | type[int], workers: int, place: str) -> Form:
    everyone = {"workers": list(range(workers))}
    if "worker" in value:
        expect_keys(value, ("worker",), place)
        return Spread((), (number_between(value["worker"], f"{place}.worker", 0, workers - 1),))
    if "spread" in value or "cut" in value:
        return decode_form(everyone | value, kind, workers, place)
    if "parts" in value:
        return decode_form(value, kind, workers, place)
    if not value.keys() & {"along", "workers"}:
        raise PlanError(
            f'{place} has none of "worker", "workers", "along", "spread", "cut" and "parts"; write one'
        )
    expect_keys(value, (), place, optional=("along", "workers"))
    on = _workers((everyone | value)["workers"], workers, place)
    label = _label(value["along"], kind, f"{place}.along") if "along" in value else None
    return Spread(((label, len(on)),), on)


def _object(
    form: str, value: dict[str, object], kind: type[str] | type[int], workers: int, place: str
) -> Form:
    if form == "parts":
        expect_keys(value, ("parts",), place)
        return Parts(
            tuple(
                _part(part, workers, f"{place}.parts[{i}]")
                for i, part in enumerate(_limited(value["parts"], f"{place}.parts"))
            )
        )
    if form == "spread":
        expect_keys(value, ("spread", "workers"), place)
        degrees = []
        for i, degree in enumerate(_limited(value["spread"], f"{place}.spread")):
            here = f"{place}.spread[{i}]"
            label, count = _pair(degree, here)
            entry = _entry(label, kind, f"{here}[0]")
            if isinstance(entry, At):
                raise PlanError(f'{here}: "at" is for steps; name the workers that take part')
            degrees.append((entry, number_between(count, f"{here}[1]", 1, PART_LIMIT)))
        return Spread(tuple(degrees), _workers(value["workers"], workers, place))
    expect_keys(value, ("cut", "bounds", "workers"), place)
    bounds = tuple(
        number_between(bound, f"{place}.bounds[{i}]", 0, EXTENT_LIMIT)
        for i, bound in enumerate(_limited(value["bounds"], f"{place}.bounds"))
    )
    return Cut(_label(value["cut"], kind, f"{place}.cut"), bounds, _workers(value["workers"], workers, place))


def _entry(value: object, kind: type[str] | type[int], place: str) -> Entry:
    if value is None:
        return None
    if isinstance(value, dict) and "partial" in value:
        expect_keys(value, ("partial",), place)
        if value["partial"] is not True:
            raise PlanError(f'{place}: "partial" is {str(value["partial"])[:60]}; write true')
        return Partial()
    if isinstance(value, dict):
        expect_keys(value, ("at",), place)
        return At(number_between(value["at"], f"{place}.at", 0, PART_LIMIT))
    return _label(value, kind, place)


def _label(value: object, kind: type[str] | type[int], place: str) -> Label:
    return number_between(value, place, 0, 63) if kind is int else typed(value, str, place)


def _workers(value: object, workers: int, place: str) -> tuple[int, ...]:
    return tuple(
        number_between(worker, f"{place}.workers[{i}]", 0, workers - 1)
        for i, worker in enumerate(_limited(value, f"{place}.workers"))
    )


def _part(value: object, workers: int, place: str) -> tuple[int, Region] | tuple[int, Region, int]:
    part = typed(value, list, place)
    if len(part) not in (2, 3):
        raise PlanError(
            f"{place} has {counted(len(part), 'entry', 'entries')}; "
            "it must have a worker, a box and maybe a term"
        )
    worker, box, *term = part
    intervals = []
    for i, interval in enumerate(typed(box, list, f"{place}[1]")):
        here = f"{place}[1][{i}]"
        lower, upper = _pair(interval, here)
        start = number_between(lower, f"{here}[0]", 0, EXTENT_LIMIT)
        intervals.append((start, number_between(upper, f"{here}[1]", start, EXTENT_LIMIT)))
    found = number_between(worker, f"{place}[0]", 0, workers - 1), tuple(intervals)
    return (*found, number_between(term[0], f"{place}[2]", 0, PART_LIMIT)) if term else found


def _pair(value: object, place: str) -> tuple[object, object]:
    pair = typed(value, list, place)
    if len(pair) != 2:
        raise PlanError(f"{place} has {counted(len(pair), 'entry', 'entries')}; it must have 2")
    return pair[0], pair[1]


def _limited(value: object, place: str) -> list[object]:
    entries = typed(value, list, place)
    if len(entries) > PART_LIMIT:
        raise PlanError(f"{place} has {len(entries)} entries; a form has at most {PART_LIMIT}")
    return entries
