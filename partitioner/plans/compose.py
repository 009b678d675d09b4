"""Plans that a person writes: a form for every operation and every tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TypeVar

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape, to_region
from ...dataflow.graph import Graph, Operation, Tensor
from ...errors import PlanError
from ...support.gc_pause import gc_paused
from ...support.wording import alternatives
from ..costs.plan_bytes import KnownCounts
from ..layouts.copies import Copy
from ..layouts.forms import Follow, Form, Parts, check_form
from ..layouts.step_split import Layout, prime_factors, split_operation
from ..layouts.two_hops import in_two_hops
from .plan import Plan, require_graph, require_workers

METHOD = "written"

T = TypeVar("T")


@gc_paused()
def compose(
    graph: Graph,
    workers: int,
    operations: Mapping[str, Form],
    tensors: Mapping[str, Form] | None = None,
    *,
    copies: Mapping[str, Sequence[Copy]] | None = None,
    order: Sequence[str] | None = None,
    counts: KnownCounts | None = None,
) -> Plan:
    """Make a plan of the forms of all operations and tensors.

    Keys, readers of copies and entries of the order are names or shell patterns; a name counts more than a
    pattern, and an earlier pattern more than a later one. Every operation needs a form. A tensor without one
    follows the operation that makes it, or is where the tensor that it overwrites is. Partial results that go
    to several holders of the same part are reduced in two hops, as an all-reduce, if the tensor has a
    dimension with at least one element for each. `counts` are those of other plans for as many workers.

    Raises PlanError for names that match nothing, for tensors without a form that nothing makes, and for
    forms that do not fit.
    """
    plan = replace(
        uncounted(graph, workers, operations, tensors),
        written_order=None if order is None else _order(order, [each.name for each in graph.operations]),
        copies=_copies(graph, copies or {}),
    )
    totals = plan.checked_count(graph, counts)
    steps = tuple(after - before for before, after in pairwise(totals))
    return replace(plan, cost_bytes=totals[-1], step_cost_bytes=steps)


def uncounted(
    graph: Graph, workers: int, operations: Mapping[str, Form], tensors: Mapping[str, Form] | None
) -> Plan:
    """Return the plan of `compose` before its choices are checked together and its bytes are counted."""
    require_graph(graph)
    require_workers(workers)
    factors = prime_factors(workers)
    names = [operation.name for operation in graph.operations]
    written = _forms("operation", operations, names)
    missing = [name for name in names if name not in written]
    if missing:
        raise PlanError(
            f"operation {missing[0]!r} has no form ({len(missing)} in all); give one, or one for a pattern "
            "such as '*'"
        )
    places = _forms("tensor", tensors or {}, [tensor.name for tensor in graph.tensors])
    maker = {tensor: operation for operation in graph.operations for tensor in operation.outputs}
    layouts: dict[str, Layout] = {}
    known: dict[Layout, Layout] = {}
    shared: dict[tuple[Shape, int], Layout] = {}  # by shape and the identity of the form
    made: dict[tuple[Bound, Form, int], Parts] = {}
    for tensor in graph.tensors:
        if tensor.alias is not None:
            overwritten = graph.tensors[tensor.alias].name
            layouts[tensor.name] = layouts[overwritten]
            if tensor.name in (tensors or {}):
                raise PlanError(
                    f"tensor {tensor.name!r} is where {overwritten!r} is, which it overwrites; give "
                    f"{overwritten!r} the form instead"
                )
            continue
        form = places.get(tensor.name, Follow())
        if isinstance(form, Follow):
            form = _followed(tensor, maker.get(tensor.index), written, factors, made)
        key = tensor.shape, id(form)
        if key not in shared:
            layout = Layout(tensor.shape, form, factors)
            if layout not in known:
                layout.check(f"tensor {tensor.name!r}")
                known[layout] = in_two_hops(layout)
            shared[key] = known[layout]
        layouts[tensor.name] = shared[key]
    return Plan(
        fingerprint=graph.fingerprint,
        workers=workers,
        factors=factors,
        method=METHOD,
        layouts=layouts,
        strategies={operation.name: written[operation.name] for operation in graph.operations},
        cost_bytes=0,
        step_cost_bytes=(0,),
        lower_bound_bytes=0,
        graph=graph,
    )


def by_name(what: str, written: Mapping[str, T], names: Sequence[str]) -> dict[str, T]:
    """Return what is written for every name that a key matches, in the order of the names.

    A name counts more than a pattern, and an earlier pattern more than a later one. Raises PlanError for keys
    that match nothing.
    """
    known = set(names)
    patterns = [key for key in written if key not in known]
    found: dict[str, T] = {}
    for name in names:
        key = name if name in written else next((p for p in patterns if fnmatchcase(name, p)), None)
        if key is not None:
            found[name] = written[key]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise PlanError(f"{pattern!r} matches no {what}{alternatives(pattern, names)}")
    return found


def _forms(what: str, forms: Mapping[str, Form], names: Sequence[str]) -> dict[str, Form]:
    if not isinstance(forms, Mapping):
        raise PlanError(f"forms of {what}s are given by name, not as a {type(forms).__name__}; write a dict")
    checked: set[int] = set()
    for key, form in forms.items():
        if id(form) not in checked:
            check_form(form, f"{what} {key!r}")
            checked.add(id(form))
    return by_name(what, forms, names)


def _order(order: object, names: Sequence[str]) -> tuple[str, ...]:
    """Return all names in the order of the entries that they match; one entry's are in the graph's order."""
    if isinstance(order, str) or not isinstance(order, Sequence):
        raise PlanError(f"the order is {str(order)[:60]!r}; give a list of operation names")
    entries = {str(entry): number for number, entry in enumerate(order)}
    if len(entries) < len(order):
        twice = next(entry for number, entry in enumerate(order) if entries[str(entry)] != number)
        raise PlanError(f"the order has {str(twice)!r} twice; write it once")
    place = by_name("operation", entries, names)
    return tuple(sorted(place, key=place.__getitem__))


def _copies(graph: Graph, copies: Mapping[str, Sequence[Copy]]) -> dict[str, tuple[Copy, ...]]:
    """Return the copies of every tensor that has any, with the names of their readers."""
    if not isinstance(copies, Mapping):
        raise PlanError(f"copies are given by tensor, not as a {type(copies).__name__}; write a dict")
    for name, listed in copies.items():
        if not isinstance(listed, Sequence) or not all(isinstance(copy, Copy) for copy in listed):
            raise PlanError(f"the copies of tensor {name!r} are {str(listed)[:60]!r}; give a list of Copy")
        for number, copy in enumerate(listed, 1):
            check_form(copy.form, f"copy {number} of tensor {name!r}")
    if not copies:
        return {}
    copied = by_name("tensor", copies, [tensor.name for tensor in graph.tensors])
    readers: list[list[str] | None] = [[] if tensor.name in copied else None for tensor in graph.tensors]
    for operation in graph.operations:
        for tensor in operation.inputs:
            if (found := readers[tensor]) is not None:
                found.append(operation.name)
    operations = {operation.name for operation in graph.operations}
    return {
        tensor.name: tuple([
            replace(
                copy, readers=_readers(copy, operations, found, f"copy {n} of tensor {tensor.name!r}")
            )
            for n, copy in enumerate(copied[tensor.name], 1)
        ])
        for tensor, found in zip(graph.tensors, readers, strict=True)
        if found is not None
    }  # fmt: skip


def _readers(copy: Copy, operations: Set[str], readers: Sequence[str], place: str) -> tuple[str, ...]:
    """Return the readers of a copy; a pattern stands for the operations that read the tensor and match it."""
    found: dict[str, None] = {}
    for entry in copy.readers:
        matching = [entry] if entry in operations else [r for r in readers if fnmatchcase(r, entry)]
        if not matching:
            raise PlanError(
                f"{place}: {entry!r} matches no operation that reads it{alternatives(entry, readers)}"
            )
        found.update(dict.fromkeys(matching))
    return tuple(found)


def _followed(
    tensor: Tensor,
    maker: Operation | None,
    written: Mapping[str, Form],
    factors: tuple[int, ...],
    known: dict[tuple[Bound, Form, int], Parts],
) -> Parts:
    """Return the parts of a tensor where its operation makes them; `known` are those of equal operations."""
    if maker is None:
        raise PlanError(f"no operation makes tensor {tensor.name!r}; give it a form")
    key = maker.bound, written[maker.name], maker.outputs.index(tensor.index)
    if key in known:
        return known[key]
    try:
        tasks = split_operation(maker.bound, written[maker.name], factors)
    except PlanError as error:
        raise PlanError(f"operation {maker.name!r}: {error}") from error
    made = maker.bound.output_regions(tasks.boxes)[key[2]]
    term = [(number,) if tasks.terms > 1 else () for number in tasks.term.tolist()]
    parts = zip(tasks.workers.tolist(), map(to_region, made), term, strict=True)
    known[key] = Parts(tuple(dict.fromkeys((worker, region, *number) for worker, region, number in parts)))
    return known[key]
