"""The best plan of the whole space, by enumeration, with bytes counted element by element.

A choice of an operation has a variable per step, None if it can split nothing, or `"terms"`. A choice of a
tensor has a dimension, None or `"terms"`. A tensor that lasts may have a copy if three classes of operations
read it that do not overwrite it. Given the operations, tensors are independent of each other.
"""

from __future__ import annotations

import itertools
from math import prod

import numpy as np

from tofu.partitioner.layouts.step_split import prime_factors
from tofu.partitioner.problem.sums import summed_inputs, visits_once

from .elements import element_set, operator_choices, split, tensor_choices

TERMS = "terms"
NEVER = 10**9


def cheapest(graph, workers, activations=False):
    """Return the least bytes that any plan moves, with the price of what it computes more than once.

    With `activations`, tensors that do not last may have copies as well.
    """
    factors = prime_factors(workers)
    groups = {}
    for op in graph.operations:
        groups.setdefault((op.tie, op.bound) if op.tie else op.index, []).append(op)
    number = {op.index: n for n, members in enumerate(groups.values()) for op in members}
    choices = [operator_sequences(members[0].bound, factors) for members in groups.values()]
    total = np.zeros([len(c) for c in choices])
    for n, (members, sequences) in enumerate(zip(groups.values(), choices, strict=True)):
        price = [len(members) * repeated(members[0].bound, s, factors) for s in sequences]
        total += np.array(price).reshape([-1 if n == k else 1 for k in range(len(choices))])
    made = {t for op in graph.operations for t in op.outputs}
    read = {t for op in graph.operations for t in op.inputs}
    overwritten = {t.alias for t in graph.tensors}
    for tensor in graph.tensors:
        if tensor.alias is not None:
            continue
        members = [t for t in graph.tensors if tensor.index in (t.index, t.alias)]
        terms = tensor.index in made & read and tensor.index not in overwritten
        layouts = tensor_sequences(tensor.shape, factors, terms)
        touching = [op for op in graph.operations if {t.index for t in members} & {*op.inputs, *op.outputs}]
        makers = [op for op in touching if {t.index for t in members} & set(op.outputs)]
        hops = (False, True) if len({number[op.index] for op in makers}) == 1 else (False,)
        read_by = {number[op.index] for op in touching} - {number[op.index] for op in makers}
        copies = [None]
        if (activations or tensor.role.persistent) and len(read_by) >= 3:
            copies += tensor_sequences(tensor.shape, factors, terms=False)
        costs = []
        for layout, copy, stops in itertools.product(layouts, copies, hops):
            if copy is not None and TERMS in layout:
                continue
            cost = np.full(total.shape, copied(tensor, layout, copy, factors))
            for op in touching:
                mine = number[op.index]
                moved = [
                    moved_bytes(graph, op, s, members, layout, factors, stops, copy) for s in choices[mine]
                ]
                cost += np.array(moved).reshape([-1 if n == mine else 1 for n in range(len(choices))])
            costs.append(cost)
        total += np.min(costs, axis=0)
    return int(total.min())


def operator_sequences(bound, factors):
    """All sequences of variables, None and terms."""
    summed = summed_inputs(bound) if visits_once(bound) else ()

    def further(earlier):
        found = operator_choices(bound, without(earlier), factors)
        return list(dict.fromkeys([*found, (*without(earlier), None)]))

    return all_sequences(further, factors, bool(summed))


def repeated(bound, strategies, factors):
    """The price of what workers compute more than once, in bytes."""
    axes = [bound.variables.index(v) if v in bound.variables else None for v in strategies]
    whole = [(0, extent) for extent in bound.extents.values()]
    boxes = split(whole, axes, factors)
    computed = sum(prod(upper - lower for lower, upper in box) for box in boxes)
    reads = prod(f for entry, f in zip(strategies, factors, strict=True) if entry == TERMS)
    points = prod(bound.extents.values())
    read = bound.input_regions(np.array([whole], np.int64).reshape(1, -1, 2))
    touched = sum(len(element_set(read[n][0].tolist())) for n in bound.reads) + sum(
        map(prod, bound.output_shapes)
    )
    return int((computed // reads - points) * (1 / 512 + 4 * touched / points / 64))


def tensor_sequences(shape, factors, terms):
    return all_sequences(
        lambda earlier: tensor_choices(shape, without(earlier), factors, True), factors, terms
    )


def all_sequences(choices, factors, terms):
    found = [()]
    for _ in factors:
        found = [
            (*earlier, label)
            for earlier in found
            for label in [*(choice[-1] for choice in choices(earlier)), *([TERMS] if terms else [])]
        ]
    return found


def without(sequence):
    return tuple(None if entry == TERMS else entry for entry in sequence)


def digits_at(sequence, factors, holds):
    """Each worker's digits at the steps where something holds."""
    digits = itertools.product(*map(range, factors))
    return [tuple(d for d, entry in zip(ds, sequence, strict=True) if holds(entry)) for ds in digits]


def numbers(parts):
    """Number the digits of workers in ascending order."""
    order = sorted(set(parts))
    return [order.index(part) for part in parts], len(order)


def copied(tensor, layout, copy, factors):
    """Bytes that move to make a copy."""
    if copy is None:
        return 0
    whole = [(0, n) for n in tensor.shape]
    parts = zip(split(whole, without(copy), factors), split(whole, without(layout), factors), strict=True)
    return sum(len(element_set(c) - element_set(own)) for c, own in parts) * tensor_itemsize(tensor)


def moved_bytes(graph, op, strategies, tensors, layout, factors, stops, copy=None):
    """Bytes that an operation moves for the members of a class of tensors; `NEVER` if that cannot be."""
    bound = op.bound
    axes = [bound.variables.index(v) if v in bound.variables else None for v in strategies]
    boxes = split([(0, extent) for extent in bound.extents.values()], axes, factors)
    read, reads = numbers(digits_at(strategies, factors, lambda entry: entry == TERMS))
    within, parts = numbers(
        digits_at(strategies, factors, lambda v: v in bound.variables and bound.kind(v) == "reduce")
    )
    held, terms = numbers(digits_at(layout, factors, lambda entry: entry == TERMS))
    partial = [entry == TERMS for entry in layout]
    making = [s == TERMS or (s in bound.variables and bound.kind(s) == "reduce") for s in strategies]
    reading = [s == TERMS for s in strategies]
    summed = summed_inputs(bound) if visits_once(bound) else frozenset()
    moved = 0
    for tensor in tensors:
        owned = split([(0, n) for n in tensor.shape], without(layout), factors)
        names = {
            name
            for name, t in zip(bound.description.tensor_names, op.inputs, strict=True)
            if t == tensor.index and name in bound.reads
        }
        if names:
            wanted = reading if names & summed else [False] * len(factors)
            if partial != wanted or (any(partial) and names - summed):
                return NEVER
            elements = fetched(bound, names, boxes, owned)
            if copy is not None:
                held_there = split([(0, n) for n in tensor.shape], without(copy), factors)
                elements = min(elements, fetched(bound, names, boxes, held_there))
            moved += elements * tensor_itemsize(tensor)
        for k, output in enumerate(op.outputs):
            if output != tensor.index:
                continue
            if any(p and not m for p, m in zip(partial, making, strict=True)):
                return NEVER
            regions = output_regions(bound, boxes, k)
            term = [r * parts + w for r, w in zip(read, within, strict=True)]
            made = [(reads * parts), term, regions]
            if stops and terms == 1:
                cut = shared(owned)
                moved += collected(*made, [0] * len(cut), 1, cut) * tensor_itemsize(tensor)
                moved += sum(
                    len(element_set(o) - element_set(c)) for o, c in zip(owned, cut, strict=True)
                ) * tensor_itemsize(tensor)
            else:
                moved += collected(*made, held, terms, owned) * tensor_itemsize(tensor)
    return moved


def tensor_itemsize(tensor):
    return np.dtype(tensor.dtype).itemsize


def fetched(bound, names, boxes, owned):
    count = 0
    for worker, box in enumerate(boxes):
        regions = bound.input_regions(np.array([box], np.int64).reshape(1, -1, 2))
        needed = {tuple(map(tuple, regions[name][0].tolist())) for name in names}
        count += sum(len(element_set(region) - element_set(owned[worker])) for region in needed)
    return count


def output_regions(bound, boxes, k):
    return [
        tuple(map(tuple, bound.output_regions(np.array([box], np.int64).reshape(1, -1, 2))[k][0].tolist()))
        for box in boxes
    ]


def collected(made, term, regions, held, terms, owned):
    """Elements that move if every held term is the sum of equally many terms that follow each other."""
    each, count = made // terms, 0
    for worker, mine in enumerate(owned):
        for wanted in range(held[worker] * each, (held[worker] + 1) * each):
            own = element_set(regions[worker]) if term[worker] == wanted else set()
            count += len(element_set(mine) - own)
    return count


def shared(owned):
    """Cut every region along its longest dimension among the workers that hold it."""
    parts = []
    for worker, region in enumerate(owned):
        holders = [other for other, theirs in enumerate(owned) if theirs == region]
        lengths = [upper - lower for lower, upper in region]
        axis = lengths.index(max(lengths))
        if lengths[axis] < len(holders):
            parts.append(region)
            continue
        place, (lower, upper) = holders.index(worker), region[axis]
        cut = (
            lower + place * (upper - lower) // len(holders),
            lower + (place + 1) * (upper - lower) // len(holders),
        )
        parts.append((*region[:axis], cut, *region[axis + 1 :]))
    return parts
