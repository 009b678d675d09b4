"""Orders of pipelines: which micro-batch a stage works on next.

A pipeline *stage* is a part of the model on workers of its own. Stage s passes activations to stage s + 1,
which passes gradients back. A stage's work on micro-batch k is a forward part F(k) and a backward part B(k).
Each order numbers the turns of a stage, of M micro-batches and S stages, with w = min(M, S - s):

    micro-batch by micro-batch    F(0) B(0) F(1) B(1) ...                       F(k) at 2k, B(k) at 2k + 1
    all forward first (GPipe)     F(0) F(1) ... F(M - 1) B(0) B(1) ...          F(k) at k, B(k) at M + k
    one forward, one backward     F(0) ... F(w - 1) B(0) F(w) B(1) F(w + 1) ...
    (PipeDream, 1F1B)             F(k) at k if k < w, else at 2k - w + 1; B(k) at w + 2k

Operations are ordered by turn, and in the graph's order within a turn. Sums of gradients belong to B(k).
State that micro-batches pass on belongs to F(k), unless it follows from something of B(k). Operations that
all micro-batches share belong to micro-batch 0. Those that overwrite parameters or state run last, because
any micro-batch may read the values before.

Guarantees: an order is valid if activations pass to the same stage or a later one, gradients to the same one
or an earlier one, and all copies of an operation are in one stage. For other stages the places are
priorities, and a scheduler has to wait for inputs. Backward parts are in the order of micro-batches in all
orders, because gradients are summed in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from ....dataflow.graph import Graph, Phase
from ....errors import PlanError
from ....support.integers import Integers


class PipelineOrder(StrEnum):
    """The order in which stages work on micro-batches."""

    MICRO_BATCHES = "micro-batches"
    FORWARD_FIRST = "forward-first"
    ONE_FORWARD_ONE_BACKWARD = "1f1b"


def pipeline_priorities(graph: Graph, stages: Sequence[int] | Integers, order: PipelineOrder) -> Integers:
    """Return the place of each operation in an order: `[operations]`, lower runs first.

    `stages` holds the stage of each operation, from 0. Raises PlanError if there is not one for each.
    """
    of = np.asarray(stages, np.int64)
    if of.shape != (len(graph.operations),) or of.min(initial=0) < 0:
        raise PlanError(
            f"{len(of)} stages were given for {len(graph.operations)} operations; give a number from 0 for "
            "each"
        )
    numbers = micro_batch_of(graph)
    backward = _backward(graph)
    count, last = int(numbers.max(initial=0)) + 1, int(of.max(initial=0)) + 1
    turns = _turns(order, numbers, backward, of, count, last)
    turns[_updates(graph)] = 2 * count + last
    places = np.empty(len(turns), np.int64)
    places[np.argsort(turns, kind="stable")] = np.arange(len(turns))
    return places


def micro_batch_of(graph: Graph) -> Integers:
    """Return the micro-batch of each operation, 0 for those that work for all."""
    return np.array([operation.micro_batch or 0 for operation in graph.operations], np.int64)


def _turns(
    order: PipelineOrder,
    numbers: Integers,
    backward: npt.NDArray[np.bool_],
    stages: Integers,
    micro_batches: int,
    stage_count: int,
) -> Integers:
    """Return the turn of each operation in its stage; see the table above."""
    match order:
        case PipelineOrder.MICRO_BATCHES:
            return 2 * numbers + backward
        case PipelineOrder.FORWARD_FIRST:
            return numbers + micro_batches * backward
        case PipelineOrder.ONE_FORWARD_ONE_BACKWARD:
            warm = np.minimum(micro_batches, stage_count - stages)
            forward = np.where(numbers < warm, numbers, 2 * numbers - warm + 1)
            return np.where(backward, warm + 2 * numbers, forward)


def _backward(graph: Graph) -> npt.NDArray[np.bool_]:
    """Tell which operations belong to backward parts: those of that phase, and updates that read from it."""
    late = np.zeros(len(graph.tensors), np.bool_)
    found = np.zeros(len(graph.operations), np.bool_)
    for operation in graph.operations:
        if operation.phase is Phase.FORWARD:
            continue
        if operation.phase is Phase.BACKWARD or late[list(operation.inputs)].any():
            found[operation.index] = True
            late[list(operation.outputs)] = True
    return found


def _updates(graph: Graph) -> npt.NDArray[np.bool_]:
    """Tell which operations run after all micro-batches."""
    return np.array(
        [
            operation.phase is Phase.UPDATE
            and (operation.micro_batch is None or graph.tensors[operation.outputs[0]].alias is not None)
            for operation in graph.operations
        ],
        np.bool_,
    )
