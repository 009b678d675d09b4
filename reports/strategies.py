"""Tables of what the analysis derived for an operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from rich.table import Table

from ..analyzer.bind.bound import ITEM_BYTES
from ..errors import ShapeError
from ..operators.stages.bound_operator import BoundOperator
from ..support.wording import counted
from .tables import table
from .units import format_region


def summary(bound: BoundOperator, workers: int) -> dict[str, Any]:
    """Return one stage as plain data: text, shapes, extents, work, every strategy's regions, refusals."""
    from ..tdl import format

    return {
        "name": bound.description.name,
        "description": format(bound.description),
        "shapes": {name: list(shape) for name, shape in bound.shapes.items()},
        "output_shapes": [list(shape) for shape in bound.output_shapes],
        "extents": dict(bound.extents),
        "elementwise": bound.elementwise,
        "flops": bound.flops,
        "flops_formula": None if bound.flops is None else str(bound.analysis.flops),
        "bytes_touched": bound.bytes_touched,
        "elements_formula": str(bound.analysis.elements_touched),
        "strategies": list(_strategies(bound, workers)),
        "refusals": [
            {"variable": refusal.variable, "reason": refusal.reason, "remedy": refusal.remedy}
            for refusal in bound.refusals
        ],
    }


def _strategies(bound: BoundOperator, workers: int) -> Iterator[dict[str, Any]]:
    for strategy in bound.strategies:
        entry: dict[str, Any] = {
            "variable": strategy.variable,
            "kind": strategy.kind,
            "reducer": None if strategy.reducer is None else str(strategy.reducer),
        }
        try:
            entry["workers"] = [
                {
                    "reads": strategy.input_regions(worker=worker, workers=workers),
                    "writes": strategy.output_regions(worker=worker, workers=workers),
                }
                for worker in range(workers)
            ]
        except ShapeError as error:
            entry["refused"] = str(error)
        yield entry


def work(stage: dict[str, Any]) -> str:
    """Return one line: floating-point operations and bytes touched, as closed forms and as numbers."""
    flops = "unknown inside an opaque function"
    if stage["flops"] is not None:
        flops = _counted(stage["flops_formula"], f"{stage['flops']:,}")
    touched = _counted(f"{ITEM_BYTES}*({stage['elements_formula']})", f"{stage['bytes_touched']:,}")
    return f"flops: {flops}; bytes touched: {touched}"


def _counted(formula: str, number: str) -> str:
    return number if formula == number else f"{formula} = {number}"


def tables(stage: dict[str, Any]) -> Iterator[Table]:
    """Yield one table per strategy that the workers can take: the regions that each reads and writes."""
    for strategy in stage["strategies"]:
        if "refused" in strategy:
            continue
        inputs = list(strategy["workers"][0]["reads"])
        outputs = range(len(strategy["workers"][0]["writes"]))
        writes = ("writes" if index == 0 else f"writes {index}" for index in outputs)
        heads = ("worker", *(f"reads {name}" for name in inputs), *writes)
        rows = table(*heads, title=f"split {strategy['variable']} ({_how(strategy)})")
        rows.title_style = "bold"
        rows.columns[0].justify = "right"
        for worker, regions in enumerate(strategy["workers"]):
            reads = [format_region(regions["reads"][name]) for name in inputs]
            rows.add_row(str(worker), *reads, *map(format_region, regions["writes"]))
        yield rows


def overview(stages: Sequence[dict[str, Any]], workers: int) -> Table:
    """Return one table of the strategies of all stages that the workers can take.

    For each, it states the largest share of every tensor that a worker reads, and of the first output that it
    makes.
    """
    rows = table(
        "stage",
        "split along",
        "how",
        "a worker reads",
        "makes",
        title=f"Strategies for {counted(workers, 'worker')}",
    )
    for stage in stages:
        for strategy in stage["strategies"]:
            if "refused" in strategy:
                continue
            regions = strategy["workers"]
            reads = [
                f"{name} {_largest_share([each['reads'][name] for each in regions], shape)}"
                for name, shape in stage["shapes"].items()
                if name in regions[0]["reads"]
            ]
            makes = _largest_share([each["writes"][0] for each in regions], stage["output_shapes"][0])
            rows.add_row(stage["name"], strategy["variable"], _how(strategy), ", ".join(reads), makes)
    return rows


def _largest_share(regions: Sequence[Sequence[Sequence[int]]], shape: Sequence[int]) -> str:
    """Return the share of a tensor in the largest of its regions."""
    largest = max(prod(upper - lower for lower, upper in region) for region in regions)
    return f"{largest / max(prod(shape), 1):.0%}"


def _how(strategy: dict[str, Any]) -> str:
    """Return whether outputs are joined, or how partial results are combined."""
    return "concat" if strategy["kind"] == "concat" else f"reduce by {strategy['reducer']}"


def refusals(stage: dict[str, Any], workers: int) -> Iterator[str]:
    """Yield one line for every variable that is not split, or not over `workers` workers."""
    for strategy in stage["strategies"]:
        if "refused" in strategy:
            variable = strategy["variable"]
            extent = stage["extents"][variable]
            yield f"not split: {variable}: it has extent {extent}, too small for {workers} workers"
    for refusal in stage["refusals"]:
        remedy = f"; {refusal['remedy']}" if refusal["remedy"] else ""
        yield f"not split: {refusal['variable']}: {refusal['reason']}{remedy}"
