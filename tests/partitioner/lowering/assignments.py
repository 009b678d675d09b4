"""Random plans: each operation and each tensor has a form of its own, and operations a random order.

Forms are on any workers, several parts on one worker, or none. Some tensors have copies. Some sums are not
reduced at home: operations that are linear in them read their terms, others read reduced copies.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import tofu
from tofu.partitioner.layouts.copies import Copy
from tofu.partitioner.layouts.forms import Cut, Form, Label, Partial, Parts, Spread, expand
from tofu.partitioner.layouts.step_split import reducer_of, split_operation
from tofu.partitioner.plans.plan import Plan
from tofu.tdl.ast import Reducer

MODELS: dict[str, dict[str, Any]] = {
    "mlp": {"batch": 8},
    "lenet": {"batch": 4},
    "lstm": {"batch": 4, "steps": 2, "hidden": 8},
    "gru": {"batch": 4, "steps": 2, "hidden": 8},
    "gpt-1-16": {"batch": 2, "steps": 4, "vocabulary": 11, "heads": 2, "dropout": 0.0},
    "wresnet-10-1": {"batch": 2, "image": (3, 16, 16)},
}


@cache
def network(name: str) -> Any:
    return tofu.models.get(name, **MODELS[name]).training_graph()


def random_form(draw: random.Random, extents: dict[Label, int], workers: int) -> Form:
    """A form that cuts up to two of these labels, or repeats."""
    labels = [label for label, extent in extents.items() if extent > 1]
    if not labels or draw.random() < 0.2:
        count = draw.randint(1, workers)
        return Spread(((None, count),), tuple(draw.sample(range(workers), count)))
    label = draw.choice(labels)
    parts = min(extents[label], draw.randint(1, workers + 1))
    if draw.random() < 0.4:
        bounds = tuple(sorted(draw.sample(range(1, extents[label]), parts - 1)))
        return Cut(label, bounds, tuple(draw.randrange(workers) for _ in range(parts)))
    degrees: tuple[tuple[Label | None, int], ...] = ((label, parts),)
    other = draw.choice(labels)
    if other != label and draw.random() < 0.4:
        degrees = (*degrees, (other, 2))
        parts *= 2
    return Spread(degrees, tuple(draw.randrange(workers) for _ in range(parts)))


def listed(form: Form, labels: Sequence[Label], extents: dict[Label, int], count: int) -> Parts:
    """The same form, part by part."""
    whole = np.array([(0, extents[label]) for label in labels], np.int64).reshape(-1, 2)
    parts = expand(form, whole, labels.index, (count,))
    regions = [tuple((a, b) for a, b in box.tolist()) for box in parts.boxes]
    return Parts(tuple(zip(parts.workers.tolist(), regions, strict=True)))


def random_order(graph: Any, draw: random.Random) -> tuple[str, ...]:
    """Any order in which inputs are made first, and read before they are overwritten."""
    maker = {tensor: o.index for o in graph.operations for tensor in o.outputs}
    before: dict[int, set[int]] = {
        o.index: {maker[t] for t in o.inputs if t in maker} for o in graph.operations
    }
    for operation in graph.operations:
        for tensor in operation.outputs:
            old = graph.tensors[tensor].alias
            if old is not None:
                readers = {o.index for o in graph.operations if old in o.inputs}
                before[operation.index] |= readers - {operation.index}
    found: list[str] = []
    while before:
        ready = sorted(index for index, needed in before.items() if not needed & before.keys())
        chosen = draw.choice(ready)
        del before[chosen]
        found.append(graph.operations[chosen].name)
    return tuple(found)


def random_copies(
    graph: Any, tensor: Any, order: tuple[str, ...] | None, workers: int, draw: random.Random
) -> tuple[Copy, ...]:
    """Up to two copies, each read by some of the operations that read the tensor."""
    place = {name: number for number, name in enumerate(order or [o.name for o in graph.operations])}
    readers = [
        o.name for o in graph.operations if tensor.index in [o.inputs[at] for at, _ in o.bound.read_places]
    ]
    draw.shuffle(readers)
    half = draw.randint(1, len(readers)) if readers else 0
    shares = [share for share in (readers[:half], readers[half:]) if share]
    shares.sort(key=lambda share: min(place[name] for name in share))
    return tuple(
        Copy(random_form(draw, dict(enumerate(tensor.shape)), workers), tuple(share), draw.randint(0, number))
        for number, share in enumerate(shares[: draw.randint(0, 2)])
    )


def leave_partial(
    graph: Any,
    factors: tuple[int, ...],
    strategies: dict[str, Form],
    layouts: dict[str, Any],
    copies: dict[str, tuple[Copy, ...]],
    draw: random.Random,
) -> None:
    """Do not reduce some sums at home: linear operations read their terms, others reduced copies."""
    workers = int(np.prod(factors))
    overwritten = {t.alias for t in graph.tensors} | {t.index for t in graph.tensors if t.alias is not None}
    homes: dict[int, int] = {}
    other: set[int] = set()
    """Tensors whose terms are not summed, but combined by another reducer."""
    readers: dict[int, list[str]] = {}
    for operation in graph.operations:
        reads = {name: operation.inputs[place] for place, name in operation.bound.read_places}
        counts = [homes[tensor] for tensor in reads.values() if tensor in homes and tensor not in other]
        terms = draw.choice(counts) if counts and draw.random() < 0.8 else 1
        names = [n for n, tensor in reads.items() if homes.get(tensor) == terms > 1 and tensor not in other]
        if terms > 1 and operation.bound.linear_in(names):
            cut = {v: e for v, e in operation.bound.extents.items() if operation.bound.kind(v) == "concat"}
            strategies[operation.name] = in_terms(draw, cut, terms, workers)
        else:
            names = []
        for tensor in {reads[name] for name in reads.keys() - set(names)} & homes.keys():
            readers.setdefault(tensor, []).append(operation.name)
        tasks = split_operation(operation.bound, strategies[operation.name], factors)
        made = tasks.terms
        if reducer_of(operation.bound, tasks) is not Reducer.SUM:
            other.update(operation.outputs)
        for tensor in operation.outputs:
            lasts = graph.tensors[tensor].role.persistent or tensor in (*graph.outputs, *overwritten)
            if not lasts and made > 1 and draw.random() < 0.8:
                homes[tensor] = draw.choice([n for n in range(2, made + 1) if made % n == 0])
                extents: dict[Label, int] = dict(enumerate(graph.tensors[tensor].shape))
                layout = layouts[graph.tensors[tensor].name]
                kept = in_terms(draw, extents, homes[tensor], workers)
                layouts[graph.tensors[tensor].name] = replace(layout, form=kept, via=None)
                copies.pop(graph.tensors[tensor].name, None)
    for tensor, names in readers.items():
        extents = dict(enumerate(graph.tensors[tensor].shape))
        reduced = tuple(dict.fromkeys(names))
        copies[graph.tensors[tensor].name] = (Copy(random_form(draw, extents, workers), reduced),)


def in_terms(draw: random.Random, extents: dict[Label, int], terms: int, workers: int) -> Form:
    """A form in terms that also cuts a label, or repeats."""
    labels = [label for label, extent in extents.items() if extent > 1]
    inner: tuple[Label | None, int] = (
        (draw.choice(labels), 2) if labels and draw.random() < 0.6 else (None, 1)
    )
    count = terms * inner[1]
    return Spread(((Partial(), terms), inner), tuple(draw.randrange(workers) for _ in range(count)))


searched = cache(tofu.partition)
"""The plan that a random plan of the same workers is made from, once for each graph."""


def random_plan(graph: Any, workers: int, seed: int) -> Plan:
    draw = random.Random(seed)
    plan = searched(graph, workers)

    def form(extents: dict[Label, int], splittable: Callable[[Any], bool]) -> Form:
        usable = {label: extent for label, extent in extents.items() if splittable(label)}
        found = random_form(draw, usable, workers)
        return listed(found, list(extents), extents, workers) if draw.random() < 0.2 else found

    strategies: dict[str, Form] = {
        o.name: form(dict(o.bound.extents), lambda variable, o=o: o.bound.kind(variable) is not None)
        for o in graph.operations
    }
    layouts: dict[str, Any] = {}
    for tensor in graph.tensors:
        if tensor.alias is not None:
            layouts[tensor.name] = layouts[graph.tensors[tensor.alias].name]
        else:
            axes: dict[Label, int] = dict(enumerate(tensor.shape))
            via = form(axes, lambda axis: True) if draw.random() < 0.3 else None
            own = form(axes, lambda axis: True)
            layouts[tensor.name] = replace(plan.layouts[tensor.name], form=own, via=via)
    order = random_order(graph, draw) if draw.random() < 0.8 else None
    copies = {
        tensor.name: found
        for tensor in graph.tensors
        if draw.random() < 0.3 and (found := random_copies(graph, tensor, order, workers, draw))
    }
    if draw.random() < 0.7:
        leave_partial(graph, plan.factors, strategies, layouts, copies, draw)
    plan = replace(plan, layouts=layouts, strategies=strategies, written_order=order, copies=copies)
    total = sum(entry.bytes for entry in plan.contributions(graph))
    return replace(
        plan,
        cost_bytes=total,
        step_cost_bytes=(total,),
        lower_bound_bytes=0,
        unproven=(),
    )
