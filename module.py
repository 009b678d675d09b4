"""`Module` with the search behind it: the one place where search and runtime meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from .dataflow.graph import Graph
from .dataflow.partitioned import PartitionedGraph
from .dataflow.symbol import Symbol
from .partitioner import Plan, lower, partition
from .runtime import bound_symbol, module
from .runtime.context import Context, cpu
from .runtime.initializer import WeightRule

__all__ = ["Context", "Module", "bind", "cpu", "simple_bind"]


class Module(module.Module):
    """A symbol trained over the workers of `context`: every operator and tensor is partitioned over them.

    module = tofu.Module(symbol, context=[tofu.cpu(i) for i in range(8)])
    module.fit(tofu.ArrayIterator(images, labels, batch_size=64), num_epoch=10, learning_rate=0.1)

    `method` names the search. `plans` holds the plan of every graph made so far by the graph's fingerprint.
    """

    def __init__(
        self,
        symbol: Symbol,
        context: Context | Sequence[Context] | None = None,
        *,
        method: str = "recursive",
        initializer: WeightRule | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
        seed: int = 0,
        threads: int | None = None,
        detect_nan: bool = False,
    ) -> None:
        super().__init__(
            symbol,
            context,
            lower=self._partition,
            initializer=initializer,
            parameters=parameters,
            seed=seed,
            threads=threads,
            detect_nan=detect_nan,
        )
        self.plans: dict[str, Plan] = {}
        self._method = method

    def _partition(self, graph: Graph, workers: int) -> PartitionedGraph:
        plan = partition(graph, workers=workers, method=self._method)
        self.plans[plan.fingerprint] = plan
        return lower(graph, plan)


def simple_bind(symbol: Symbol, context: Any = None, **arguments: Any) -> bound_symbol.BoundSymbol:
    """Arrays for a symbol's arguments and gradients, partitioned over the context; see `bound_symbol`."""
    return bound_symbol.simple_bind(symbol, context, lower=_partitioned, **arguments)


def bind(symbol: Symbol, context: Any, args: Any, *others: Any, **options: Any) -> bound_symbol.BoundSymbol:
    """A symbol bound to the user's arrays, partitioned over the context; see `bound_symbol.bind`."""
    return bound_symbol.bind(symbol, context, args, *others, lower=_partitioned, **options)


def _partitioned(graph: Graph, workers: int) -> PartitionedGraph:
    return lower(graph, partition(graph, workers=workers))
