"""The contract between an operator and the code that computes it.

A kernel computes a *box* of an operator's iteration space: one interval for every index variable,
output and reduction variables alike. It is given exactly the input regions that the analysis derived
for that box, so an input's element `[0, 0]` is the tensor's element `[region[0].lower, region[1].lower]`.
Preparation happens once per plan, the returned function runs every iteration.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Interval, Region
from ...errors import OperatorError
from .workspace import Array, Workspace

__all__ = ["Array", "Kernel", "KernelCall", "Run", "check_kernel", "in_turn", "prepared", "view_of"]


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One box to compute.

    `inputs[name]` holds the elements of `regions[name]`; tensors that the description never reads are
    absent. `outputs[k]` receives the elements of output `k` for the box: for a partial box of a reduction
    the partial result. Inputs and outputs are strided views; an output may be the same memory as an input
    that is read at the output's own index alone (`bound.in_place`), and only then. All temporary memory
    comes from `workspace`; its contents are undefined whenever the kernel runs.
    """

    bound: Bound
    box: Mapping[str, Interval]
    inputs: Mapping[str, Array]
    regions: Mapping[str, Region]
    outputs: tuple[Array, ...]
    workspace: Workspace = field(default_factory=Workspace)


Run = Callable[[], None]
"""What a prepared kernel does every iteration."""

Kernel = Callable[[KernelCall], Run]


def in_turn(runs: Sequence[Run]) -> Run:
    """One function that runs all, one after the other."""
    if len(runs) == 1:
        return runs[0]

    def run() -> None:
        for each in runs:
            each()

    return run


def check_kernel(operator: str, kernel: object) -> None:
    """Raise OperatorError for what cannot be called with a KernelCall alone."""
    wanted = "a function of one KernelCall that returns the function to run"
    if not callable(kernel):
        raise OperatorError(f"the kernel of '{operator}' is {kernel!r}, not {wanted}")
    try:
        signature = inspect.signature(kernel)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None)
    except TypeError:
        name = getattr(kernel, "__name__", "kernel")
        raise OperatorError(
            f"the kernel of '{operator}', {name}{signature}, is not {wanted}; "
            f"a function of arrays can be audited, tofu.audit({operator}, {name}), but not attached"
        ) from None


def prepared(kernel: Kernel, call: KernelCall) -> Run:
    """What a kernel that a user wrote prepares. Raises OperatorError where it is not a function."""
    run = kernel(call)
    if not callable(run):
        raise OperatorError(
            f"the kernel of '{call.bound.description.name}' returns {type(run).__name__}, "
            "not the function that fills call.outputs whenever it runs"
        )
    return run


def view_of(array: Array, place: Iterable[slice]) -> Array:
    """The part of an array that slices select, always as a view.

    Without the ellipsis an array that has no dimensions would give a copy of its element.
    """
    index: tuple[Any, ...] = (Ellipsis, *place)
    view: Array = array[index]
    return view
