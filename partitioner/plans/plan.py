"""Plans (a layout for every tensor and a strategy for every operation of one graph) and their files.

Files are JSON, one tensor or operation per line, read with distrust. A file holds choices and costs, never
regions. Regions are computed from the choices, so they cannot have gaps or overlaps. The search time is not
stored, so equal plans have equal files.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ...dataflow.graph import Graph
from ...dataflow.rewrites.encoders import Rewrite
from ...errors import GraphError, PlanError
from ...machines.machine import WORKER_LIMIT
from ...support.document_place import DocumentPlace
from ...support.notebook_display import NotebookDisplay
from ...support.saved_files import save_whole
from ...support.strict_documents import (
    expect_keys,
    number_between,
    parse_json,
    read_bounded,
    typed,
    typed_object,
)
from ..costs.movement import Movements
from ..costs.plan_bytes import Contribution, count, count_bytes
from ..layouts.copies import Copy, ReadCopy, versions_read
from ..layouts.forms import Form
from ..layouts.order import in_order
from ..layouts.partial import check_partial
from ..layouts.step_split import Layout, Strategies, check_strategies, is_stepped, plain_steps
from .assignment import Tasks, Versions
from .form_document import decode_form, encode_form
from .origin import PlanOrigin
from .rewrite_document import decode_planned, encode_rewrite
from .sampling import Sampling
from .space import SPLIT, Space, parse_feed
from .unproven import ENTRIES_COUNTED, UnprovenStep

FORMAT = "tofu plan"
VERSIONS = (1, 2)
"""Version 1 holds plans that are written in steps throughout, version 2 any forms and an order."""

EXTENT_LIMIT = 1 << 48

_TENSORS = ("split", "replicated")
"""How plan files say whether a space replicates tensors."""


@dataclass(frozen=True, slots=True)
class TransferSeconds:
    """The time of a plan's transfers, one after the other, over a machine's links: the objective `time`."""

    seconds: float
    """The time for all transfers of one iteration."""

    lower_bound: float | None
    """No plan with the same factors and ties takes less time; None if the method proves nothing."""


@dataclass(frozen=True, slots=True)
class Plan(NotebookDisplay):
    """How to run one graph on `workers` workers, split step by step."""

    fingerprint: str
    """The fingerprint of the graph that the plan is for."""

    workers: int
    """The number of workers: the product of the factors."""

    factors: tuple[int, ...]
    """The number of groups into which each step splits a group of workers."""

    method: str
    """The name of the search that found it."""

    layouts: Mapping[str, Layout]
    """For each tensor name, how the tensor is split over the workers."""

    strategies: Mapping[str, Form]
    """For each operation name, how it is split: for steps, the index variable that each step splits."""

    cost_bytes: int
    """The bytes that cross between workers in one iteration."""

    step_cost_bytes: tuple[int, ...]
    """The bytes that each step adds; they sum to `cost_bytes`."""

    lower_bound_bytes: int
    """No plan of `space` that a recursive search with the same factors and ties can find costs less."""

    space: Space = SPLIT
    """The plans for which `lower_bound_bytes` holds."""

    search_seconds: float | None = field(default=None, compare=False)
    """The duration of the search; None if the plan was read from a file."""

    source: PlanOrigin | None = None
    """The origin of the graph, if known."""

    written_order: tuple[str, ...] | None = None
    """The operations in the order in which they run; None for the graph's, which `order` gives."""

    copies: Mapping[str, tuple[Copy, ...]] = field(default_factory=dict)
    """For each tensor name that has any, its versions besides its home."""

    unproven: tuple[UnprovenStep, ...] = ()
    """The steps that were too wide to be solved exactly: their choices are not proven to be the best ones."""

    transfer_time: TransferSeconds | None = field(default=None, compare=False)
    """Known if the search minimised time; plan files do not keep it."""

    step_seconds: float | None = field(default=None, compare=False)
    """The simulated time of one iteration, if a machine was given that says how fast its devices are."""

    step_bound_seconds: float | None = field(default=None, compare=False)
    """No order of the plan's tasks and transfers takes less: the longest chain of those that need each other,
    or the time in which the busiest device or link is occupied. Known if `step_seconds` is.
    """

    sampling: Sampling | None = None
    """The seed and the budget of a random search; None for all others."""

    rewrites: Mapping[str, Rewrite] = field(default_factory=dict)
    """The rewrites of the gradients of parameters, by name: the plan is for the graph that has them."""

    merged: bool = False
    """Whether it is for the graph with merged operations, see `dataflow.merging`, before any rewrites."""

    graph: Graph | None = field(default=None, compare=False, repr=False)
    """The graph that the plan is for, if known; plan files do not keep it."""

    @property
    def tasks(self) -> Tasks:
        """Map every operation's name to its tasks. Raises PlanError if the graph is not known."""
        return Tasks(graph_of(self), self.strategies, self.factors)

    @property
    def versions(self) -> Versions:
        """Map every tensor's name to its home and its copies. Raises PlanError if the graph is not known."""
        graph = graph_of(self)
        order = in_order(graph, self.written_order)
        return Versions(graph, self.strategies, self.layouts, self.copies, self.factors, order)

    @property
    def order(self) -> tuple[str, ...]:
        """Return the names of all operations in the order in which they run."""
        if self.written_order is not None:
            return self.written_order
        return tuple(self.strategies if self.graph is None else [o.name for o in self.graph.operations])

    def of(self, graph: Graph) -> Plan:
        """Return the plan with its graph. Raises PlanError if it is for another one."""
        self.check_graph(graph)
        return dataclasses.replace(self, graph=graph)

    def __repr__(self) -> str:
        groups = " x ".join(map(str, self.factors)) or "1"
        return f"<{self.method} plan over {self.workers} workers ({groups}): {self.cost_bytes:,} bytes moved>"

    @property
    def in_steps(self) -> bool:
        """Whether every choice is one label, or None, for each step, and nothing is copied.

        Only such a plan has a cost for each step.
        """
        return not self.copies and is_stepped((*self.layouts.values(), *self.strategies.values()))

    def save(self, path: str | Path) -> None:
        """Write a plan file; the same plan gives the same bytes. Raises PlanError if that fails."""

        write_plan(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan file. Raises PlanError if it is not one. `verify` checks the plan against a graph."""

        return read_plan(Path(path))

    def verify(self, graph: Graph) -> None:
        """Raise PlanError unless the plan is for `graph`, every choice is legal and all bytes recount."""
        self._check_costs(self.checked_count(graph))

    def check_forms(self, graph: Graph) -> None:
        """Raise PlanError unless the plan is for `graph` and every choice is legal."""
        self.check_graph(graph)
        self._check_choices(graph, self.versions_read(graph))

    def checked_count(self, graph: Graph) -> list[int]:
        """Check as `check_forms`, and count as `count`."""
        self.check_graph(graph)
        versions = self.versions_read(graph)
        self._check_choices(graph, versions)
        return count_bytes(graph, self.layouts, self.strategies, self.factors, versions)

    def _check_choices(self, graph: Graph, versions: Mapping[tuple[int, int], ReadCopy]) -> None:
        """Raise PlanError unless every choice is legal. Objects that choices share are checked once."""
        checked: set[tuple[int, ...]] = set()
        for tensor in graph.tensors:
            layout = self.layouts[tensor.name]
            place = f"tensor {tensor.name!r}"
            if layout.shape != tensor.shape or layout.factors != self.factors:
                raise PlanError(
                    f"{place}: the plan splits shape {layout.shape} by {layout.factors}; the graph has shape "
                    f"{tensor.shape} and the plan's factors are {self.factors}"
                )
            if (id(layout),) not in checked:
                layout.check(place)
                checked.add((id(layout),))
            if tensor.alias is not None:
                overwritten = graph.tensors[tensor.alias].name
                other = self.layouts[overwritten]
                if layout is not other and layout != other:
                    raise PlanError(
                        f"{place} overwrites {overwritten!r} but has another layout: their forms are "
                        f"{layout.form} and {other.form}; give both one layout"
                    )
        for operation in graph.operations:
            form = self.strategies[operation.name]
            key = id(operation.bound), id(form)
            if key not in checked:
                check_strategies(operation.bound, form, self.factors, f"operation {operation.name!r}")
                checked.add(key)
        check_partial(graph, self.layouts, self.strategies, self.copies, versions)
        self._check_copies(graph, versions)

    def _check_copies(self, graph: Graph, versions: Mapping[tuple[int, int], ReadCopy]) -> None:
        """Raise PlanError if a copy lacks what its readers need, or its source what the copy holds."""
        movements = Movements(self.workers, self.factors)
        for (number, tensor), copy in versions.items():
            operation = graph.operations[number]
            operator = movements.operator(operation.bound, self.strategies[operation.name])
            held, source = movements.layout(copy.layout), movements.layout(copy.source)
            try:
                movements.collections(source, held)
                for place, name in operation.bound.read_places:
                    if operation.inputs[place] == tensor:
                        movements.fetches(operator.inputs[name], held)
            except PlanError as error:
                raise PlanError(
                    f"copy {copy.number} of tensor {graph.tensors[tensor].name!r}, which {operation.name!r} "
                    f"reads: {error}"
                ) from error

    def count(self, graph: Graph) -> list[int]:
        """Count the bytes that move after no step, one, and so on up to all."""
        return count_bytes(graph, self.layouts, self.strategies, self.factors, self.versions_read(graph))

    def split_along(self, operation: str) -> Strategies:
        """Return the index variable that each step splits. Raises PlanError if another form is used."""
        try:
            return tuple(
                None if entry is None else str(entry) for entry in plain_steps(self.strategies[operation])
            )
        except PlanError as error:
            raise PlanError(f"operation {operation!r}: {error}") from error

    def versions_read(self, graph: Graph) -> dict[tuple[int, int], ReadCopy]:
        """Return the copies that operations read, by the numbers of operation and tensor.

        Raises PlanError for an order or a copy that cannot be.
        """
        return versions_read(graph, in_order(graph, self.written_order), self.layouts, self.copies)

    def contributions(self, graph: Graph) -> list[Contribution]:
        """Count the bytes that every operation moves for every tensor it touches, with zeros."""
        versions = self.versions_read(graph)
        return count(graph, self.layouts, self.strategies, self.factors, versions)

    def check_graph(self, graph: Graph) -> None:
        """Raise PlanError unless names and fingerprint are those of `graph`."""
        require_graph(graph)
        if self.merged and not self.rewrites and graph.fingerprint != self.fingerprint:
            raise PlanError(
                f"the plan is for graph {graph.name!r} with merged operations; use "
                "tofu.sync.rewrite(graph, plan.workers, plan), or partition it again if this is that one"
            )
        if self.rewrites and graph.fingerprint != self.fingerprint:
            raise PlanError(
                f"the plan is for graph {graph.name!r} with other gradients of {next(iter(self.rewrites))!r} "
                f"({len(self.rewrites)} in all); use tofu.sync.rewrite(graph, plan.workers, plan), or "
                "partition it again if this is the rewritten one"
            )
        _check_names("tensor", self.layouts, (tensor.name for tensor in graph.tensors))
        _check_names("operation", self.strategies, (operation.name for operation in graph.operations))
        actual = graph.fingerprint
        if actual != self.fingerprint:
            raise PlanError(
                f"the plan was made for a graph with fingerprint {self.fingerprint[:16]}, but graph "
                f"{graph.name!r} has {actual[:16]}: shapes, attributes or the optimizer's settings differ; "
                "partition it again"
            )

    def _check_costs(self, totals: list[int]) -> None:
        recounted = tuple(after - before for before, after in pairwise(totals))
        if recounted != self.step_cost_bytes or totals[-1] != self.cost_bytes:
            raise PlanError(
                f"the plan states {self.cost_bytes} bytes, by step {self.step_cost_bytes}, but its choices "
                f"move {totals[-1]}, by step {recounted}; partition the graph again"
            )
        if not 0 <= self.lower_bound_bytes <= self.cost_bytes:
            raise PlanError(
                f"the plan states a lower bound of {self.lower_bound_bytes} bytes, which is not between 0 "
                f"and its cost of {self.cost_bytes}; partition the graph again"
            )


def graph_of(plan: Plan) -> Graph:
    """Return the graph that a plan is for. Raises PlanError if it is not known."""
    if plan.graph is None:
        raise PlanError("the plan was read from a file, which has no graph; use plan.of(graph)")
    return plan.graph


def require_graph(value: object) -> None:
    """Raise GraphError if the value is not a graph, for example a model or a symbol."""
    if not isinstance(value, Graph):
        raise GraphError(
            f"a Graph is needed, not a {type(value).__name__}; call model.training_graph() for a "
            "model, or tofu.training_graph(symbol, shapes) for a symbol"
        )


def require_workers(workers: object) -> None:
    """Raise PlanError unless the value is a number of workers."""
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise PlanError(f"the number of workers must be an integer, not {workers!r}")
    if not 1 <= workers <= WORKER_LIMIT:
        raise PlanError(f"cannot partition over {workers} workers; use 1 to {WORKER_LIMIT}")


def contributors(graph: Graph, plan: Plan) -> list[Contribution]:
    """List the contributions to one iteration's bytes, largest first; they sum to the plan's cost."""
    plan.check_graph(graph)
    moving = [entry for entry in plan.contributions(graph) if entry.bytes]
    return sorted(moving, key=lambda entry: -entry.bytes)


_OTHER_GRAPH = "; it was made for another model, optimizer or number of micro-batches: partition again"


def _check_names(what: str, planned: Mapping[str, object], expected: Iterable[str]) -> None:
    names = set(expected)
    missing, unknown = sorted(names - planned.keys()), sorted(planned.keys() - names)
    if missing:
        raise PlanError(
            f"the plan does not contain {what} {missing[0]!r} ({len(missing)} in all){_OTHER_GRAPH}"
        )
    if unknown:
        raise PlanError(
            f"the plan names {what} {unknown[0]!r}, which is not in the graph ({len(unknown)} in all)"
            f"{_OTHER_GRAPH}"
        )


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan file, whole or not at all. Raises PlanError if that fails."""
    save_whole(path, encode_plan(plan).encode(), "the plan file", PlanError)


def read_plan(path: Path) -> Plan:
    """Read and check a file. Raises PlanError naming the file, the place in it, and what is wrong."""
    data = read_bounded(path, "plan file")
    try:
        return decode_plan(data)
    except PlanError as error:
        raise PlanError(f"the plan file {str(path)!r} cannot be used: {error}") from error


def is_plan_file(path: Path) -> bool:
    """Tell whether a file says that it is a plan file, whether or not it is a good one."""
    try:
        found = parse_json(read_bounded(path, "plan file"))
    except PlanError:
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def encode_plan(plan: Plan) -> str:
    """Return the text of a plan file, which is ASCII and deterministic."""
    stepped = plan.written_order is None and plan.in_steps
    head: dict[str, object] = {
        "format": FORMAT,
        "version": 1 if stepped else 2,
        "fingerprint": plan.fingerprint,
        "method": plan.method,
        "workers": plan.workers,
        "factors": plan.factors,
        "cost_bytes": plan.cost_bytes,
        "step_cost_bytes": plan.step_cost_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
    }
    if plan.space != SPLIT:
        limit = plan.space.memory_bytes
        head["space"] = {
            "tensors": _TENSORS[plan.space.replicate],
            "feed": plan.space.feed,
            **({"copies": "kept"} if plan.space.keep else {}),
            **({} if limit is None else {"memory_bytes": limit}),
        }
    if plan.unproven:
        head["unproven"] = [dataclasses.asdict(step) for step in plan.unproven]
    if plan.step_seconds is not None:
        head["step_seconds"] = plan.step_seconds
    if plan.sampling is not None:
        head["sampling"] = dataclasses.asdict(plan.sampling)
    if plan.merged:
        head["merged"] = True
    if plan.rewrites:
        head["rewrites"] = {name: encode_rewrite(each) for name, each in plan.rewrites.items()}
    if plan.source is not None:
        head["source"] = dataclasses.asdict(plan.source)
    if plan.written_order is not None:
        head["order"] = plan.written_order
    if plan.copies:
        head["copies"] = {
            name: [
                {"form": encode_form(copy.form), "readers": copy.readers, "source": copy.source}
                for copy in copies
            ]
            for name, copies in plan.copies.items()
        }
    key = "dimensions" if stepped else "form"
    tensors = {
        name: {"shape": layout.shape, key: encode_form(layout.form)}
        | ({} if layout.via is None else {"via": encode_form(layout.via)})
        for name, layout in plan.layouts.items()
    }
    operations = {name: encode_form(form) for name, form in plan.strategies.items()}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    lines.append(f'  "tensors": {_one_a_line(tensors)},')
    lines.append(f'  "operations": {_one_a_line(operations)}')
    return "\n".join(("{", *lines, "}", ""))


def _one_a_line(entries: object) -> str:
    assert isinstance(entries, dict)
    lines = [f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in entries.items()]
    return "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"


def decode_plan(data: bytes) -> Plan:
    """Parse and check a plan file's contents, allocating nothing that depends on numbers in it."""
    head = typed_object(parse_json(data), "the file")
    if head.get("format") != FORMAT:
        raise PlanError(f'"format" is {head.get("format")!r}; a plan file has {FORMAT!r}')
    version = typed(head.get("version"), int, "version")
    if version not in VERSIONS:
        raise PlanError(f'"version" is {version}; this Tofu reads versions {VERSIONS[0]} and {VERSIONS[1]}')
    keys = ("fingerprint", "method", "workers", "factors", "cost_bytes", "step_cost_bytes")
    expected = ("format", "version", *keys, "lower_bound_bytes", "tensors", "operations")
    optional = (
        "source",
        "space",
        "unproven",
        "sampling",
        "step_seconds",
        "rewrites",
        "merged",
        *(("order", "copies") if version == 2 else ()),
    )
    expect_keys(head, expected, "the file", optional=optional)
    factors = tuple(
        number_between(factor, f"factors[{i}]", 2, WORKER_LIMIT)
        for i, factor in enumerate(typed(head["factors"], list, "factors"))
    )
    workers = number_between(head["workers"], "workers", 1, WORKER_LIMIT)
    if len(factors) > WORKER_LIMIT.bit_length() or math.prod(factors) != workers:
        raise PlanError(f'"factors" {list(factors)} do not multiply to "workers" {workers}')
    steps = tuple(
        number_between(cost, f"step_cost_bytes[{i}]", -(1 << 62), 1 << 62)
        for i, cost in enumerate(typed(head["step_cost_bytes"], list, "step_cost_bytes"))
    )
    cost_bytes = number_between(head["cost_bytes"], "cost_bytes", 0, 1 << 62)
    if len(steps) not in ({len(factors)} if version == 1 else {1, len(factors)}) or sum(steps) != cost_bytes:
        raise PlanError(
            f'"step_cost_bytes" {list(steps)} must be one number per factor, with sum {cost_bytes}'
        )
    tensors = typed_object(head["tensors"], "tensors")
    operations = typed_object(head["operations"], "operations")
    return Plan(
        fingerprint=typed(head["fingerprint"], str, "fingerprint"),
        workers=workers,
        factors=factors,
        method=typed(head["method"], str, "method"),
        layouts={
            name: _layout(value, version, factors, f"tensors[{name!r}]") for name, value in tensors.items()
        },
        strategies={
            name: _operation(value, version, factors, f"operations[{name!r}]")
            for name, value in operations.items()
        },
        cost_bytes=cost_bytes,
        step_cost_bytes=steps,
        lower_bound_bytes=number_between(head["lower_bound_bytes"], "lower_bound_bytes", 0, cost_bytes),
        space=_space(head["space"]) if "space" in head else SPLIT,
        source=_source(head["source"]) if "source" in head else None,
        step_seconds=_seconds(head["step_seconds"]) if "step_seconds" in head else None,
        sampling=_sampling(head["sampling"]) if "sampling" in head else None,
        rewrites=_rewrites(head.get("rewrites", {})),
        merged=typed(head.get("merged", False), bool, "merged"),
        unproven=tuple(
            _unproven(step, len(factors), f"unproven[{i}]")
            for i, step in enumerate(typed(head.get("unproven", []), list, "unproven"))
        ),
        written_order=tuple(
            typed(name, str, f"order[{i}]") for i, name in enumerate(typed(head["order"], list, "order"))
        )
        if "order" in head
        else None,
        copies={
            name: tuple(
                _copy(copy, workers, f"copies[{name!r}][{i}]")
                for i, copy in enumerate(typed(listed, list, f"copies[{name!r}]"))
            )
            for name, listed in typed_object(head.get("copies", {}), "copies").items()
        },
    )


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise PlanError(f"step_seconds is {str(value)[:40]}; it must be a number of seconds, 0 or larger")
    return float(value)


def _sampling(value: object) -> Sampling:
    entry = typed_object(value, "sampling")
    expect_keys(entry, ("seed", "proposals", "beta", "seconds"), "sampling")
    found = Sampling(**entry)  # type: ignore[arg-type]  # check tells
    try:
        found.check()
    except PlanError as error:
        raise PlanError(f"sampling: {error}") from error
    return found


def _rewrites(value: object) -> dict[str, Rewrite]:
    listed = typed_object(value, "rewrites")
    place = DocumentPlace("rewrites")
    return {name: decode_planned(entry, place.item(name)) for name, entry in listed.items()}


def _space(value: object) -> Space:
    entry = typed_object(value, "space")
    expect_keys(entry, ("tensors", "feed"), "space", optional=("copies", "memory_bytes"))
    tensors = typed(entry["tensors"], str, "space.tensors")
    if tensors not in _TENSORS:
        raise PlanError(f"space.tensors is {tensors!r}; it must be one of {', '.join(_TENSORS)}")
    if entry.get("copies", "kept") != "kept":
        raise PlanError(f'space.copies is {entry["copies"]!r}; it must be "kept", or left out')
    memory = entry.get("memory_bytes")
    return Space(
        tensors == _TENSORS[True],
        parse_feed(typed(entry["feed"], str, "space.feed")),
        "copies" in entry,
        None if memory is None else number_between(memory, "space.memory_bytes", 0, 1 << 62),
    )


def _source(value: object) -> PlanOrigin:
    entry = typed_object(value, "source")
    later = {"dtype": "float32", "accumulate": 1, "recompute": 1, "unroll": False}  # older files lack them
    expect_keys(entry, ("model", "batch", "shapes", "optimizer"), "source", optional=tuple(later))
    entry = {**later, **entry}
    batch, optimizer = entry["batch"], entry["optimizer"]
    shapes = typed_object(entry["shapes"], "source.shapes")
    return PlanOrigin(
        typed(entry["model"], str, "source.model"),
        None if batch is None else number_between(batch, "source.batch", 1, EXTENT_LIMIT),
        {name: _extents(shape, f"source.shapes[{name!r}]") for name, shape in shapes.items()},
        None if optimizer is None else typed(optimizer, str, "source.optimizer"),
        typed(entry["dtype"], str, "source.dtype"),
        number_between(entry["accumulate"], "source.accumulate", 1, EXTENT_LIMIT),
        number_between(entry["recompute"], "source.recompute", 1, EXTENT_LIMIT),
        typed(entry["unroll"], bool, "source.unroll"),
    )


def _unproven(value: object, steps: int, place: str) -> UnprovenStep:
    entry = typed_object(value, place)
    expect_keys(entry, ("step", "table_entries", "lower_bound_bytes"), place)
    step, bound = entry["step"], entry["lower_bound_bytes"]
    return UnprovenStep(
        None if step is None else number_between(step, f"{place}.step", 0, steps - 1),
        number_between(entry["table_entries"], f"{place}.table_entries", 1, ENTRIES_COUNTED),
        None if bound is None else number_between(bound, f"{place}.lower_bound_bytes", -(1 << 62), 1 << 62),
    )


def _extents(value: object, place: str) -> tuple[int, ...]:
    extents = typed(value, list, place)
    return tuple(number_between(extent, f"{place}[{i}]", 0, EXTENT_LIMIT) for i, extent in enumerate(extents))


def _layout(value: object, version: int, factors: tuple[int, ...], place: str) -> Layout:
    entry = typed_object(value, place)
    key = "dimensions" if version == 1 else "form"
    expect_keys(entry, ("shape", key), place, optional=() if version == 1 else ("via",))
    shape = _extents(entry["shape"], f"{place}.shape")
    if version > 1:
        workers = math.prod(factors)
        via = decode_form(entry["via"], int, workers, f"{place}.via") if "via" in entry else None
        layout = Layout(shape, decode_form(entry[key], int, workers, f"{place}.form"), factors, via)
        layout.check(place)
        return layout
    dimensions = tuple(
        None
        if dimension is None
        else number_between(dimension, f"{place}.dimensions[{i}]", 0, len(shape) - 1)
        for i, dimension in enumerate(typed(entry["dimensions"], list, f"{place}.dimensions"))
    )
    layout = Layout(shape, dimensions, factors)
    layout.check(place)
    return layout


def _copy(value: object, workers: int, place: str) -> Copy:
    entry = typed_object(value, place)
    expect_keys(entry, ("form", "readers", "source"), place)
    readers = typed(entry["readers"], list, f"{place}.readers")
    if not readers:
        raise PlanError(f"{place} has no readers; name the operations that read it")
    return Copy(
        decode_form(entry["form"], int, workers, f"{place}.form"),
        tuple(typed(name, str, f"{place}.readers[{i}]") for i, name in enumerate(readers)),
        number_between(entry["source"], f"{place}.source", 0, EXTENT_LIMIT),
    )


def _operation(value: object, version: int, factors: tuple[int, ...], place: str) -> Form:
    if version > 1:
        return decode_form(value, str, math.prod(factors), place)
    strategies = tuple(
        None if variable is None else typed(variable, str, f"{place}[{i}]")
        for i, variable in enumerate(typed(value, list, place))
    )
    if len(strategies) != len(factors):
        raise PlanError(f"{place}: {len(strategies)} choices for {len(factors)} steps")
    return strategies
