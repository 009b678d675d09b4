"""Apply the gradient of each replica by itself, in the order in which they arrive.

The tensor `arrivals` has a row for each parameter that learns so. It lists the replicas in the order of their
gradients, and is fed before an iteration, or written while it runs.

    local[r]           = the gradient of replica r at pulled[r]
    arrived_k          = local[arrivals[row, k]]             for k from 0 on
    w_(k+1), s_(k+1)   = update(w_k, s_k, arrived_k)         s are the optimizer's states of w
    pulled[r]          = w_(k+1) if r is arrivals[row, k]    a state of each replica, equal to w at first

So a replica reads the value that its last gradient made, and others may have been applied since. The last
application overwrites the parameter and its states. Each is an update of its own: weight decay and
momentum count once for each replica.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import GraphError
from ..graph import Graph, Operation, Phase, Role
from .edit import GraphEdit
from .gradients import UpdatingGradient
from .stages import stage_of

ARRIVALS = "arrivals"
"""The tensor `[parameters, replicas]` of the orders."""

MOST = 32
"""The most replicas: one operation reads the values that the gradients of all have made."""

ARRIVED = """
def arrived(local, arrivals, *, row, turn):
    return lambda *i: local[maximum(minimum(floor(arrivals[row, turn]), local.shape[0] - 1), 0), *i]
"""


COPY_OF_REPLICA = "def pulled(data):\n    return lambda replica, *i: data[replica, *i]"


@dataclass(frozen=True, slots=True)
class Arriving:
    """A row of `arrivals` in a graph."""

    row: int
    """The number of the row."""

    local: int
    """The tensor `[replica, ...]` of gradients that arrive."""

    picks: tuple[int, ...]
    """The operations that pick a gradient by the row."""

    pull: int
    """The operation that picks the value that each replica pulls."""

    @property
    def readers(self) -> tuple[int, ...]:
        """Return the operations that read the row."""
        return (*self.picks, self.pull)


def arriving(graph: Graph) -> tuple[Arriving, ...]:
    """Return the rows of `arrivals`, in ascending order; none if the graph has no such tensor."""
    order = next((t for t in graph.tensors if t.name == ARRIVALS and t.role is Role.SCALAR), None)
    if order is None:
        return ()
    picks: dict[int, list[int]] = {}
    pulls: dict[int, int] = {}
    for operation in graph.operations:
        if order.index in operation.inputs:
            bound = operation.bound
            row = int(bound.input_regions(bound.full_box[None])["arrivals"][0, 0, 0])
            if "local" in bound.description.tensor_names:
                picks.setdefault(row, []).append(operation.index)
            else:
                pulls[row] = operation.index
    return tuple(
        Arriving(row, graph.operations[found[0]].inputs[0], tuple(found), pulls[row])
        for row, found in sorted(picks.items())
    )


def arrivals_tensor(edit: GraphEdit, rows: int, replicas: int) -> int:
    """Add the tensor of orders. Raises GraphError if the graph has a tensor of its name."""
    if any(tensor.name == ARRIVALS for tensor in edit.tensors):
        raise GraphError(
            f"the graph has a tensor {ARRIVALS!r}, which is the name of the order in which gradients arrive; "
            "give the tensor another name"
        )
    return edit.tensor(ARRIVALS, (rows, replicas), Role.SCALAR, "float32")


def applied_by_arrival(
    edit: GraphEdit, local: int, gradient: UpdatingGradient, pulled: int, arrivals: int, row: int
) -> None:
    """Update a parameter once for each local gradient, in the order that a row of `arrivals` lists.

    Each replica pulls the value that its gradient made.

    Raises GraphError for too many replicas, and naming an update that cannot be repeated.
    """
    replicas, *shape = edit.tensors[local].shape
    name, dtype = edit.tensors[gradient.tensor].name, edit.tensors[local].dtype
    if replicas > MOST:
        raise GraphError(
            f"the gradients of {gradient.variable!r} come from {replicas} replicas, but at most {MOST} are "
            "applied in the order in which they arrive; use fewer workers, or wait for all gradients"
        )
    update = _update(edit, gradient)
    shapes = {"local": (replicas, *shape), "arrivals": edit.tensors[arrivals].shape}
    targets = [target for output in update.outputs if (target := edit.tensors[output].alias) is not None]
    parameter = next(each for each in targets if edit.tensors[each].role is Role.PARAMETER)
    instead: dict[int, int] = {}
    versions: list[int] = []
    for turn in range(replicas):
        stage = stage_of(ARRIVED, shapes, row=row, turn=turn)
        given = {"local": local, "arrivals": arrivals}
        instead[gradient.tensor] = edit.apply(f"arrived_{turn}({name})", stage, given, dtype=dtype)
        if turn < replicas - 1:
            names = [f"applied_{turn}({edit.tensors[target].name})" for target in targets]
            made = edit.repeat(update, f"apply_{turn}({gradient.variable})", names, instead)
            instead.update(zip(targets, made, strict=True))
            versions.append(instead[parameter])
    for tensor, other in instead.items():
        edit.read_instead(update.index, tensor, other)
    versions += [each for each in update.outputs if edit.tensors[each].alias == parameter]
    _pull(edit, pulled, versions, arrivals, row, gradient.variable)


def _pull(
    edit: GraphEdit, pulled: int, versions: Sequence[int], arrivals: int, row: int, variable: str
) -> None:
    """Let each replica keep the version that its gradient made."""
    state = edit.tensors[pulled]
    given = {"arrivals": arrivals, **{f"v{turn}": version for turn, version in enumerate(versions)}}
    shapes = {name: edit.tensors[index].shape for name, index in given.items()}
    stage = stage_of(_pull_text(len(versions)), shapes, row=row)
    made = edit.apply(f"pull({variable})", stage, given, dtype=state.dtype, phase=Phase.UPDATE)
    edit.overwrite(pulled, stage_of(COPY_OF_REPLICA, {"data": state.shape}), {"data": made})


def _pull_text(replicas: int) -> str:
    """Return the description of the version that each replica pulls."""
    picked = f"v{replicas - 1}[*i]"
    for turn in reversed(range(replicas - 1)):
        picked = f"where(arrivals[row, {turn}] == replica, v{turn}[*i], {picked})"
    names = ", ".join(f"v{turn}" for turn in range(replicas))
    return f"def pull(arrivals, {names}, *, row):\n    return lambda replica={replicas}, *i: {picked}\n"


def _update(edit: GraphEdit, gradient: UpdatingGradient) -> Operation:
    """Return the only update by a gradient. Raises GraphError if it cannot be applied several times."""
    if len(gradient.updates) != 1:
        raise GraphError(
            f"{gradient.variable!r} is updated by {len(gradient.updates)} operations, which cannot be "
            "repeated for each replica; wait for all gradients"
        )
    update = edit.graph.operations[gradient.updates[0]]
    own = {edit.tensors[output].alias for output in update.outputs}
    for index in update.inputs:
        tensor = edit.tensors[index]
        if tensor.role is Role.STATE and index not in own:
            raise GraphError(
                f"the update of {gradient.variable!r} reads {tensor.name!r}, which counts iterations rather "
                "than gradients; use an optimizer without it, or wait for all gradients"
            )
    if None in own:
        raise GraphError(
            f"the update of {gradient.variable!r} makes a tensor that overwrites nothing, so it cannot be "
            "repeated for each replica; wait for all gradients"
        )
    return update
