"""A plan as a page of text: bytes per step, the largest contributors, memory per worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ..dataflow.graph import Graph
from ..partitioner import METHODS, Plan, contributors
from ..partitioner.explaining.copies import kept_copies
from ..partitioner.layouts.form_text import form_text
from ..partitioner.layouts.order import in_order
from ..partitioner.lowering.computed_load import UNEVEN, ComputedLoad
from ..partitioner.plans.plan_record import TransferSeconds
from ..programs.memory import MemoryFigures
from ..support import compiled
from ..support.wording import counted
from .console import wide_console
from .copies import copies_table
from .memory import page
from .tables import table
from .units import format_bytes, format_seconds

LARGEST = 10
LONG_SECONDS = 20.0
"""How long a search takes at least for which compiled loops are recommended."""

_MERGED = {
    True: "operations that do the same to several tensors are one",
    False: "operations are not merged: the plan of the merged graph costs more, or needs more memory",
}


def show(graph: Graph, plan: Plan, facts: dict[str, Any], memory: MemoryFigures) -> None:
    """Print the plan. `facts` are the figures that `tofu plan --json` prints."""
    console = wide_console()
    console.print(
        Text.assemble(
            (facts["model"], "bold"),
            f", {_fed(facts)}, over {counted(plan.workers, 'worker')}: "
            f"{facts['operators']:,} operators, {facts['tensors']:,} tensors, "
            f"weights and their state {format_bytes(facts['weight_state_bytes'])}",
        ),
        soft_wrap=True,
    )
    if facts["accumulate"] > 1 and not facts["unroll"]:
        console.print("bytes are those of the last micro-batch, which updates; the others move no more")
    if "merged" in facts:
        console.print(_MERGED[facts["merged"]])
    console.print(_steps(plan))
    if plan.cost_bytes:
        console.print(_contributors(graph, plan))
    order = [operation.name for operation in in_order(graph, plan.written_order)]
    if plan.copies:
        console.print(copies_table(kept_copies(plan, order)))
    if plan.written_order is not None:
        console.print(_order(graph, order), soft_wrap=True)
    if "levels" in facts:
        console.print(_levels(facts))
    if facts.get("step_seconds") is not None:
        taken = format_seconds(facts["step_seconds"])
        least = format_seconds(facts["step_bound_seconds"])
        console.print(
            f"a simulated iteration takes {taken}, and no order of the same tasks less than {least}; "
            "tofu simulate says what decides it",
            soft_wrap=True,
        )
    console.print(page(memory, facts["single_device_peak_bytes"]))
    load = ComputedLoad(tuple(facts["flops_per_worker"]))
    if load.ratio > UNEVEN:
        console.print(_uneven(load), soft_wrap=True)
    if facts.get("workspace_bytes_per_worker") is not None:
        taken = format_bytes(facts["workspace_bytes_per_worker"])
        console.print(f"the processor's kernels take {taken} more of the fullest worker")
    if "fits" in facts:
        console.print(_verdict(facts))
    elif facts.get("memory_limit_bytes") is not None:
        console.print(
            f"arenas are limited to {format_bytes(facts['memory_limit_bytes'])}, 15% more than plans need "
            "that replicate nothing; --memory sets another limit, or unlimited",
            soft_wrap=True,
        )
    if "more_memory" in facts:
        console.print(_gain(facts, facts["more_memory"]), soft_wrap=True)
    if "front" in facts:
        console.print(_front(facts["front"]))
    if plan.transfer_time is not None:
        console.print(_transfers(plan.transfer_time), soft_wrap=True)
    for line in _unproven(plan):
        console.print(line, soft_wrap=True)
    console.print(_proof(plan), soft_wrap=True)
    if not compiled.COMPILED and (plan.search_seconds or 0.0) >= LONG_SECONDS:
        console.print(
            f"compiled loops make long searches several times faster: {compiled.REMEDY}",
            soft_wrap=True,
        )


def _proof(plan: Plan) -> str:
    """Return what is proven about the plan's bytes, and how long the search took."""
    closing = _closing()
    open_gap = plan.lower_bound_bytes < plan.cost_bytes and plan.method not in closing
    closer = f", the method {closing[0]} proves more" if open_gap else ""
    if plan.in_steps or plan.lower_bound_bytes or not plan.cost_bytes:
        least = format_bytes(plan.lower_bound_bytes)
        or_more = ", or repeats more computation" if plan.space.keep else ""
        weak = (
            "; that is too little to judge this plan by"
            if plan.cost_bytes > 2 * plan.lower_bound_bytes
            else ""
        )
        proof = (
            f"every plan of these steps moves at least {least}{or_more} (proven{closer}), of plans that "
            f"{plan.space}{weak}"
        )
    else:
        proof = "nothing is proven of plans that are not in steps"
    return proof if plan.search_seconds is None else f"{proof}; searched in {plan.search_seconds:.2f} s"


def _uneven(load: ComputedLoad) -> str:
    """Return that a worker computes much more than the others."""
    return (
        f"worker {load.busiest} computes {load.ratio - 1:.0%} more than the mean of all workers: extents do "
        f"not split evenly over {len(load.flops)}; another number of workers may share the work better"
    )


def _order(graph: Graph, order: Sequence[str]) -> str:
    """Return where the order of a plan leaves that of the graph."""
    pairs = [(mine, other.name) for mine, other in zip(order, graph.operations, strict=True)]
    moved = [(place, mine, other) for place, (mine, other) in enumerate(pairs, 1) if mine != other]
    if not moved:
        return "operations run in the order of the graph"
    place, mine, other = moved[0]
    return (
        f"operations run in an order of the plan: {counted(len(moved), 'place')} differ from the graph's; "
        f"number {place} is {mine} instead of {other}"
    )


def _closing() -> list[str]:
    """Return the methods that raise the lower bound themselves."""
    return [name for name, method in METHODS.items() if method.closes_gap]


def _fed(facts: dict[str, Any]) -> str:
    """Such as `batch 64 in 4 micro-batches, bfloat16, activations computed again in 8 segments`."""
    unrolled = " of one iteration" if facts["unroll"] else ""
    parts = f" in {facts['accumulate']} micro-batches{unrolled}" if facts["accumulate"] > 1 else ""
    stored = f", {facts['dtype']}" if facts["dtype"] != "float32" else ""
    again = (
        f", activations computed again in up to {facts['recompute']} segments"
        if facts["recompute"] > 1
        else ""
    )
    return f"batch {facts['batch']}{parts}{stored}{again}"


def _transfers(time: TransferSeconds) -> str:
    """Return what was minimised in place of bytes, and what is proven of it."""
    taken = f"transfers, one after the other, take {format_seconds(time.seconds)}; "
    if time.lower_bound is None:
        return taken + f"no bound on that is proven, which only the method {_closing()[0]} does"
    return taken + f"those of every plan of these steps at least {format_seconds(time.lower_bound)} (proven)"


def _unproven(plan: Plan) -> Iterator[str]:
    """Yield a line per step whose choices are not proven to be the best."""
    for unproven in plan.unproven:
        step, bound = unproven.step, unproven.lower_bound_bytes
        what = "the search over all steps" if step is None else f"step {step + 1}"
        line = f"{what} is too wide to be solved exactly (table of {unproven.table_entries} entries): "
        if bound is not None:
            yield line + _nearness(plan.cost_bytes if step is None else plan.step_cost_bytes[step], bound)
        elif step is None:
            yield line + f"'{plan.method}' ended before all its moves were tried, cheaper plans may remain"
        else:
            yield line + "its choices are not proven to be the best"


def _nearness(moved: int, bound: int) -> str:
    """Return how far what a step moves is from what it must move."""
    if bound <= 0:
        return f"it moves {format_bytes(moved)}, and no bound above 0 is proven"
    return f"within {moved / bound - 1:.2%} of the bound of {format_bytes(bound)}"


def _levels(facts: dict[str, Any]) -> Table:
    """Return what crosses each level of a machine, and how long its busiest link takes."""
    taken = format_seconds(facts["transfer_seconds"])
    heads = ("level", "bytes that cross it", "busiest link, one way", "takes")
    levels = table(*heads, title=f"Traffic on {facts['machine']}: {taken} in one iteration")
    for entry in facts["levels"]:
        levels.add_row(
            entry["level"],
            format_bytes(entry["crossing_bytes"]),
            format_bytes(entry["busiest_link_bytes"]),
            format_seconds(entry["busiest_link_seconds"]),
        )
    return levels


def _peak(facts: Mapping[str, Any]) -> int:
    """Return the most that a worker holds, as far as it was counted."""
    return int(facts["peak_bytes_per_worker"] + (facts.get("workspace_bytes_per_worker") or 0))


def _gain(facts: Mapping[str, Any], larger: Mapping[str, Any]) -> str:
    """Return what more memory would buy."""
    cost, does, written = _minimised(larger)
    saved, more = facts[cost] - larger[cost], larger["peak_bytes_per_worker"] - _peak(facts)
    return (
        f"with {format_bytes(more)} more memory a worker, a plan {does} {written(saved)} less: "
        f"{written(_per_megabyte(saved, more))} for each further MB"
    )


def _minimised(point: Mapping[str, Any]) -> tuple[str, str, Callable[[float], str]]:
    """Return the name of what was minimised, what a plan does with it, and what writes it."""
    if "step_seconds" in point:
        return "step_seconds", "takes", format_seconds
    if "objective_seconds" in point:
        return "objective_seconds", "has transfers that take", format_seconds
    return "cost_bytes", "moves", format_bytes


def _per_megabyte(saved: float, more: int) -> float:
    return saved * 1_000_000 / max(more, 1)


def _front(points: Sequence[Mapping[str, Any]]) -> Table:
    """Return plans from the least memory to the most, and what the next further MB saves."""
    cost, _, written = _minimised(points[0])
    what, head = ("Bytes", "bytes moved") if cost == "cost_bytes" else ("Transfers", "transfers take")
    heads = ("peak of a worker", head, "saved by each further MB")
    front = table(*heads, title=f"{what} against memory, without kernel workspaces")
    for point, larger in zip(points, [*points[1:], None], strict=True):
        peak, saved = point["peak_bytes_per_worker"], "-"
        if larger is not None:
            more = larger["peak_bytes_per_worker"] - peak
            saved = written(_per_megabyte(point[cost] - larger[cost], more))
        front.add_row(format_bytes(peak), written(point[cost]), saved)
    return front


def _verdict(facts: dict[str, Any]) -> str:
    least = format_bytes(facts["device_memory_bytes"])
    if "memory_limit_bytes_per_worker" in facts:
        most = format_bytes(max(facts["memory_limit_bytes_per_worker"]))
        return f"the {least} to {most} of the devices are {'enough' if facts['fits'] else 'too little'}"
    short = _peak(facts) - facts["device_memory_bytes"]
    verdict = "enough" if facts["fits"] else f"too little: out of memory by {format_bytes(short)}"
    return f"a device's {least} are {verdict}"


def _steps(plan: Plan) -> Table:
    steps = table("step", "groups", "bytes moved in one iteration", title="Communication")
    costs = zip(plan.factors, plan.step_cost_bytes, strict=True) if plan.in_steps else ()
    for step, (factor, cost) in enumerate(costs, 1):
        steps.add_row(str(step), f"{factor}-way", format_bytes(cost))
    steps.add_row("all", str(plan.workers), format_bytes(plan.cost_bytes), style="bold")
    return steps


def _contributors(graph: Graph, plan: Plan) -> Table:
    largest = table("operation", "split along", "moves", "bytes", "share", title="Largest contributors")
    for entry in contributors(graph, plan)[:LARGEST]:
        split = form_text(plan.strategies[entry.operation], ", ")
        moves, share = f"{entry.kind} {entry.tensor}", f"{entry.bytes / plan.cost_bytes:.1%}"
        largest.add_row(entry.operation, split, moves, format_bytes(entry.bytes), share)
    return largest
