"""Plan files: JSON, one tensor or operation a line, read with distrust.

A file holds choices and costs, never regions: those are computed from the choices, so they can have no
gaps or overlaps. The time that the search took is not kept: equal plans are equal files.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import TypeVar

from ...errors import PlanError
from ...machines.machine import WORKER_LIMIT
from ...support.atomic_files import write_whole
from ...support.strict_documents import parse_json, read_bounded
from ..layouts.step_split import SplitLayout, Strategies
from .origin import PlanOrigin
from .plan import Plan
from .unproven import ENTRIES_COUNTED, UnprovenStep

FORMAT = "tofu plan"
VERSION = 1
EXTENT_LIMIT = 1 << 48

KIND_NAMES: dict[type, str] = {str: "a string", int: "an integer", list: "a list", dict: "an object"}

Kind = TypeVar("Kind", str, int, list[object], dict[str, object])


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan file, whole or not at all. Raises PlanError where that fails."""
    try:
        write_whole(path, encode_plan(plan).encode())
    except OSError as error:
        raise PlanError(f"cannot write the plan file {str(path)!r}: {error.strerror}") from error


def read_plan(path: Path) -> Plan:
    """Read and check a file. Raises PlanError naming the file, the place in it, and what is wrong."""
    data = read_bounded(path, "plan file")
    try:
        return decode_plan(data)
    except PlanError as error:
        raise PlanError(f"the plan file {str(path)!r} cannot be used: {error}") from error


def encode_plan(plan: Plan) -> str:
    """The text of a plan file; ASCII, deterministic."""
    head: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": plan.fingerprint,
        "method": plan.method,
        "workers": plan.workers,
        "factors": plan.factors,
        "cost_bytes": plan.cost_bytes,
        "step_cost_bytes": plan.step_cost_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
    }
    if plan.unproven:
        head["unproven"] = [dataclasses.asdict(step) for step in plan.unproven]
    if plan.source is not None:
        head["source"] = dataclasses.asdict(plan.source)
    tensors = {n: {"shape": t.shape, "dimensions": t.dimensions} for n, t in plan.layouts.items()}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    lines.append(f'  "tensors": {_one_a_line(tensors)},')
    lines.append(f'  "operations": {_one_a_line(plan.strategies)}')
    return "\n".join(("{", *lines, "}", ""))


def _one_a_line(entries: object) -> str:
    assert isinstance(entries, dict)
    lines = [f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in entries.items()]
    return "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"


def decode_plan(data: bytes) -> Plan:
    """Parse and check a plan file's contents, allocating nothing that depends on numbers in it."""
    head = _object(parse_json(data), "the file")
    if head.get("format") != FORMAT:
        raise PlanError(f'"format" is {head.get("format")!r}, a plan file has {FORMAT!r}')
    version = _typed(head.get("version"), int, "version")
    if version != VERSION:
        raise PlanError(f'"version" is {version}; this Tofu reads version {VERSION}')
    keys = ("fingerprint", "method", "workers", "factors", "cost_bytes", "step_cost_bytes")
    expected = ("format", "version", *keys, "lower_bound_bytes", "tensors", "operations")
    _expect_keys(head, expected, "the file", optional=("source", "unproven"))
    factors = tuple(
        _number(factor, f"factors[{i}]", 2, WORKER_LIMIT)
        for i, factor in enumerate(_typed(head["factors"], list, "factors"))
    )
    workers = _number(head["workers"], "workers", 1, WORKER_LIMIT)
    if len(factors) > WORKER_LIMIT.bit_length() or math.prod(factors) != workers:
        raise PlanError(f'"factors" {list(factors)} do not multiply to "workers" {workers}')
    steps = tuple(
        _number(cost, f"step_cost_bytes[{i}]", -(1 << 62), 1 << 62)
        for i, cost in enumerate(_typed(head["step_cost_bytes"], list, "step_cost_bytes"))
    )
    cost_bytes = _number(head["cost_bytes"], "cost_bytes", 0, 1 << 62)
    if len(steps) != len(factors) or sum(steps) != cost_bytes:
        raise PlanError(
            f'"step_cost_bytes" {list(steps)} must be one number per factor, with sum {cost_bytes}'
        )
    tensors = _object(head["tensors"], "tensors")
    operations = _object(head["operations"], "operations")
    return Plan(
        fingerprint=_typed(head["fingerprint"], str, "fingerprint"),
        workers=workers,
        factors=factors,
        method=_typed(head["method"], str, "method"),
        layouts={name: _layout(value, factors, f"tensors[{name!r}]") for name, value in tensors.items()},
        strategies={
            name: _strategies(value, factors, f"operations[{name!r}]") for name, value in operations.items()
        },
        cost_bytes=cost_bytes,
        step_cost_bytes=steps,
        lower_bound_bytes=_number(head["lower_bound_bytes"], "lower_bound_bytes", 0, cost_bytes),
        source=_source(head["source"]) if "source" in head else None,
        unproven=tuple(
            _unproven(step, len(factors), f"unproven[{i}]")
            for i, step in enumerate(_typed(head.get("unproven", []), list, "unproven"))
        ),
    )


def _source(value: object) -> PlanOrigin:
    entry = _object(value, "source")
    later = {"dtype": "float32", "accumulate": 1}  # older files hold neither
    _expect_keys(entry, ("model", "batch", "shapes", "optimizer"), "source", optional=tuple(later))
    entry = {**later, **entry}
    batch = entry["batch"]
    shapes = _object(entry["shapes"], "source.shapes")
    return PlanOrigin(
        _typed(entry["model"], str, "source.model"),
        None if batch is None else _number(batch, "source.batch", 1, EXTENT_LIMIT),
        {name: _extents(shape, f"source.shapes[{name!r}]") for name, shape in shapes.items()},
        _typed(entry["optimizer"], str, "source.optimizer"),
        _typed(entry["dtype"], str, "source.dtype"),
        _number(entry["accumulate"], "source.accumulate", 1, EXTENT_LIMIT),
    )


def _unproven(value: object, steps: int, place: str) -> UnprovenStep:
    entry = _object(value, place)
    _expect_keys(entry, ("step", "table_entries", "lower_bound_bytes"), place)
    step, bound = entry["step"], entry["lower_bound_bytes"]
    return UnprovenStep(
        None if step is None else _number(step, f"{place}.step", 0, steps - 1),
        _number(entry["table_entries"], f"{place}.table_entries", 1, ENTRIES_COUNTED),
        None if bound is None else _number(bound, f"{place}.lower_bound_bytes", -(1 << 62), 1 << 62),
    )


def _extents(value: object, place: str) -> tuple[int, ...]:
    extents = _typed(value, list, place)
    return tuple(_number(extent, f"{place}[{i}]", 0, EXTENT_LIMIT) for i, extent in enumerate(extents))


def _layout(value: object, factors: tuple[int, ...], place: str) -> SplitLayout:
    entry = _object(value, place)
    _expect_keys(entry, ("shape", "dimensions"), place)
    shape = _extents(entry["shape"], f"{place}.shape")
    dimensions = tuple(
        None if dimension is None else _number(dimension, f"{place}.dimensions[{i}]", 0, len(shape) - 1)
        for i, dimension in enumerate(_typed(entry["dimensions"], list, f"{place}.dimensions"))
    )
    layout = SplitLayout(shape, dimensions, factors)
    layout.check(place)
    return layout


def _strategies(value: object, factors: tuple[int, ...], place: str) -> Strategies:
    strategies = tuple(
        None if variable is None else _typed(variable, str, f"{place}[{i}]")
        for i, variable in enumerate(_typed(value, list, place))
    )
    if len(strategies) != len(factors):
        raise PlanError(f"{place}: {len(strategies)} choices for {len(factors)} steps")
    return strategies


def _typed(value: object, kind: type[Kind], place: str) -> Kind:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise PlanError(f"{place} is {_shown(value)}, it must be {KIND_NAMES[kind]}")
    return value


def _object(value: object, place: str) -> dict[str, object]:
    return _typed(value, dict, place)


def _number(value: object, place: str, lowest: int, highest: int) -> int:
    number = _typed(value, int, place)
    if not lowest <= number <= highest:
        raise PlanError(f"{place} is {_shown(number)}, it must lie between {lowest} and {highest}")
    return number


def _expect_keys(
    entry: dict[str, object], keys: tuple[str, ...], place: str, optional: tuple[str, ...] = ()
) -> None:
    missing = [key for key in keys if key not in entry]
    unknown = [key for key in entry if key not in keys + optional]
    if missing or unknown:
        found = f"lacks {missing[0]!r}" if missing else f"has an unknown key {unknown[0]!r}"
        raise PlanError(f"{place} {found}; its keys are {', '.join(keys)}")


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return KIND_NAMES[type(value)]
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
