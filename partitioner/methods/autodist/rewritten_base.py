"""A base as a plan for the graph in which gradients are encoded, delayed or applied one by one.

An encoder takes one gradient from each worker, of an equal share of the samples. So it is for variables of
which the base has such gradients, whatever it does with other variables. Operations and tensors that a
rewrite adds have the forms of data parallelism, and all workers hold those without samples. All else stays as
the base has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....dataflow.graph import Graph, Operation
from ....dataflow.order import dependency_order
from ....dataflow.rewrites.encoders import Rewrite
from ....dataflow.rewrites.gradients import gradient_of, updating_gradients
from ....errors import PlanError
from ...costs.movement import Movements
from ...layouts.copies import Copy
from ...layouts.forms import Form
from ...layouts.step_split import Layout
from ...plans.plan import Plan
from ..flexflow.soap import Soap, find_soap
from .data_parallel import data_parallel


def check_base_rewrites(graph: Graph, base: Plan, rewrites: Mapping[str, Rewrite]) -> None:
    """Raise PlanError unless the base has one gradient of each worker where a rewrite takes them.

    It names the variable, the operation that makes its gradient, and what the base does instead.
    """
    names = [name for name, each in rewrites.items() if each.of_samples]
    if not names:
        return
    soap = find_soap(graph, base.workers)
    gradients = updating_gradients(graph)
    movements = Movements(base.workers, base.factors)
    for name in names:
        for maker in _makers(graph, soap, gradient_of(graph, gradients, name).tensor):
            why = _unlike(movements, base, soap, maker)
            if why is not None:
                raise PlanError(
                    f"variable {name!r} has an encoder, parts with their own rewrites, or gradients that are "
                    f"applied as they arrive. These take one gradient from each worker, of an equal share of "
                    f"the samples, but {why}; leave out the rewrite of this variable, or choose another base"
                )


def _makers(graph: Graph, soap: Soap, gradient: int) -> Iterator[Operation]:
    """Yield the operations that sum over samples what is added to a gradient."""
    made = {tensor: each for each in graph.operations for tensor in each.outputs}
    terms = frozenset[int]().union(*(decision.terms for decision in soap.decisions))
    waiting, seen = [gradient], {gradient}
    while waiting:
        maker = made[waiting.pop()]
        added = [each for each in dict.fromkeys(maker.inputs) if each in terms]
        if not added:
            yield maker
        waiting += [each for each in added if each not in seen]
        seen.update(added)


def _unlike(movements: Movements, base: Plan, soap: Soap, maker: Operation) -> str | None:
    """Return what a base does with an operation, other than giving each worker a block of samples."""
    found = movements.operator(maker.bound, base.strategies[maker.name])
    workers = sorted(set(found.workers))
    if len(workers) == 1 < base.workers:
        return f"the base runs {maker.name!r} on worker {workers[0]} alone, so no gradient is exchanged"
    variable = soap.batch.get(maker.index)
    if variable is None or maker.bound.kind(variable) != "reduce":
        return f"{maker.name!r} does not sum over samples"
    samples = maker.bound.variables.index(variable)
    extent = maker.bound.extents[variable]
    blocks = {box[samples] for box in found.boxes}
    for at, (other, whole) in enumerate(maker.bound.extents.items()):
        if at != samples and any(box[at] != (0, whole) for box in found.boxes):
            return (
                f"the base splits {maker.name!r} along {other!r} of {whole}, and its samples into "
                f"{len(blocks)} for {base.workers} workers"
            )
    even = [(w, (extent * w // base.workers, extent * (w + 1) // base.workers)) for w in range(base.workers)]
    if sorted((w, box[samples]) for w, box in zip(found.workers, found.boxes, strict=True)) != even:
        return (
            f"the base splits the samples of {maker.name!r} into {len(blocks)} for {base.workers} workers, "
            "or gives them to workers in another order"
        )
    return None


def rewritten_base(base: Plan, before: Graph, graph: Graph, rewrites: Mapping[str, Rewrite]) -> Plan:
    """Return a base for graph `before` as a plan for the graph in which gradients are rewritten."""
    everywhere = (None,) * len(base.factors)
    layouts = {t.name: Layout(t.shape, everywhere, base.factors) for t in graph.tensors}
    strategies: dict[str, Form] = {each.name: everywhere for each in graph.operations}
    if any(each.of_samples for each in rewrites.values()):
        parallel = data_parallel(graph, base.workers, tuple(range(base.workers)))
        layouts, strategies = {**layouts, **parallel.layouts}, dict(parallel.strategies)
    operations = {each.name for each in graph.operations}
    local = {
        each.name: f"local({before.tensors[each.outputs[0]].name})"
        for each in before.operations
        if each.name not in operations
    }
    return replace(
        base,
        fingerprint=graph.fingerprint,
        graph=graph,
        layouts={name: base.layouts.get(name, layout) for name, layout in layouts.items()},
        strategies={name: base.strategies.get(name, form) for name, form in strategies.items()},
        copies={
            name: tuple(
                Copy(copy.form, tuple(local.get(reader, reader) for reader in copy.readers), copy.source)
                for copy in copies
            )
            for name, copies in base.copies.items()
        },
        written_order=None if base.written_order is None else _order(base.written_order, graph, local),
    )


def _order(written: tuple[str, ...], graph: Graph, local: Mapping[str, str]) -> tuple[str, ...]:
    """Return the order of a base, with each operation that was added right after what it reads."""
    known = {local.get(name, name): place for place, name in enumerate(written)}
    made: dict[int, int] = {}
    places = []
    for operation in graph.operations:
        after = max((made.get(each, 0) for each in operation.inputs), default=0)
        places.append(known.get(operation.name, after))
        made.update(dict.fromkeys(operation.outputs, places[-1]))
    return tuple(each.name for each in dependency_order(graph.tensors, graph.operations, places))
