"""From a graph and a strategy to a plan: AutoDist's kernels (section 2.3) as layouts.

    base            operations run along their samples on all workers; what has none is repeated
    all-reduce      the part, its states and its gradient are on every worker, which all update it: partial
                    results are reduced in two hops
    server          they are on one worker, which alone updates the part; readers fetch it
    proxy           a copy on every worker, which the operations of both passes read
    parts           a variable has the parts of its synchronisers; operations that read it are not split

No operator is known by its name: samples follow from `find_soap`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np

from ....analyzer.indices.region import Boxes, to_region
from ....dataflow.graph import Graph, Operation, Role
from ....dataflow.validate import validate
from ....errors import PlanError
from ....support.wording import alternatives
from ...layouts.copies import Copy
from ...layouts.forms import Cut, Form, Label, Partial, Parts, Spread, Steps
from ...layouts.step_split import prime_factors
from ...plans.compose import compose
from ...plans.plan import Plan, require_graph, require_workers
from ...problem.sequences import by_batch
from ..flexflow.soap import Soap, find_soap
from ..meshes.indexing import indexing
from .strategy import AllReduce, Server, Synchronisation, SyncStrategy
from .uneven import with_shares
from .variables import TrainedVariable, find_variables

METHOD = "sync"

PARTS_LIMIT = 1024
"""The most parts of a variable. AutoDist cuts a prime number of rows into single rows."""


def compile_strategy(graph: Graph, workers: int, strategy: SyncStrategy) -> Plan:
    """Return the plan of a strategy on top of data parallelism.

    Raises PlanError naming the variable that has no synchronisation or one that does not fit, and for a batch
    with fewer samples than there are workers.
    """
    require_graph(graph)
    require_workers(workers)
    validate(graph)
    variables = {each.tensor.name: each for each in find_variables(graph)}
    _check(variables, workers, strategy)
    soap = find_soap(graph, workers)
    terms = frozenset[int]().union(*(decision.terms for decision in soap.decisions))
    operations: dict[str, Form] = {each.name: _base(soap, each, terms) for each in graph.operations}
    tensors = _base_tensors(soap, terms)
    copies: dict[str, list[Copy]] = {}
    for name, variable in variables.items():
        how = strategy.variables[name]
        for update in variable.updates:
            operations[update.name] = _updating(variable, update, how, workers)
        whole = _whole(variable.tensor.shape)
        axis = 0 if how.partition is None else how.partition.axis
        held = _placed(how, whole, axis, axis, workers)
        tensors.update(dict.fromkeys(variable.together, held))
        if variable.readers and any(isinstance(part, Server) and part.proxy for part in how.parts):
            copies[name] = [Copy(_everywhere(workers), variable.readers)]
    plan = compose(graph, workers, operations, tensors, copies=copies)
    order = _updates_last(graph, variables.values()) if strategy.updates_last else None
    if strategy.shares is not None:
        plan = with_shares(graph, plan, _reduced(graph, variables.values(), strategy), strategy.shares)
    return replace(plan, method=METHOD, written_order=order)


def _reduced(graph: Graph, variables: Iterable[TrainedVariable], strategy: SyncStrategy) -> list[str]:
    """Return the gradients of all variables that are reduced as a whole."""
    gradients = {tensor.name for tensor in graph.tensors if tensor.role is Role.GRADIENT}
    return [
        name
        for each in variables
        if all(isinstance(part, AllReduce) for part in strategy.variables[each.tensor.name].parts)
        for name in each.together
        if name in gradients
    ]


def _updates_last(graph: Graph, variables: Iterable[TrainedVariable]) -> tuple[str, ...]:
    """Return all operations in the order of the graph, those that update variables at the end."""
    updates = {update.index for each in variables for update in each.updates}
    return tuple(each.name for each in sorted(graph.operations, key=lambda each: each.index in updates))


def _base(soap: Soap, operation: Operation, terms: frozenset[int]) -> Steps:
    """Return data parallelism's form of an operation."""
    if not terms.isdisjoint(operation.inputs):
        return (Partial(),) * len(prime_factors(soap.workers))
    samples = soap.batch.get(operation.index)
    if samples is None:
        return _everywhere(soap.workers)
    extent = operation.bound.extents[samples]
    if extent < soap.workers:
        raise PlanError(
            f"the samples of operation {operation.name!r} are split over {soap.workers} workers, but it has "
            f"{extent}; choose a larger batch or fewer workers"
        )
    return (samples,) * len(prime_factors(soap.workers))


def _base_tensors(soap: Soap, terms: frozenset[int]) -> dict[str, Form]:
    """Return the forms of tensors that are fed, that last, or that are reduced over samples.

    All others are held where they are made.
    """
    factors = prime_factors(soap.workers)
    made = {tensor: each for each in soap.graph.operations for tensor in each.outputs}
    found: dict[str, Form] = {}
    for tensor in soap.graph.tensors:
        if tensor.alias is not None:
            continue
        maker = made.get(tensor.index)
        if tensor.role is Role.DATA:
            found[tensor.name] = by_batch(tensor.shape, factors)
        elif maker is None or (tensor.index not in terms and _sums_samples(soap, maker, terms)):
            found[tensor.name] = _everywhere(soap.workers)
    return found


def _sums_samples(soap: Soap, operation: Operation, terms: frozenset[int]) -> bool:
    samples = soap.batch.get(operation.index)
    reduces = samples is not None and operation.bound.kind(samples) == "reduce"
    return reduces or not terms.isdisjoint(operation.inputs)


def _updating(variable: TrainedVariable, update: Operation, how: Synchronisation, workers: int) -> Form:
    """Return the form in which an operation updates a variable: each part on its holders."""
    bound = update.bound
    if how.partition is None:
        return _placed(how, bound.full_box, 0, 0, workers)
    found = indexing(bound)
    labels = [
        label
        for label in bound.splits
        if bound.kind(label) == "concat" and found.dimensions(label, 0) == {how.partition.axis}
    ]
    if len(labels) != 1:
        raise PlanError(
            f"variable {variable.tensor.name!r} cannot be cut along dimension {how.partition.axis}: "
            f"operation {update.name!r}, which updates it, cannot be split so; leave out its cut"
        )
    return _placed(how, bound.full_box, bound.variables.index(labels[0]), labels[0], workers)


def _placed(how: Synchronisation, whole: Boxes, axis: int, label: Label, workers: int) -> Form:
    """Return the form of something that has the parts of a variable along an axis."""
    servers = tuple(part.worker for part in how.parts if isinstance(part, Server))
    if not servers:
        return _everywhere(workers)
    if how.partition is None:
        return Spread((), servers)
    bounds = how.partition.bounds
    if len(servers) == len(how.parts):
        return Cut(label, bounds, servers)
    parts = []
    edges = (int(whole[axis, 0]), *bounds, int(whole[axis, 1]))
    for part, (lower, upper) in zip(how.parts, pairwise(edges), strict=True):
        box = whole.copy()
        box[axis] = lower, upper
        holders = range(workers) if isinstance(part, AllReduce) else (part.worker,)
        parts += [(worker, to_region(box)) for worker in holders]
    return Parts(tuple(parts))


def _everywhere(workers: int) -> Steps:
    return (None,) * len(prime_factors(workers))


def _whole(shape: tuple[int, ...]) -> Boxes:
    return np.array([(0, extent) for extent in shape], np.int64).reshape(len(shape), 2)


def _check(variables: Mapping[str, TrainedVariable], workers: int, strategy: SyncStrategy) -> None:
    """Raise PlanError unless the strategy has each variable, in parts that it and the workers have."""
    if not isinstance(strategy, SyncStrategy):
        raise PlanError(
            f"compile takes a tofu.sync.Strategy, not a {type(strategy).__name__}; build one first"
        )
    shares = strategy.shares
    if shares is not None and not (len(shares) == workers and min(shares) >= 0 and 0 < sum(shares) < inf):
        raise PlanError(
            f"there are {len(shares)} shares for {workers} workers, from {min(shares, default=0)} on; give "
            "one for each worker, none of them negative, and one above 0"
        )
    unknown = [name for name in strategy.variables if name not in variables]
    if unknown:
        raise PlanError(
            f"the graph updates no variable {unknown[0]!r}{alternatives(unknown[0], list(variables))}"
        )
    for name, variable in variables.items():
        if name not in strategy.variables:
            raise PlanError(f"variable {name!r} has no synchronisation; give it one")
        check_fits(variable, workers, strategy.variables[name])


def check_fits(variable: TrainedVariable, workers: int, how: Synchronisation) -> None:
    """Raise PlanError naming a variable whose synchronisation does not fit it or the workers."""
    name, shape = variable.tensor.name, variable.tensor.shape
    if len(how.parts) > PARTS_LIMIT:
        raise PlanError(
            f"variable {name!r} has {len(how.parts):,} parts, but at most {PARTS_LIMIT:,} are planned; give "
            "it fewer, or choose another builder"
        )
    bounds: tuple[int, ...] = ()
    if how.partition is not None:
        axis, bounds = how.partition.axis, how.partition.bounds
        if not 0 <= axis < len(shape):
            raise PlanError(f"variable {name!r} has no dimension {axis}; it has {len(shape)}, from 0 on")
        edges = (0, *bounds, shape[axis])
        if any(lower >= upper for lower, upper in pairwise(edges)):
            raise PlanError(
                f"variable {name!r}: the bounds {list(bounds)} do not cut dimension {axis} of {shape[axis]}; "
                "they must rise, and lie inside"
            )
    if len(how.parts) != len(bounds) + 1:
        raise PlanError(
            f"variable {name!r} has {len(bounds) + 1} parts, but {len(how.parts)} synchronisers; give "
            "one for each part"
        )
    servers = [part for part in how.parts if isinstance(part, Server)]
    for server in servers:
        if not 0 <= server.worker < workers:
            raise PlanError(
                f"variable {name!r} is on worker {server.worker}; workers are numbered 0 to {workers - 1}"
            )
    if len({server.proxy for server in servers}) > 1:
        raise PlanError(
            f"variable {name!r} keeps the parts of some servers and not of others; give all the same proxy"
        )
