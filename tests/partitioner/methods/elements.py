"""Bytes counted element by element, apart from the project: boxes are split with Python integers, and sets of
elements are intersected."""

from __future__ import annotations

import itertools

import numpy as np


def split(intervals, choices, factors):
    """Nested halving (or thirding, ...) of one box, in plain integers: one box per worker."""
    boxes = [tuple(intervals)]
    for choice, factor in zip(choices, factors, strict=True):
        parts = []
        for box in boxes:
            for part in range(factor):
                new = list(box)
                if choice is not None:
                    lower, upper = box[choice]
                    length = upper - lower
                    new[choice] = (lower + part * length // factor, lower + (part + 1) * length // factor)
                parts.append(tuple(new))
        boxes = parts
    return boxes


def element_set(region):
    return set(itertools.product(*(range(lower, upper) for lower, upper in region)))


def terms_of_workers(bound, strategies, factors):
    """Which partial result each worker holds: its digits at the steps that reduce."""
    digits = itertools.product(*map(range, factors))
    kinds = [None if v is None else bound.kind(v) for v in strategies]
    return [tuple(d for d, kind in zip(ds, kinds, strict=True) if kind == "reduce") for ds in digits]


def moved_bytes(graph, operation, strategies, layouts, factors):
    """Bytes that one operation moves, tensor by tensor: `{tensor: bytes}`."""
    bound = operation.bound
    axes = [None if v is None else bound.variables.index(v) for v in strategies]
    boxes = split([(0, extent) for extent in bound.extents.values()], axes, factors)
    owned = {
        t: [element_set(r) for r in split([(0, n) for n in graph.tensors[t].shape], layouts[t], factors)]
        for t in {*operation.inputs, *operation.outputs}
    }
    moved = dict.fromkeys(owned, 0)
    for worker, box in enumerate(boxes):
        regions = bound.input_regions(np.array([box], np.int64).reshape(1, -1, 2))
        needed = {}
        for name, tensor in zip(bound.description.tensor_names, operation.inputs, strict=True):
            if name in bound.reads:
                needed[tensor, tuple(map(tuple, regions[name][0].tolist()))] = tensor
        for (_, region), tensor in needed.items():
            moved[tensor] += len(element_set(region) - owned[tensor][worker])
    terms = terms_of_workers(bound, strategies, factors)
    for k, tensor in enumerate(operation.outputs):
        produced = [
            element_set(
                tuple(map(tuple, bound.output_regions(np.array([box], np.int64).reshape(1, -1, 2))[k][0]))
            )
            for box in boxes
        ]
        for worker, mine in enumerate(owned[tensor]):
            for term in set(terms):
                have = produced[worker] if terms[worker] == term else set()
                others = set().union(*(p for p, t in zip(produced, terms, strict=True) if t == term))
                assert mine <= others
                moved[tensor] += len(mine - have)
    return {t: count * np.dtype(graph.tensors[t].dtype).itemsize for t, count in moved.items()}


def plan_bytes(graph, plan, steps=None):
    factors = plan.factors[:steps]
    layouts = {t.index: plan.layouts[t.name].dimensions[:steps] for t in graph.tensors}
    return sum(
        sum(moved_bytes(graph, op, plan.strategies[op.name][:steps], layouts, factors).values())
        for op in graph.operations
    )


def tensor_choices(shape, earlier, factors, replicate):
    smallest = list(shape)
    for dimension, factor in zip(earlier, factors, strict=False):
        if dimension is not None:
            smallest[dimension] //= factor
    found = [(*earlier, d) for d, n in enumerate(smallest) if n >= factors[len(earlier)]]
    return found if found and not replicate else [*found, (*earlier, None)]


def operator_choices(bound, earlier, factors):
    smallest = dict(bound.extents)
    for variable, factor in zip(earlier, factors, strict=False):
        if variable is not None:
            smallest[variable] //= factor
    k = factors[len(earlier)]
    found = [(*earlier, v) for v, n in smallest.items() if n >= k and bound.kind(v) is not None]
    return found or [(*earlier, None)]


def best_next_step(graph, plan, step):
    """The least bytes that any choice of one step can move, the earlier steps being the plan's."""
    factors = plan.factors[: step + 1]
    layout_of = {}
    operator_of = {}
    for t in graph.tensors:
        layout_of[t.index] = t.index if t.alias is None else layout_of[t.alias]
    for op in graph.operations:
        key = (op.tie, op.bound)
        first = operator_of.setdefault(key, op) if op.tie else op
        if first is not op:
            for mine, its in zip(op.outputs, first.outputs, strict=True):
                layout_of = {t: layout_of[its] if c == layout_of[mine] else c for t, c in layout_of.items()}
    classes = sorted(set(layout_of.values()))
    tensors = [
        tensor_choices(
            graph.tensors[c].shape,
            plan.layouts[graph.tensors[c].name].dimensions[:step],
            factors,
            plan.space.replicate,
        )
        for c in classes
    ]
    groups = {}
    for op in graph.operations:
        groups.setdefault((op.tie, op.bound) if op.tie else op.index, []).append(op)
    best = None
    for choice in itertools.product(*tensors):
        chosen = dict(zip(classes, choice, strict=True))
        layouts = {t.index: chosen[layout_of[t.index]] for t in graph.tensors}
        total = 0
        for members in groups.values():
            bound = members[0].bound
            earlier = plan.strategies[members[0].name][:step]
            total += min(
                sum(sum(moved_bytes(graph, op, s, layouts, factors).values()) for op in members)
                for s in operator_choices(bound, earlier, factors)
            )
        best = total if best is None else min(best, total)
    return best
