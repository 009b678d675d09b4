"""Every plan of a space without copies, with bytes counted element by element, and arenas by lowering."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from tofu.dataflow.graph import Role
from tofu.partitioner import Layout, peak_bytes
from tofu.partitioner.layouts.step_split import prime_factors

from .elements import moved_bytes, operator_choices, tensor_choices


class EveryPlan:
    """The plans of a graph in a space; `like` is one of them."""

    def __init__(self, graph, workers, like):
        self.graph, self.like = graph, like
        self.factors = prime_factors(workers)
        self.of_operation, groups = tied_operations(graph)
        self.of_tensor, classes = tied_tensors(graph, groups)
        self.operators = [
            sequences(lambda s, b=members[0].bound: operator_choices(b, s, self.factors), self.factors)
            for members in groups
        ]
        self.tensors = [
            sequences(
                lambda s, shape=graph.tensors[number].shape: tensor_choices(
                    shape, s, self.factors, like.space.replicate
                ),
                self.factors,
            )
            if like.space.feed == "anywhere" or graph.tensors[number].role is not Role.DATA
            else [like.layouts[graph.tensors[number].name].form]
            for number in classes
        ]
        self.shape = [len(each) for each in (*self.operators, *self.tensors)]

    @property
    def count(self):
        return int(np.prod([float(n) for n in self.shape]))

    def costs(self):
        """Return the bytes of every plan."""
        total = np.zeros(self.shape, np.int64)
        count = len(self.operators)
        for op in self.graph.operations:
            mine = self.of_operation[op.index]
            for tensor in dict.fromkeys((*op.inputs, *op.outputs)):
                theirs = self.of_tensor[tensor]
                table = [
                    [self.moved(op, s, tensor, layout) for layout in self.tensors[theirs]]
                    for s in self.operators[mine]
                ]
                axes = [1] * len(self.shape)
                axes[mine], axes[count + theirs] = self.shape[mine], self.shape[count + theirs]
                total += np.array(table).reshape(axes)
        return total

    def moved(self, op, strategies, tensor, layout):
        others = {t: (None,) * len(self.factors) for t in (*op.inputs, *op.outputs)}
        return moved_bytes(self.graph, op, strategies, {**others, tensor: layout}, self.factors)[tensor]

    def plan(self, numbers):
        """Return the plan with these choices."""
        graph = self.graph
        choices = [each[n] for each, n in zip((*self.operators, *self.tensors), numbers, strict=True)]
        tensors = choices[len(self.operators) :]
        return replace(
            self.like,
            strategies={op.name: choices[self.of_operation[op.index]] for op in graph.operations},
            layouts={
                t.name: Layout(t.shape, tensors[self.of_tensor[t.index]], self.factors) for t in graph.tensors
            },
        )

    def plans(self):
        """Yield every plan."""
        return map(self.plan, np.ndindex(*self.shape))

    def cheapest(self, limit):
        """Return the least bytes of plans that fit, or None; and the least arena of those lowered."""
        costs = self.costs()
        least = None
        for place in np.argsort(costs, axis=None, kind="stable").tolist():
            numbers = np.unravel_index(place, costs.shape)
            arena = peak_bytes(self.graph, self.plan(numbers))
            least = arena if least is None else min(arena, least)
            if arena <= limit:
                return int(costs[numbers]), least
        return None, least


def tied_operations(graph):
    groups = {}
    for op in graph.operations:
        groups.setdefault((op.tie, op.bound) if op.tie else op.index, []).append(op)
    return {op.index: n for n, members in enumerate(groups.values()) for op in members}, list(groups.values())


def tied_tensors(graph, groups):
    root = {t.index: t.index for t in graph.tensors}

    def join(a, b):
        old, new = root[a], root[b]
        root.update({t: new for t, r in root.items() if r == old})

    for tensor in graph.tensors:
        if tensor.alias is not None:
            join(tensor.index, tensor.alias)
    for first, *others in groups:
        for op in others:
            for mine, its in zip(op.outputs, first.outputs, strict=True):
                join(mine, its)
    classes = sorted(set(root.values()))
    return {t: classes.index(r) for t, r in root.items()}, classes


def sequences(choices, factors):
    found = [()]
    for _ in factors:
        found = list(itertools.chain.from_iterable(map(choices, found)))
    return found
