"""Files of plans: JSON, one tensor or operation per line, read with distrust.

A file holds choices and costs, never regions. Regions are computed from the choices, so they cannot have gaps
or overlaps. The search time is not stored, so equal plans have equal files.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import TypeVar

from ...dataflow.rewrites.encoders import Rewrite
from ...errors import PlanError
from ...machines.machine import WORKER_LIMIT
from ...support.document_place import DocumentPlace
from ...support.saved_files import save_whole
from ...support.strict_documents import (
    expect_keys,
    finite_number,
    number_between,
    parse_json,
    read_bounded,
    typed,
    typed_object,
)
from ...support.wording import counted
from ..layouts.copies import Copy
from ..layouts.forms import Form
from ..layouts.step_split import Layout
from .form_document import decode_form, encode_form
from .origin import PlanOrigin
from .plan_record import PlanRecord
from .rewrite_document import decode_planned, encode_rewrite
from .sampling import Sampling
from .space import SPLIT, Space, parse_feed
from .unproven import ENTRIES_COUNTED, UnprovenStep

P = TypeVar("P", bound=PlanRecord)

FORMAT = "tofu plan"
VERSIONS = (1, 2)
"""Version 1 holds plans that are written in steps throughout, version 2 any forms and an order."""

EXTENT_LIMIT = 1 << 48

_TENSORS = ("split", "replicated")
"""How plan files say whether a space replicates tensors."""

_COPIES = ("kept", "kept with activations")
"""How plan files say whether activations may be copied as well."""


def write_plan(plan: PlanRecord, path: Path) -> None:
    """Write a plan file, whole or not at all. Raises PlanError if that fails."""
    save_whole(path, encode_plan(plan).encode(), "the plan file", PlanError)


def read_plan(path: Path, make: type[P]) -> P:
    """Read and check a file. Raises PlanError naming the file, the place in it, and what is wrong."""
    data = read_bounded(path, "plan file")
    try:
        return decode_record(data, make)
    except PlanError as error:
        raise PlanError(f"the plan file {str(path)!r} cannot be used: {error}") from error


def is_plan_file(path: Path) -> bool:
    """Tell whether a file says that it is a plan file, whether or not it is a good one."""
    try:
        found = parse_json(read_bounded(path, "plan file"))
    except PlanError:
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def encode_plan(plan: PlanRecord) -> str:
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
            **({"copies": _COPIES[plan.space.activations]} if plan.space.keep else {}),
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
    if plan.together:
        head["together"] = plan.together
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


def decode_record(data: bytes, make: type[P]) -> P:
    """Parse and check a plan file's contents, allocating nothing that depends on numbers in it.

    `make` is the class of the result.
    """
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
        "together",
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
    return make(
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
        step_seconds=finite_number(head["step_seconds"], "step_seconds") if "step_seconds" in head else None,
        sampling=_sampling(head["sampling"]) if "sampling" in head else None,
        rewrites=_rewrites(head.get("rewrites", {})),
        together=_together(head.get("together", [])),
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


def _sampling(value: object) -> Sampling:
    entry = typed_object(value, "sampling")
    expect_keys(entry, ("seed", "proposals", "beta", "seconds"), "sampling", ("slower",))
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


def _together(value: object) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(typed(name, str, f"{place}[{j}]") for j, name in enumerate(typed(group, list, place)))
        for i, group in enumerate(typed(value, list, "together"))
        for place in (f"together[{i}]",)
    )


def _space(value: object) -> Space:
    entry = typed_object(value, "space")
    expect_keys(entry, ("tensors", "feed"), "space", optional=("copies", "memory_bytes"))
    tensors = typed(entry["tensors"], str, "space.tensors")
    if tensors not in _TENSORS:
        raise PlanError(f"space.tensors is {tensors!r}; it must be one of {', '.join(_TENSORS)}")
    copies = entry.get("copies", _COPIES[False])
    if copies not in _COPIES:
        either = " or ".join(f'"{each}"' for each in _COPIES)
        raise PlanError(f"space.copies is {copies!r}; it must be {either}, or left out")
    memory = entry.get("memory_bytes")
    return Space(
        tensors == _TENSORS[True],
        parse_feed(typed(entry["feed"], str, "space.feed")),
        "copies" in entry,
        None if memory is None else number_between(memory, "space.memory_bytes", 0, 1 << 62),
        copies == _COPIES[True],
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
        raise PlanError(f"{place}: {counted(len(strategies), 'choice')} for {counted(len(factors), 'step')}")
    return strategies
