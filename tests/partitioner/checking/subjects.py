"""Plans to change: searched ones, random ones and placements, of small graphs and of models."""

from __future__ import annotations

from functools import cache

from tofu.dataflow.graph import Role
from tofu.partitioner import partition

from ..conftest import GRAPHS, MATMUL, TRANSPOSE, UPDATE, Toy
from ..lowering.assignments import network, random_plan
from ..methods.placement.nodes import random_placement
from .mutated import Subject

ROW_MAXIMA = "def row_maxima(a):\n    return lambda i, u=1: Max(lambda j: a[i, j])"


def momentum():
    """An updated tensor that another update reads, and greatest values that a linear operation reads."""
    toy = Toy()
    rate = toy.tensor(1, role=Role.SCALAR, name="rate")
    data = toy.tensor(6, 5, role=Role.DATA, name="data")
    weight, velocity = toy.tensor(5, 5, name="weight"), toy.tensor(5, 5, role=Role.STATE, name="velocity")
    product = toy.apply(MATMUL, data, weight)
    toy.apply(TRANSPOSE, toy.apply(ROW_MAXIMA, product))
    gradient = toy.apply(MATMUL, toy.apply(TRANSPOSE, data), product)
    faster = toy.apply(UPDATE, velocity, gradient, rate, aliases=(velocity,))
    toy.apply(UPDATE, weight, faster, rate, aliases=(weight,))
    return toy.graph()


SMALL = {**GRAPHS, "momentum": momentum}
MODELS = {"mlp model": 3, "lenet": 3, "lstm": 1}
"""The numbers of random plans of each."""

NAMES = (*SMALL, *MODELS)
WORKERS = (4, 6, 8)
SEEDS = 6


@cache
def graph_of(name):
    return SMALL[name]() if name in SMALL else network(name.removesuffix(" model"))


@cache
def searched(name, workers):
    return Subject(graph_of(name), partition(graph_of(name), workers))


@cache
def in_any_form(name, seed):
    graph = graph_of(name)
    return Subject(graph, random_plan(graph, 2 + seed % 4, seed))


@cache
def placed(name, groups):
    """A random placement on two groups, or on four workers, in an order of its own."""
    return Subject(graph_of(name), random_placement(graph_of(name), groups, 4 // groups, seed=groups))


def subjects(name):
    """The subjects of a graph; each is made once."""
    if name in MODELS:
        anyhow = [in_any_form(name, seed) for seed in range(MODELS[name])]
        return [*anyhow, *(placed(name, groups) for groups in (2, 4))]
    return [*(searched(name, workers) for workers in WORKERS), *(in_any_form(name, s) for s in range(SEEDS))]
