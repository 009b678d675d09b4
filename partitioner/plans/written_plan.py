"""Plans as people write them, in YAML or JSON files or as Python's dicts: forms by name or shell pattern.

    workers: 4                              optional; a check
    operations:
      fc1*: {along: n, workers: [0, 1, 2]}
      "*": {worker: 3}
    tensors:
      fc?_weight: everywhere
      "*": {worker: 3}
    copies:
      fc2_weight: [{form: everywhere, readers: ["fc2.product"]}]
    order: ["fc1*", "*"]

A document without any of these keys is what `tensors` would hold. `form_document` reads the forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import PlanError
from ...machines.machine import WORKER_LIMIT
from ...support.strict_documents import expect_keys, number_between, read_document, typed, typed_object
from ..layouts.copies import Copy
from ..layouts.forms import Form
from ..layouts.step_split import is_stepped
from .form_document import decode_short_form

SECTIONS = ("workers", "operations", "tensors", "copies", "order")

SOURCE_LIMIT = 1 << 14
"""The largest number of a version that a copy may be made from."""


@dataclass(frozen=True, slots=True)
class WrittenPlan:
    """A part of a plan, or all of it, as a person writes it. Keys are names or shell patterns."""

    tensors: Mapping[str, Form]
    """The forms of tensors; one entry for each step throughout if operations have none."""

    operations: Mapping[str, Form] | None
    """The forms of all operations; None if a search is to find them."""

    copies: Mapping[str, Sequence[Copy]]
    """The copies of tensors."""

    order: Sequence[str] | None
    """The order of the operations; None for the graph's."""


def read_written_plan(path: Path, workers: int) -> WrittenPlan:
    """Read a plan for a number of workers from a YAML or JSON file.

    Raises PlanError naming the file and the place in it.
    """
    document = read_document(path, "layout file")
    try:
        return decode_written_plan(document, workers)
    except PlanError as error:
        raise PlanError(f"the layout file {str(path)!r} cannot be used: {error}") from error


def decode_written_plan(document: object, workers: int) -> WrittenPlan:
    """Read a plan for a number of workers from the value of a document.

    Raises PlanError naming the place of what is wrong.
    """
    entries = _entries(document, "the document")
    if not any(section in entries for section in SECTIONS):
        entries = {"tensors": entries}
    expect_keys(entries, (), "the document", optional=SECTIONS)
    meant = number_between(entries.get("workers", workers), "workers", 1, WORKER_LIMIT)
    if meant != workers:
        raise PlanError(f"it is for {meant} workers, but {workers} were asked for; ask for {meant}")
    written = WrittenPlan(
        _forms(entries.get("tensors", {}), int, workers, "tensors"),
        _forms(entries["operations"], str, workers, "operations") if "operations" in entries else None,
        {
            name: [
                _copy(copy, workers, f"copies[{name!r}][{i}]")
                for i, copy in enumerate(typed(listed, list, f"copies[{name!r}]"))
            ]
            for name, listed in _entries(entries.get("copies", {}), "copies").items()
        },
        _names(entries["order"], "order") if "order" in entries else None,
    )
    if written.operations is None:
        _check_searchable(written)
    return written


def _check_searchable(written: WrittenPlan) -> None:
    """Raise PlanError if a plan without forms of operations says more than a search can take."""
    complete = 'add "operations" with a form for each, such as {"*": "everywhere"}'
    for name, form in written.tensors.items():
        if not is_stepped([form]):
            raise PlanError(
                f"tensors[{name!r}] does not give a dimension or null for each step, and a search takes no "
                f"other form; {complete}"
            )
    for section, given in (("copies", written.copies), ("order", written.order)):
        if given:
            raise PlanError(f'"{section}" is for plans that are written in full; {complete}')


def _forms(value: object, kind: type[str] | type[int], workers: int, place: str) -> dict[str, Form]:
    return {
        name: decode_short_form(form, kind, workers, f"{place}[{name!r}]")
        for name, form in _entries(value, place).items()
    }


def _copy(value: object, workers: int, place: str) -> Copy:
    if isinstance(value, Copy):
        return value
    entry = typed_object(value, place)
    expect_keys(entry, ("form", "readers"), place, optional=("source",))
    return Copy(
        decode_short_form(entry["form"], int, workers, f"{place}.form"),
        _names(entry["readers"], f"{place}.readers"),
        number_between(entry.get("source", 0), f"{place}.source", 0, SOURCE_LIMIT),
    )


def _names(value: object, place: str) -> tuple[str, ...]:
    return tuple(typed(name, str, f"{place}[{i}]") for i, name in enumerate(typed(value, list, place)))


def _entries(value: object, place: str) -> dict[str, object]:
    """Return an object's entries. Raises PlanError for other values, and for keys that are not text."""
    entries = typed_object(value, place)
    for key in entries:
        if not isinstance(key, str):
            raise PlanError(f"{place} has the key {key!r}, which is not a string; write a name or a pattern")
    return entries
